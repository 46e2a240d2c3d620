package aws

import (
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// uses are the kinds of resources that use a network, with or without tags. All other uses (databases, functions, file systems) show by
// their network interfaces.
var uses = map[string]bool{
	kindInstance: true, kindLoadBalancer: true, kindClassicBalancer: true, kindEndpoint: true, kindNATGateway: true,
	kindSubnet: true, kindInterface: true,
}

// holds records that a resource has a network interface.
func (c *collector) holds(id, networkInterface *string) {
	if networkInterface == nil {
		return
	}
	if c.holders == nil {
		c.holders = map[string]string{}
	}
	c.holders[*networkInterface] = sdk.ToString(id)
}

// end records a resource that AWS has deleted. AWS still lists it for a while, and may take its network interfaces away a moment later:
// a deletion that was interrupted must not take them for somebody else's when it goes on.
func (c *collector) end(id *string, tags map[string]string) {
	if cluster, _ := clusterOf(tags); cluster != "" && id != nil {
		c.ended = append(c.ended, cloud.Resource{ID: *id, Cluster: cluster, Fleet: tags[v1alpha1.FleetTag]})
	}
}

// addInterfaces records the network interfaces. Call it after all resources that may have one are known. An interface without tags belongs
// to the cluster of its holder. Without a known holder it is a stranger: AWS makes interfaces without the cluster's tags for other
// resources in the network.
func (c *collector) addInterfaces() {
	for _, i := range c.interfaces {
		tags := tagsOf(i.TagSet)
		more := cloud.Resource{Network: sdk.ToString(i.VpcId)}
		if cluster, _ := clusterOf(tags); cluster != "" {
			c.add(kindInterface, sdk.ToString(i.NetworkInterfaceId), tags, more)
			continue
		}
		if holder := c.holderOf(i); holder != nil {
			more.Cluster, more.Fleet = holder.Cluster, holder.Fleet
		}
		more.Region, more.Kind, more.ID, more.Name = c.region, kindInterface, sdk.ToString(i.NetworkInterfaceId), tags["Name"]
		if more.Name == "" {
			more.Name = sdk.ToString(i.Description)
		}
		c.strangers = append(c.strangers, more)
	}
}

// holderOf returns the resource of a cluster that has the network interface, or nil.
func (c *collector) holderOf(i types.NetworkInterface) *cloud.Resource {
	id := c.holders[sdk.ToString(i.NetworkInterfaceId)]
	if id == "" && i.Attachment != nil {
		id = sdk.ToString(i.Attachment.InstanceId)
	}
	// Only AWS itself makes interfaces for load balancers. Their description names the load balancer: "ELB net/NAME/ID", the end of its ARN,
	// or "ELB NAME" for a classic one.
	balancer, is := strings.CutPrefix(sdk.ToString(i.Description), "ELB ")
	is = is && sdk.ToBool(i.RequesterManaged)
	for n := range c.resources {
		r := &c.resources[n]
		switch {
		case id != "" && r.ID == id,
			is && r.Kind == kindLoadBalancer && strings.HasSuffix(r.ID, ":loadbalancer/"+balancer),
			is && r.Kind == kindClassicBalancer && r.ID == balancer:
			return r
		}
	}
	for n := range c.ended {
		if id != "" && c.ended[n].ID == id {
			return &c.ended[n]
		}
	}
	return nil
}
