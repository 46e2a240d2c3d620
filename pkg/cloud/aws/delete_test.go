package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// deleting returns an account that hardly pauses between two requests.
func (s *simulator) deleting(t *testing.T) *Account {
	t.Helper()
	a := s.account(t, "eu-central-1")
	a.pace = time.Millisecond
	return a
}

// inTurn returns the answers one after the other, and the last one for ever. An answer is a body, or the code of an error.
func (s *simulator) inTurn(action string, answers ...string) {
	n := 0
	s.answers[action] = func(url.Values) (int, string) {
		answer := answers[min(n, len(answers)-1)]
		n++
		if strings.HasPrefix(answer, "<") {
			return http.StatusOK, answer
		}
		return http.StatusBadRequest, "<Response><Errors><Error><Code>" + answer + "</Code><Message>it says</Message></Error></Errors></Response>"
	}
}

func TestStages(t *testing.T) {
	var all []cloud.Resource
	for _, kind := range []string{
		kindVPC, kindSubnet, "s3-bucket", kindInstance, kindNATGateway, kindAddress, kindInstance,
		kindSecurityGroup, kindInternetGateway,
	} {
		all = append(all, cloud.Resource{Kind: kind})
	}
	var got []string
	for _, stage := range (&Account{}).Stages(all) {
		got = append(got, fmt.Sprint(len(stage), " ", stage[0].Kind))
	}
	want := "2 instance, 1 nat-gateway, 1 elastic-ip, 1 security-group, 1 internet-gateway, 1 subnet, 1 vpc"
	if strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, kind := range order {
		if removals[kind].remove == nil {
			t.Errorf("nothing deletes a %s", kind)
		}
	}
}

func TestDelete(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		setUp func(s *simulator)
		asked []string
		want  string // a part of the error, or "" for none
	}{
		"waits until a gateway is gone": {
			kindNATGateway, func(s *simulator) {
				state := func(state string) string {
					return `<DescribeNatGatewaysResponse><natGatewaySet><item><natGatewayId>x</natGatewayId><state>` + state +
						`</state></item></natGatewaySet></DescribeNatGatewaysResponse>`
				}
				s.inTurn("DescribeNatGateways", state("deleting"), state("deleting"), state("deleted"))
			}, []string{"DeleteNatGateway"}, "",
		},
		"waits until others have let go of it": {
			kindSubnet, func(s *simulator) {
				s.inTurn("DeleteSubnet", "DependencyViolation", "DependencyViolation", "<DeleteSubnetResponse/>")
			},
			[]string{"DeleteSubnet", "DeleteSubnet", "DeleteSubnet"},
			"",
		},
		"what is gone is gone": {kindVPC, func(s *simulator) { s.inTurn("DeleteVpc", "InvalidVpcID.NotFound") }, []string{"DeleteVpc"}, ""},
		"says why not": {
			kindInstance, func(s *simulator) { s.inTurn("TerminateInstances", "OperationNotPermitted") },
			[]string{"TerminateInstances"},
			"OperationNotPermitted: it says",
		},
		"an endpoint is refused in an answer that is none": {
			kindEndpoint, func(s *simulator) {
				s.says("DeleteVpcEndpoints",
					`<DeleteVpcEndpointsResponse><unsuccessful><item><resourceId>x</resourceId><error><code>InvalidParameter</code>`+
						`<message>no</message></error></item></unsuccessful></DeleteVpcEndpointsResponse>`)
			}, []string{"DeleteVpcEndpoints"}, "InvalidParameter: no",
		},
		"a rule that is gone is no group that is gone": {
			kindSecurityGroup, func(s *simulator) {
				s.says("DescribeSecurityGroups",
					`<DescribeSecurityGroupsResponse><securityGroupInfo><item><groupId>x</groupId><ipPermissions><item><ipProtocol>tcp`+
						`</ipProtocol><groups><item><groupId>y</groupId></item></groups></item></ipPermissions></item></securityGroupInfo></DescribeSecurityGroupsResponse>`)
				s.inTurn("RevokeSecurityGroupIngress", "InvalidPermission.NotFound")
			}, []string{"RevokeSecurityGroupIngress", "DeleteSecurityGroup"}, "",
		},
		"a main route table goes with its network": {
			kindRouteTable, func(s *simulator) {
				s.says("DescribeRouteTables",
					`<DescribeRouteTablesResponse><routeTableSet><item><routeTableId>x</routeTableId><associationSet><item><main>true</main></item>`+
						`</associationSet></item></routeTableSet></DescribeRouteTablesResponse>`)
			}, nil, "",
		},
		"a gateway is taken off its network first": {
			kindInternetGateway, func(s *simulator) {
				s.says("DescribeInternetGateways",
					`<DescribeInternetGatewaysResponse><internetGatewaySet><item><internetGatewayId>x</internetGatewayId><attachmentSet>`+
						`<item><vpcId>vpc-1</vpcId></item></attachmentSet></item></internetGatewaySet></DescribeInternetGatewaysResponse>`)
			}, []string{"DetachInternetGateway", "DeleteInternetGateway"}, "",
		},
		"a kind that nobody knows": {"s3-bucket", func(*simulator) {}, nil, "no command deletes a resource of kind s3-bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulator(t)
			c.setUp(s)
			err := s.deleting(t).Delete(t.Context(), cloud.Resource{Region: "eu-central-1", Kind: c.kind, ID: "x"})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if !slices.Equal(s.asked, c.asked) {
				t.Errorf("asked %q, want %q", s.asked, c.asked)
			}
		})
	}
}

// TestDeleteEnds checks that Delete stops waiting for a resource when the caller's context ends.
func TestDeleteEnds(t *testing.T) {
	s := newSimulator(t)
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	s.answers["DeleteVpc"] = func(url.Values) (int, string) {
		if tries++; tries == 3 {
			cancel()
		}
		return http.StatusBadRequest,
			"<Response><Errors><Error><Code>DependencyViolation</Code><Message>it has things</Message></Error></Errors></Response>"
	}
	err := s.deleting(t).Delete(ctx, cloud.Resource{Region: "eu-central-1", Kind: kindVPC, ID: "x"})
	if err == nil || !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// TestUsers checks that a resource with the tags of several clusters lists its users, and that machines without tags are strangers in their
// network.
func TestUsers(t *testing.T) {
	s := newSimulator(t)
	s.says("DescribeSubnets", `<DescribeSubnetsResponse><subnetSet><item><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId><tagSet>
<item><key>kubernetes.io/cluster/web</key><value>shared</value></item><item><key>kubernetes.io/cluster/shop</key><value>owned</value></item>
<item><key>sigs.k8s.io/cluster-api-provider-aws/cluster/shop</key><value>owned</value></item></tagSet></item></subnetSet></DescribeSubnetsResponse>`)
	s.says("DescribeInstances",
		`<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-bastion</instanceId><vpcId>vpc-1</vpcId></item>`+
			`</instancesSet></item></reservationSet></DescribeInstancesResponse>`)
	found := s.account(t, "eu-central-1").Find(t.Context(), "", nil)
	if len(found.Resources) != 1 || !slices.Equal(found.Resources[0].Users, []string{"web"}) || !found.Resources[0].Carries {
		t.Errorf("%+v", found.Resources)
	}
	if len(found.Strangers) != 1 || found.Strangers[0].ID != "i-bastion" || found.Strangers[0].Network != "vpc-1" {
		t.Errorf("%+v", found.Strangers)
	}
}

// TestInterfaces checks that the network interfaces of a cluster's resources belong to this cluster even without tags. All other interfaces
// are strangers.
func TestInterfaces(t *testing.T) {
	s := newSimulator(t)
	s.says("DescribeInstances",
		`<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId><vpcId>vpc-1</vpcId>`+tagSet+
			`</item><item><instanceId>i-2</instanceId><instanceState><name>terminated</name></instanceState><networkInterfaceSet><item>`+
			`<networkInterfaceId>eni-instance-gone</networkInterfaceId></item></networkInterfaceSet>`+tagSet+
			`</item></instancesSet></item></reservationSet></DescribeInstancesResponse>`)
	s.says("DescribeVpcEndpoints",
		`<DescribeVpcEndpointsResponse><vpcEndpointSet><item><vpcEndpointId>vpce-1</vpcEndpointId><state>deleted</state>`+
			`<networkInterfaceIdSet><item>eni-endpoint-gone</item></networkInterfaceIdSet>`+tagSet+
			`</item></vpcEndpointSet></DescribeVpcEndpointsResponse>`)
	s.says("DescribeNatGateways",
		`<DescribeNatGatewaysResponse><natGatewaySet><item><natGatewayId>nat-1</natGatewayId><vpcId>vpc-1</vpcId><natGatewayAddressSet>`+
			`<item><networkInterfaceId>eni-nat</networkInterfaceId></item></natGatewayAddressSet>`+tagSet+
			`</item><item><natGatewayId>nat-gone</natGatewayId><vpcId>vpc-1</vpcId><state>deleted</state><natGatewayAddressSet>`+
			`<item><networkInterfaceId>eni-nat-gone</networkInterfaceId></item></natGatewayAddressSet>`+tagSet+
			`</item><item><natGatewayId>nat-others-gone</natGatewayId><vpcId>vpc-1</vpcId><state>deleted</state><natGatewayAddressSet>`+
			`<item><networkInterfaceId>eni-others-gone</networkInterfaceId></item></natGatewayAddressSet>`+
			`</item><item><natGatewayId>nat-others</natGatewayId>`+
			`<vpcId>vpc-1</vpcId></item></natGatewaySet></DescribeNatGatewaysResponse>`)
	const balancer = "arn:aws:elasticloadbalancing:eu-central-1:1:loadbalancer/net/shop/1"
	s.says("DescribeLoadBalancers",
		`<DescribeLoadBalancersResponse><DescribeLoadBalancersResult><LoadBalancers><member><LoadBalancerArn>`+balancer+
			`</LoadBalancerArn><VpcId>vpc-1</VpcId></member></LoadBalancers></DescribeLoadBalancersResult></DescribeLoadBalancersResponse>`)
	s.says("DescribeTags",
		`<DescribeTagsResponse><DescribeTagsResult><TagDescriptions><member><ResourceArn>`+balancer+`</ResourceArn><Tags><member>`+
			`<Key>kubernetes.io/cluster/shop</Key><Value>owned</Value></member></Tags></member></TagDescriptions></DescribeTagsResult></DescribeTagsResponse>`)
	eni := func(id, more string) string {
		return `<item><networkInterfaceId>` + id + `</networkInterfaceId><vpcId>vpc-1</vpcId>` + more + `</item>`
	}
	const aws = `<requesterManaged>true</requesterManaged>`
	s.says("DescribeNetworkInterfaces", `<DescribeNetworkInterfacesResponse><networkInterfaceSet>`+
		eni("eni-tagged", tagSet)+
		eni("eni-instance", `<attachment><instanceId>i-1</instanceId></attachment>`)+
		eni("eni-nat", `<description>Interface for NAT Gateway nat-1</description>`)+
		eni("eni-nat-gone", "")+eni("eni-others-gone", "")+eni("eni-endpoint-gone", "")+eni("eni-instance-gone", "")+
		eni("eni-elb", `<description>ELB net/shop/1</description>`+aws)+
		eni("eni-elb-others", `<description>ELB net/db/2</description>`+aws)+
		eni("eni-says-so", `<description>ELB net/shop/1</description>`)+
		eni("eni-db", `<description>RDSNetworkInterface</description>`+aws)+`</networkInterfaceSet></DescribeNetworkInterfacesResponse>`)
	found := s.account(t, "eu-central-1").Find(t.Context(), "", nil)
	var got []string
	for _, r := range found.Strangers {
		got = append(got, strings.TrimSpace(r.ID+" "+r.Cluster))
	}
	want := []string{
		"nat-others", "eni-instance shop", "eni-nat shop", "eni-nat-gone shop", "eni-others-gone", "eni-endpoint-gone shop",
		"eni-instance-gone shop", "eni-elb shop", "eni-elb-others", "eni-says-so", "eni-db",
	}
	if !slices.Equal(got, want) || len(found.Problems) > 0 ||
		!slices.ContainsFunc(found.Resources, func(r cloud.Resource) bool { return r.ID == "eni-tagged" }) {
		t.Errorf("strangers %q, want %q; %+v", got, want, found)
	}
}
