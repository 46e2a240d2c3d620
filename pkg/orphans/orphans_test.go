package orphans

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const ours, theirs = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"

// account is a cloud account with the resources that the test has put there.
type account struct {
	found cloud.Found
	// stays is the id of what cannot be deleted.
	stays string
	// together, if not nil, is waited for with each deletion: what is deleted together waits for each other.
	together *sync.WaitGroup

	mu      sync.Mutex
	deleted []string
}

func (a *account) Cloud() string { return "aws" }

func (a *account) Find(context.Context, string, []string) cloud.Found { return a.found }

// Stages deletes VPCs last, and buckets never.
func (a *account) Stages(resources []cloud.Resource) [][]cloud.Resource {
	var stages [2][]cloud.Resource
	for _, r := range resources {
		switch r.Kind {
		case "bucket":
		case "vpc":
			stages[1] = append(stages[1], r)
		default:
			stages[0] = append(stages[0], r)
		}
	}
	return slices.DeleteFunc(stages[:], func(stage []cloud.Resource) bool { return len(stage) == 0 })
}

func (a *account) Delete(ctx context.Context, r cloud.Resource) error {
	if a.together != nil {
		a.together.Done()
		begun := make(chan struct{})
		go func() {
			a.together.Wait()
			close(begun)
		}()
		select {
		case <-begun:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if r.ID == a.stays {
		return errors.New("it is protected")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deleted = append(a.deleted, r.ID)
	a.found.Resources = slices.DeleteFunc(a.found.Resources, func(have cloud.Resource) bool { return have.ID == r.ID })
	return nil
}

// shared is an account with resources of this fleet, of another fleet, and of clusters without a known fleet.
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

// mine is an account with one cluster of this fleet, and with resources that must not be deleted with the cluster.
func mine() *account {
	return &account{found: cloud.Found{Regions: []string{"eu-central-1"}, Resources: []cloud.Resource{
		{Kind: "vpc", ID: "vpc", Network: "vpc", Cluster: "shop", Fleet: ours, Carries: true},
		{Kind: "instance", ID: "i-1", Network: "vpc", Cluster: "shop", Fleet: ours},
		{Kind: "instance", ID: "i-2", Network: "vpc", Cluster: "shop"},
		{Kind: "instance", ID: "used", Cluster: "shop", Fleet: ours, Users: []string{"web"}},
		{Kind: "bucket", ID: "bucket", Cluster: "shop", Fleet: ours},
		{Kind: "volume", ID: "unproven", Cluster: "shop"},
		{Kind: "instance", ID: "another", Cluster: "web", Fleet: ours},
	}}}
}

func find(t *testing.T, a *account, change ...func(*Options)) *Report {
	t.Helper()
	o := Options{Fleet: ours, Accounts: []cloud.Account{a}}
	for _, c := range change {
		c(&o)
	}
	return Find(t.Context(), o)
}

func TestDelete(t *testing.T) {
	a := mine()
	d, err := find(t, a).Deletion("shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, k := range d.Kept {
		kept = append(kept, k.ID+": "+k.Why)
	}
	want := []string{
		"used: others use it, too: web", "unproven: nothing on it names a fleet: it may be another one's",
		"bucket: fleetctl does not delete resources of this kind",
	}
	if !slices.Equal(kept, want) {
		t.Errorf("kept %q, want %q", kept, want)
	}
	stages := []string{}
	watch := Watch{
		Before: func(context.Context) error { return nil },
		Stage:  func(what string) func(error) { stages = append(stages, what); return func(error) {} },
	}
	// A resource that cannot be deleted ends the deletion, before the resources that have to wait for it.
	a.stays = "i-2"
	deleted, err := d.Delete(t.Context(), watch)
	if err == nil || !strings.Contains(err.Error(), "delete instance i-2 in : it is protected") || len(deleted) != 1 ||
		deleted[0].ID != "i-1" {
		t.Fatalf("%v, %v", deleted, err)
	}
	a.stays = ""
	if d, err = find(t, a).Deletion("shop", nil); err != nil {
		t.Fatal(err)
	}
	// A resource that appeared after the confirmation is not deleted.
	a.found.Resources = append(a.found.Resources, cloud.Resource{Kind: "instance", ID: "late", Cluster: "shop", Fleet: ours})
	now, err := find(t, a).Deletion("shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	now.Only(d)
	if _, err := now.Delete(t.Context(), watch); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.deleted, []string{"i-1", "i-2", "vpc"}) ||
		!slices.Equal(stages, []string{"delete instance (2)", "delete instance (1)", "delete vpc (1)"}) {
		t.Errorf("deleted %q, %q", a.deleted, stages)
	}
	// Nor is anything once the cluster is somebody's.
	if now, err = find(t, a).Deletion("shop", nil); err != nil || len(now.Resources) != 1 {
		t.Fatal(now, err)
	}
	watch.Before = func(context.Context) error { return errors.New("claimed") }
	if deleted, err := now.Delete(t.Context(), watch); err == nil || len(deleted) > 0 {
		t.Errorf("%v, %v", deleted, err)
	}
}

// TestDeletionOfBalancers checks what a deletion says after an interruption: the load balancers are gone, and their interfaces linger.
func TestDeletionOfBalancers(t *testing.T) {
	for name, waits := range map[string]bool{"ELB net/shop/1": true, "RDSNetworkInterface": false} {
		a := mine()
		a.found.Strangers = []cloud.Resource{{Kind: "network-interface", ID: "eni-1", Name: name, Network: "vpc"}}
		_, err := find(t, a, func(*Options) {}).Deletion("shop", nil)
		if hint := diag.Hint(err); err == nil || strings.Contains(hint, "in some minutes") != waits {
			t.Errorf("%s: %v, hint %q", name, err, hint)
		}
	}
}

func TestDeleteRefuses(t *testing.T) {
	unasked := func(o *Options) {
		o.Unasked = []Unasked{{Name: "mgmt", Error: "it timed out"}, {Name: "dead", Error: "it is gone"}}
	}
	for name, c := range map[string]struct {
		change func(a *account, o *Options)
		gone   []string
		want   string
	}{
		"one that was not asked may own it": {
			func(_ *account, o *Options) { unasked(o) },
			[]string{"dead"},
			"management cluster mgmt could not be asked, and may own the cluster shop: it timed out",
		},
		"one that is said to be gone answers": {
			func(_ *account, o *Options) { unasked(o) },
			[]string{"alive"},
			"management cluster alive answers",
		},
		"it lives": {
			func(_ *account, o *Options) { o.Living = map[string]string{"shop": "m2"} }, nil,
			"management cluster m2 manages the cluster shop",
		},
		"it is said to be gone, and answers": {
			func(_ *account, o *Options) {
				o.Unasked = []Unasked{{Name: "mgmt", Error: "it is in the middle of a restore", Answers: true}}
			},
			[]string{"mgmt"},
			"management cluster mgmt is not gone: it answers, and may own the cluster shop: it is in the middle of a restore",
		},
		"the fleet repo declares it": {
			func(_ *account, o *Options) { o.Declared = []string{"shop"} }, nil,
			"the fleet repo still declares the cluster shop",
		},
		"the fleet repo cannot be read": {
			func(_ *account, o *Options) { o.Unread = []string{"clusters/x: no YAML"} }, nil,
			"may still declare the cluster shop, and cannot be read: clusters/x",
		},
		"a database is in its network": {func(a *account, _ *Options) {
			a.found.Strangers = []cloud.Resource{{Kind: "network-interface", ID: "eni-1", Name: "RDSNetworkInterface", Network: "vpc"}}
		}, nil, "network-interface eni-1 (RDSNetworkInterface)"},
		"the cloud did not say all": {
			func(a *account, _ *Options) { a.found.Problems = []cloud.Problem{{Text: "list volumes: denied"}} }, nil,
			"list volumes: denied",
		},
		"a cloud was not opened": {func(_ *account, o *Options) {
			o.NotOpened = []CloudReport{{Cloud: "aws", Problems: []cloud.Problem{{Text: "no key"}}}}
		}, nil, "no key"},
		"another cluster is in its network": {
			func(a *account, _ *Options) { a.found.Resources[6].Network = "vpc" }, nil,
			"would lose it: cluster web (instance another)",
		},
		"another fleet's is in its network": {func(a *account, _ *Options) {
			a.found.Resources[6].Network, a.found.Resources[6].Fleet = "vpc",
				theirs
		}, nil, "cluster web (instance another)"},
		"a machine of nobody is in its network": {func(a *account, _ *Options) {
			a.found.Strangers = []cloud.Resource{{Kind: "instance", ID: "bastion", Network: "vpc"}}
		}, nil, "instance bastion"},
		"its network is shared by a tag": {
			func(a *account, _ *Options) { a.found.Resources[0].Users = []string{"api"} }, nil,
			"cluster api (vpc vpc)",
		},
	} {
		a := mine()
		report := find(t, a, func(o *Options) { c.change(a, o) })
		if d, err := report.Deletion("shop", c.gone); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	a := mine()
	if d, err := find(t, a, unasked).Deletion("shop", []string{"mgmt", "dead"}); err != nil || len(d.Resources) != 3 {
		t.Errorf("%+v, %v", d, err)
	}
	a.found.Strangers = []cloud.Resource{
		{Kind: "instance", ID: "elsewhere", Network: "vpc", Region: "us-east-1"},
		{Kind: "network-interface", ID: "of-a-machine-of-its-own", Network: "vpc", Cluster: "shop", Fleet: ours},
	}
	if _, err := find(t, a).Deletion("shop", nil); err != nil {
		t.Error(err)
	}
}

// The resources of a stage can wait for each other, however many they are: security groups that name each other, for example.
func TestDeleteTogether(t *testing.T) {
	const many = 40
	a := &account{found: cloud.Found{Regions: []string{"eu-central-1"}}, together: &sync.WaitGroup{}}
	a.together.Add(many)
	for i := range many {
		a.found.Resources = append(a.found.Resources, cloud.Resource{
			Kind: "security-group", ID: fmt.Sprintf("sg-%d", i), Cluster: "shop", Fleet: ours,
		})
	}
	d, err := Find(t.Context(), Options{Fleet: ours, Accounts: []cloud.Account{a}}).Deletion("shop", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	deleted, err := d.Delete(ctx, Watch{
		Before: func(context.Context) error { return nil }, Stage: func(string) func(error) { return func(error) {} },
	})
	if err != nil || len(deleted) != many {
		t.Errorf("%d were deleted, %v", len(deleted), err)
	}
}
