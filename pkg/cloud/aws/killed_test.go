package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

// thing is a resource of a network, which remembers what was done to it.
type thing struct {
	kind, cluster, fleet string
	// state of an instance or a NAT gateway. bound means that it has rules, an association or an attachment.
	state string
	bound bool
}

// network is an account with a cluster of ours, one of another fleet, and one of ours that lives. It refuses what AWS refuses.
type network struct {
	mu sync.Mutex
	// things by their IDs. What is gone is not among them, except for instances and NAT gateways, which AWS lists for a while.
	things map[string]*thing
	// foreign are the requests to change what is not the cluster's.
	foreign []string
}

func newNetwork() *network {
	n := &network{things: map[string]*thing{}}
	for id, t := range map[string]thing{
		"i-1": {kind: kindInstance, state: "running"}, "nat-1": {kind: kindNATGateway, state: "available"}, "eipalloc-1": {kind: kindAddress},
		"sg-1": {kind: kindSecurityGroup, bound: true}, "sg-2": {kind: kindSecurityGroup, bound: true},
		"rtb-1": {kind: kindRouteTable, bound: true}, "igw-1": {kind: kindInternetGateway, bound: true},
		"subnet-1": {kind: kindSubnet}, "vpc-1": {kind: kindVPC},
	} {
		t.cluster, t.fleet = "shop", "id"
		n.things[id] = &t
	}
	n.things["vpc-2"] = &thing{kind: kindVPC, cluster: "shop", fleet: "another"}
	n.things["i-2"] = &thing{kind: kindInstance, state: "running", cluster: "alive", fleet: "id"}
	return n
}

// alive are the IDs of what is there, sorted.
func (n *network) alive() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(n.things)) {
		if s := n.things[id].state; s != "terminated" && s != "deleted" {
			ids = append(ids, id)
		}
	}
	return ids
}

// has tells whether a resource of ours is there and not about to go.
func (n *network) has(id string) bool {
	t := n.things[id]
	return t != nil && t.state != "terminated" && t.state != "deleted"
}

func refused(code string) (int, string) {
	return http.StatusBadRequest, "<Response><Errors><Error><Code>" + code + "</Code><Message>no</Message></Error></Errors></Response>"
}

// lists answers a request for all resources of a kind, or for one of them, each with the fields that more says. What is ending has ended by
// the next request.
func (n *network) lists(s *simulator, action, set, idField, kind string, more func(id string, t *thing) string) {
	s.answers[action] = func(form url.Values) (int, string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		only := form.Get(strings.ToUpper(idField[:1]) + idField[1:] + ".1")
		if only != "" && n.things[only] == nil {
			return refused("InvalidThing.NotFound")
		}
		var items strings.Builder
		for _, id := range slices.Sorted(maps.Keys(n.things)) {
			t := n.things[id]
			if t.kind != kind || only != "" && only != id {
				continue
			}
			fmt.Fprintf(&items, "<item><%[1]s>%[2]s</%[1]s>%[3]s<tagSet><item><key>%[4]s</key><value>owned</value></item><item>"+
				"<key>fleetctl.dev/fleet</key><value>%[5]s</value></item></tagSet></item>", idField, id, more(id, t), providerTag+t.cluster, t.fleet)
			if next, ends := map[string]string{"shutting-down": "terminated", "deleting": "deleted"}[t.state]; ends {
				t.state = next
			}
		}
		all := fmt.Sprintf("<%[1]s>%[2]s</%[1]s>", set, items.String())
		if kind == kindInstance {
			all = "<reservationSet><item>" + all + "</item></reservationSet>"
		}
		return http.StatusOK, fmt.Sprintf("<%[1]sResponse>%[2]s</%[1]sResponse>", action, all)
	}
}

// does answers a request that changes a resource, whose ID is in a parameter. refuses returns the code of the error, or "".
func (n *network) does(s *simulator, action, parameter string, refuses func(id string) string, change func(id string, t *thing)) {
	s.answers[action] = func(form url.Values) (int, string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		id := strings.TrimPrefix(form.Get(parameter), "assoc-")
		t := n.things[id]
		code := ""
		switch {
		case t == nil:
			code = "InvalidThing.NotFound"
		case t.cluster != "shop" || t.fleet != "id":
			n.foreign = append(n.foreign, action+" "+id)
		default:
			code = refuses(id)
		}
		if code != "" {
			return refused(code)
		}
		change(id, t)
		return http.StatusOK, fmt.Sprintf("<%[1]sResponse/>", action)
	}
}

// serve has the simulator answer for the network.
func (n *network) serve(s *simulator) {
	inVPC := func(string, *thing) string { return "<vpcId>vpc-1</vpcId>" }
	when := func(text string) func(string, *thing) string {
		return func(id string, t *thing) string {
			if !t.bound {
				return "<vpcId>vpc-1</vpcId>"
			}
			return strings.NewReplacer("ID", id, "OTHER", map[string]string{"sg-1": "sg-2", "sg-2": "sg-1"}[id]).Replace(text)
		}
	}
	n.lists(s, "DescribeVpcs", "vpcSet", "vpcId", kindVPC, func(string, *thing) string { return "" })
	n.lists(s, "DescribeSubnets", "subnetSet", "subnetId", kindSubnet, inVPC)
	n.lists(s, "DescribeAddresses", "addressesSet", "allocationId", kindAddress, inVPC)
	n.lists(s, "DescribeInstances", "instancesSet", "instanceId", kindInstance, func(_ string, t *thing) string {
		return "<vpcId>vpc-1</vpcId><instanceState><name>" + t.state + "</name></instanceState>"
	})
	n.lists(s, "DescribeNatGateways", "natGatewaySet", "natGatewayId", kindNATGateway, func(_ string, t *thing) string {
		return "<vpcId>vpc-1</vpcId><state>" + t.state + "</state>"
	})
	n.lists(s, "DescribeSecurityGroups", "securityGroupInfo", "groupId", kindSecurityGroup,
		when("<vpcId>vpc-1</vpcId><ipPermissions><item><ipProtocol>tcp</ipProtocol><groups><item><groupId>OTHER</groupId></item></groups>"+
			"</item></ipPermissions>"))
	n.lists(s, "DescribeRouteTables", "routeTableSet", "routeTableId", kindRouteTable, when("<vpcId>vpc-1</vpcId><associationSet><item>"+
		"<routeTableAssociationId>assoc-ID</routeTableAssociationId><main>false</main></item></associationSet>"))
	n.lists(s, "DescribeInternetGateways", "internetGatewaySet", "internetGatewayId", kindInternetGateway,
		when("<attachmentSet><item><vpcId>vpc-1</vpcId></item></attachmentSet>"))

	always := func(string) string { return "" }
	unless := func(used func(id string) bool) func(string) string {
		return func(id string) string {
			if used(id) {
				return "DependencyViolation"
			}
			return ""
		}
	}
	gone := func(id string, _ *thing) { delete(n.things, id) }
	free := func(_ string, t *thing) { t.bound = false }
	bound := func(id string) bool { return n.things[id].bound }
	n.does(s, "TerminateInstances", "InstanceId.1", always, func(_ string, t *thing) { t.state = "shutting-down" })
	n.does(s, "DeleteNatGateway", "NatGatewayId", always, func(_ string, t *thing) { t.state = "deleting" })
	n.does(s, "ReleaseAddress", "AllocationId", unless(func(string) bool { return n.has("nat-1") }), gone)
	n.does(s, "RevokeSecurityGroupIngress", "GroupId", always, free)
	n.does(s, "DeleteSecurityGroup", "GroupId", unless(func(id string) bool {
		other := n.things[map[string]string{"sg-1": "sg-2", "sg-2": "sg-1"}[id]]
		return other != nil && other.bound || n.has("i-1")
	}), gone)
	n.does(s, "DisassociateRouteTable", "AssociationId", always, free)
	n.does(s, "DeleteRouteTable", "RouteTableId", unless(bound), gone)
	n.does(s, "DetachInternetGateway", "InternetGatewayId", unless(func(string) bool { return n.has("eipalloc-1") }), free)
	n.does(s, "DeleteInternetGateway", "InternetGatewayId", unless(bound), gone)
	n.does(s, "DeleteSubnet", "SubnetId", unless(func(string) bool {
		return n.has("i-1") || n.has("nat-1") || n.has("rtb-1") && n.things["rtb-1"].bound
	}), gone)
	n.does(s, "DeleteVpc", "VpcId", unless(func(string) bool {
		inIt := []string{"i-1", "nat-1", "sg-1", "sg-2", "rtb-1", "subnet-1"}
		return slices.ContainsFunc(inIt, n.has) || n.has("igw-1") && n.things["igw-1"].bound
	}), gone)
}

// cable leads to AWS, and is cut with the answer of one request, as by the end of the process: the request got through, and its answer does
// not, nor does anything after it.
type cable struct {
	*Account

	left atomic.Int64
	cut  atomic.Pointer[context.CancelFunc]
}

func newCable(t *testing.T, to http.Handler) *cable {
	t.Helper()
	c := &cable{}
	c.left.Store(math.MaxInt64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left := c.left.Add(-1)
		answer := httptest.NewRecorder()
		if left >= -1 {
			to.ServeHTTP(answer, r)
		}
		if left < 0 {
			if cut := c.cut.Load(); cut != nil {
				(*cut)()
			}
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	var err error
	if c.Account, err = New(goodProfile, server.URL, []string{"eu-central-1"}); err != nil {
		t.Fatal(err)
	}
	c.pace = time.Millisecond
	return c
}

// deleteUntilCut lists and deletes the cluster's resources as fleetctl orphans does. The answer of a request of the deletion is cut off
// after so many that arrive. It returns false if that was not needed.
func (c *cable) deleteUntilCut(t *testing.T, requests int64) (wasCut bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.left.Store(math.MaxInt64)
	found := c.Find(ctx, "id", []string{"shop"})
	if len(found.Problems) > 0 {
		t.Fatal(found.Problems)
	}
	ours := slices.DeleteFunc(found.Resources, func(r cloud.Resource) bool { return r.Fleet != "id" || r.Cluster != "shop" })
	c.cut.Store(&cancel)
	c.left.Store(requests)
	for _, stage := range c.Stages(ours) {
		errs := make(chan error, len(stage))
		for _, r := range stage { // at once: security groups that name each other wait for each other
			go func() { errs <- c.Delete(ctx, r) }()
		}
		var failed error
		for range stage {
			failed = errors.Join(failed, <-errs)
		}
		if failed != nil {
			if c.left.Load() >= 0 {
				t.Fatal(failed)
			}
			return true
		}
	}
	return false
}

// A deletion whose answer to any one request is lost goes on when it is run again: what is ours goes, and nothing else is touched.
func TestDeleteCutOffAnywhere(t *testing.T) {
	kills := int64(0)
	for ; ; kills++ {
		n, s := newNetwork(), newSimulator(t)
		n.serve(s)
		c := newCable(t, s.Config.Handler)
		wasCut := c.deleteUntilCut(t, kills)
		if c.deleteUntilCut(t, math.MaxInt64) {
			t.Fatalf("cut off after %d requests, it does not end", kills)
		}
		if left := n.alive(); !slices.Equal(left, []string{"i-2", "vpc-2"}) || len(n.foreign) > 0 {
			t.Fatalf("cut off after %d requests, and run again: left %v, and it wanted %v", kills, left, n.foreign)
		}
		if !wasCut {
			break
		}
		if kills > 500 {
			t.Fatal("it never ends")
		}
	}
	if kills < 15 {
		t.Errorf("a deletion takes %d requests: this account has not all kinds of them", kills)
	}
	t.Logf("%d requests", kills)
}
