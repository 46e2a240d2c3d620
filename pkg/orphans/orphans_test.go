package orphans

import (
	"context"
	"slices"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/cloud"
)

const ours, theirs = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"

// account is a cloud that holds what it was given.
type account struct{ found cloud.Found }

func (a *account) Cloud() string { return "aws" }

func (a *account) Find(context.Context, string, []string) cloud.Found { return a.found }

// shared is an account that this fleet, another one, and clusters of nobody knows whom use.
func shared() *account {
	return &account{found: cloud.Found{Regions: []string{"eu-central-1"}, Resources: []cloud.Resource{
		{Kind: "vpc", ID: "vpc-ours", Network: "vpc-ours", Cluster: "shop", Fleet: ours},
		{Kind: "instance", ID: "i-ours", Network: "vpc-ours", Cluster: "shop", Fleet: ours},
		{Kind: "load-balancer", ID: "made-from-inside", Network: "vpc-ours", Cluster: "shop"},
		{Kind: "volume", ID: "vol-shop", Cluster: "shop"},
		{Kind: "vpc", ID: "vpc-theirs", Network: "vpc-theirs", Cluster: "shop", Fleet: theirs},
		{Kind: "load-balancer", ID: "made-from-inside-of-theirs", Network: "vpc-theirs", Cluster: "shop"},
		{Kind: "instance", ID: "i-theirs-in-ours", Network: "vpc-ours", Cluster: "shop", Fleet: theirs},
		{Kind: "instance", ID: "i-anothers-in-ours", Network: "vpc-ours", Cluster: "web"}, // before there was a tag, say
		{Kind: "vpc", ID: "vpc-nobodys", Network: "vpc-nobodys", Cluster: "shop"},
		{Kind: "vpc", ID: "vpc-alive", Network: "vpc-alive", Cluster: "alive", Fleet: ours},
		{Kind: "volume", ID: "vol-alive", Cluster: "alive"},
	}}}
}

func ids(clusters []Cluster) []string {
	var all []string
	for _, c := range clusters {
		for _, r := range c.Resources {
			all = append(all, r.ID+" "+string(r.Proof))
		}
	}
	slices.Sort(all)
	return all
}

func TestFind(t *testing.T) {
	report := Find(t.Context(), Options{
		Fleet: ours, Living: map[string]string{"alive": "mgmt"}, Declared: []string{"shop"}, Accounts: []cloud.Account{shared()},
	})
	want := []string{"i-anothers-in-ours none", "i-ours tag", "made-from-inside network", "vol-shop none", "vpc-nobodys none", "vpc-ours tag"}
	if got := ids(report.Clusters); !slices.Equal(got, want) {
		t.Errorf("orphans %q, want %q", got, want)
	}
	if report.Others != 3 || !report.Complete || len(report.Clusters) != 2 || report.Clusters[0].Proven || !report.Clusters[0].Declared {
		t.Errorf("%+v", report)
	}
	if report := Find(t.Context(), Options{Accounts: []cloud.Account{shared()}}); report.Others != 7 {
		t.Errorf("of a fleet without an identity %d prove to be others'", report.Others)
	}
}

func TestIncomplete(t *testing.T) {
	broken := &account{found: cloud.Found{Problems: []cloud.Problem{{Text: "access denied"}}}}
	for name, o := range map[string]Options{
		"a cloud that does not say all": {Accounts: []cloud.Account{broken}},
		"a cloud that is not opened":    {NotOpened: []CloudReport{{Cloud: "aws", Problems: []cloud.Problem{{Text: "no credentials"}}}}},
		"a management cluster":          {Unasked: []Unasked{{Name: "mgmt", Error: "timed out"}}},
	} {
		if Find(t.Context(), o).Complete {
			t.Errorf("%s: the report says that it is complete", name)
		}
	}
}
