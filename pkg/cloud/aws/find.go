package aws

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// The tags of a cluster's resources: the provider's own tag, and the tag of Kubernetes' AWS integration, which makes load balancers and
// volumes from inside a cluster. Their value is "owned", or "shared" for a resource that the cluster uses and does not delete.
const (
	providerTag   = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	kubernetesTag = "kubernetes.io/cluster/"
	owned         = "owned"
)

// The kinds of resources, in the order in which they are deleted.
const (
	kindNodeGroup       = "eks-nodegroup"
	kindManaged         = "eks-cluster"
	kindInstance        = "instance"
	kindLoadBalancer    = "load-balancer"
	kindClassicBalancer = "classic-load-balancer"
	kindEndpoint        = "vpc-endpoint"
	kindNATGateway      = "nat-gateway"
	kindTargetGroup     = "target-group"
	kindAddress         = "elastic-ip"
	kindInterface       = "network-interface"
	kindVolume          = "volume"
	kindSecurityGroup   = "security-group"
	kindRouteTable      = "route-table"
	kindInternetGateway = "internet-gateway"
	kindEgressGateway   = "egress-only-internet-gateway"
	kindSubnet          = "subnet"
	kindVPC             = "vpc"
	kindTemplate        = "launch-template"
	kindSecret          = "secret"
)

var order = []string{
	kindNodeGroup, kindManaged, kindInstance, kindLoadBalancer, kindClassicBalancer, kindEndpoint, kindNATGateway,
	kindTargetGroup, kindAddress,
	kindInterface, kindVolume, kindSecurityGroup, kindRouteTable, kindInternetGateway, kindEgressGateway, kindSubnet, kindVPC,
	kindTemplate, kindSecret,
}

// rank returns the position of a kind in order. Unknown kinds come last.
func rank(kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}

// costs has the costs of kinds. Other kinds cost nothing by themselves.
var costs = map[string]cloud.Cost{
	kindNodeGroup: cloud.CostHourly, kindManaged: cloud.CostHourly, kindInstance: cloud.CostHourly, kindLoadBalancer: cloud.CostHourly,
	kindClassicBalancer: cloud.CostHourly, kindEndpoint: cloud.CostHourly, kindNATGateway: cloud.CostHourly, kindAddress: cloud.CostHourly,
	kindVolume: cloud.CostStorage, kindSecret: cloud.CostStorage,
}

// carriers are the kinds that other resources in a network need.
var carriers = []string{kindNATGateway, kindRouteTable, kindInternetGateway, kindEgressGateway, kindSubnet, kindVPC}

// clusterOf returns the cluster that owns a resource with these tags, and the other clusters that use it. cluster is "" if no cluster owns
// the resource.
func clusterOf(tags map[string]string) (cluster string, users []string) {
	for _, prefix := range []string{providerTag, kubernetesTag} {
		for _, key := range sortedKeys(tags) {
			if name, ok := strings.CutPrefix(key, prefix); ok {
				users = append(users, name)
				if cluster == "" && tags[key] == owned {
					cluster = name
				}
			}
		}
	}
	slices.Sort(users)
	return cluster, slices.DeleteFunc(slices.Compact(users), func(name string) bool { return name == cluster })
}

// collector gathers the resources of one region.
type collector struct {
	region    string
	resources []cloud.Resource
	strangers []cloud.Resource
	problems  []cloud.Problem

	// interfaces are the network interfaces. holders has the id of each interface's holder, by the interface's id.
	interfaces []types.NetworkInterface
	holders    map[string]string
	// ended are resources of clusters that AWS has deleted, and still lists.
	ended []cloud.Resource
}

// add records a resource that a cluster owns, or a stranger that may use the network of a cluster. It ignores other resources.
func (c *collector) add(kind, id string, tags map[string]string, more cloud.Resource) {
	if id == "" {
		return
	}
	more.Region, more.Kind, more.ID, more.Fleet, more.Name = c.region, kind, id, tags[v1alpha1.FleetTag], tags["Name"]
	if more.Cluster, more.Users = clusterOf(tags); more.Cluster == "" {
		if more.Network != "" && uses[kind] {
			c.strangers = append(c.strangers, more)
		}
		return
	}
	more.Carries = slices.Contains(carriers, kind)
	more.Cost = cloud.CostNone
	if cost, ok := costs[kind]; ok {
		more.Cost = cost
	}
	c.resources = append(c.resources, more)
}

// find lists all resources of the region, and keeps those that belong to a cluster. It does not let AWS filter by tags, because that
// depends on how AWS matches patterns of tags. A denied request is a problem, and find goes on. After any other error, such as an
// unreachable region or invalid credentials, find stops with one problem.
func (r *region) find(ctx context.Context, fleet string, clusters []string) *collector {
	c := &collector{region: r.name}
	for _, look := range []struct {
		what string
		list func(context.Context, *collector) error
	}{
		{"VPCs", r.vpcs},
		{"instances", r.instances},
		{"load balancers", r.loadBalancers},
		{"target groups", r.targetGroups},
		{"classic load balancers", r.classicBalancers},
		{"NAT gateways", r.natGateways},
		{"VPC endpoints", r.endpoints},
		{"elastic IPs", r.addresses},
		{"network interfaces", func(ctx context.Context, c *collector) error {
			err := r.interfaces(ctx, c)
			c.addInterfaces()
			return err
		}},
		{"volumes", r.volumes},
		{"security groups", r.securityGroups},
		{"route tables", r.routeTables},
		{"internet gateways", r.gateways},
		{"egress-only internet gateways", r.egressGateways},
		{"subnets", r.subnets},
		{"launch templates", r.templates},
		{"the resources of other services", func(ctx context.Context, c *collector) error { return r.others(ctx, c, fleet, clusters) }},
	} {
		err := look.list(ctx, c)
		if err == nil {
			continue
		}
		c.problems = append(c.problems, cloud.Problem{
			Region: r.name, Text: fmt.Sprintf("list %s: %v", look.what, short(err)), Hint: hint(err),
		})
		if !isDenied(err) {
			return c
		}
	}
	return c
}

func tagsOf(tags []types.Tag) map[string]string {
	return pairs(tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
}

// pairs returns tags of any AWS service as a map.
func pairs[T any](tags []T, of func(T) (key, value *string)) map[string]string {
	out := map[string]string{}
	for _, t := range tags {
		key, value := of(t)
		out[sdk.ToString(key)] = sdk.ToString(value)
	}
	return out
}

// pages calls next with each page's token until there is no other page. It fails after mostPages, and if a page names a page before it,
// because such a list never ends.
func pages(next func(token *string) (*string, error)) error {
	var token *string
	before := map[string]bool{}
	for range mostPages {
		var err error
		if token, err = next(token); err != nil || sdk.ToString(token) == "" {
			return err
		}
		if before[*token] {
			return errors.New("the list never ends: a page names a page before it as the next one")
		}
		before[*token] = true
	}
	return fmt.Errorf("the list does not end after %d pages", mostPages)
}

func (r *region) vpcs(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, v := range out.Vpcs {
			c.add(kindVPC, sdk.ToString(v.VpcId), tagsOf(v.Tags), cloud.Resource{Network: sdk.ToString(v.VpcId)})
		}
		return out.NextToken, nil
	})
}

func (r *region) instances(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, reservation := range out.Reservations {
			for _, i := range reservation.Instances {
				// AWS still lists a terminated instance for about an hour.
				if i.State != nil && i.State.Name == types.InstanceStateNameTerminated {
					c.end(i.InstanceId, tagsOf(i.Tags))
				} else {
					c.add(kindInstance, sdk.ToString(i.InstanceId), tagsOf(i.Tags), cloud.Resource{Network: sdk.ToString(i.VpcId), Created: i.LaunchTime})
				}
				for _, n := range i.NetworkInterfaces {
					c.holds(i.InstanceId, n.NetworkInterfaceId)
				}
			}
		}
		return out.NextToken, nil
	})
}

func (r *region) natGateways(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeNatGateways(ctx, &ec2.DescribeNatGatewaysInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, g := range out.NatGateways {
			if g.State == types.NatGatewayStateDeleted {
				c.end(g.NatGatewayId, tagsOf(g.Tags))
			} else {
				c.add(kindNATGateway, sdk.ToString(g.NatGatewayId), tagsOf(g.Tags),
					cloud.Resource{Network: sdk.ToString(g.VpcId), Created: g.CreateTime})
			}
			for _, a := range g.NatGatewayAddresses {
				c.holds(g.NatGatewayId, a.NetworkInterfaceId)
			}
		}
		return out.NextToken, nil
	})
}

func (r *region) endpoints(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeVpcEndpoints(ctx, &ec2.DescribeVpcEndpointsInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, e := range out.VpcEndpoints {
			if strings.EqualFold(string(e.State), string(types.StateDeleted)) {
				c.end(e.VpcEndpointId, tagsOf(e.Tags))
			} else {
				c.add(kindEndpoint, sdk.ToString(e.VpcEndpointId), tagsOf(e.Tags),
					cloud.Resource{Network: sdk.ToString(e.VpcId), Created: e.CreationTimestamp})
			}
			for _, n := range e.NetworkInterfaceIds {
				c.holds(e.VpcEndpointId, &n)
			}
		}
		return out.NextToken, nil
	})
}

func (r *region) addresses(ctx context.Context, c *collector) error {
	out, err := r.ec2.DescribeAddresses(ctx, &ec2.DescribeAddressesInput{})
	if err != nil {
		return err
	}
	for _, a := range out.Addresses {
		c.add(kindAddress, sdk.ToString(a.AllocationId), tagsOf(a.Tags), cloud.Resource{})
	}
	return nil
}

func (r *region) interfaces(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		c.interfaces = append(c.interfaces, out.NetworkInterfaces...)
		return out.NextToken, nil
	})
}

func (r *region) volumes(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, v := range out.Volumes {
			c.add(kindVolume, sdk.ToString(v.VolumeId), tagsOf(v.Tags), cloud.Resource{Created: v.CreateTime})
		}
		return out.NextToken, nil
	})
}

func (r *region) securityGroups(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, g := range out.SecurityGroups {
			c.add(kindSecurityGroup, sdk.ToString(g.GroupId), tagsOf(g.Tags), cloud.Resource{Network: sdk.ToString(g.VpcId)})
		}
		return out.NextToken, nil
	})
}

func (r *region) routeTables(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeRouteTables(ctx, &ec2.DescribeRouteTablesInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, t := range out.RouteTables {
			c.add(kindRouteTable, sdk.ToString(t.RouteTableId), tagsOf(t.Tags), cloud.Resource{Network: sdk.ToString(t.VpcId)})
		}
		return out.NextToken, nil
	})
}

func (r *region) gateways(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeInternetGateways(ctx, &ec2.DescribeInternetGatewaysInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, g := range out.InternetGateways {
			var network string
			for _, a := range g.Attachments {
				network = sdk.ToString(a.VpcId)
			}
			c.add(kindInternetGateway, sdk.ToString(g.InternetGatewayId), tagsOf(g.Tags), cloud.Resource{Network: network})
		}
		return out.NextToken, nil
	})
}

func (r *region) egressGateways(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeEgressOnlyInternetGateways(ctx, &ec2.DescribeEgressOnlyInternetGatewaysInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, g := range out.EgressOnlyInternetGateways {
			var network string
			for _, a := range g.Attachments {
				network = sdk.ToString(a.VpcId)
			}
			c.add(kindEgressGateway, sdk.ToString(g.EgressOnlyInternetGatewayId), tagsOf(g.Tags), cloud.Resource{Network: network})
		}
		return out.NextToken, nil
	})
}

func (r *region) subnets(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, s := range out.Subnets {
			c.add(kindSubnet, sdk.ToString(s.SubnetId), tagsOf(s.Tags), cloud.Resource{Network: sdk.ToString(s.VpcId)})
		}
		return out.NextToken, nil
	})
}

func (r *region) templates(ctx context.Context, c *collector) error {
	return pages(func(token *string) (*string, error) {
		out, err := r.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{NextToken: token})
		if err != nil {
			return nil, err
		}
		for _, t := range out.LaunchTemplates {
			c.add(kindTemplate, sdk.ToString(t.LaunchTemplateId), tagsOf(t.Tags), cloud.Resource{Created: t.CreateTime})
		}
		return out.NextToken, nil
	})
}
