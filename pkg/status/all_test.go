package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

func managing(name string, clusters ...Fleet) *Report {
	return &Report{FormatVersion: "1", Ready: true, Cluster: Cluster{Name: name, State: "running"}, Clusters: clusters}
}

func shop(endpoint string, paused bool) Fleet {
	return Fleet{Namespace: "shop", Name: "shop", Ready: true, Endpoint: endpoint, Paused: paused, Machines: []Machine{{Name: "shop-abcde"}}}
}

func TestAll(t *testing.T) {
	silent := Collect(t.Context(), Sources{Cluster: Cluster{Name: "dark", State: "stopped"}})
	all := Join([]*Report{managing("first", shop("10.0.0.1:6443", false)), managing("second", shop("10.0.0.1:6443", false)), silent})
	want := []TwoOwners{{Cluster: "shop/shop", ManagementClusters: []string{"first", "second"}, Endpoint: "10.0.0.1:6443"}}
	if diff := cmp.Diff(want, all.TwoOwners); diff != "" || all.Ready {
		t.Errorf("ready %t\n%s", all.Ready, diff)
	}
	var out strings.Builder
	if err := AllView(&out, all, Style{}); err != nil {
		t.Fatal(err)
	}
	const text = `✓ first (running, 1 of 1 workload cluster ready)
✓ second (running, 1 of 1 workload cluster ready)
✗ dark (stopped)

  WHAT                           WHY
✗ Cluster shop/shop:             TWO OWNERS: first and second act on it (10.0.0.1:6443)
  hint: take it from the wrong owner, which deletes nothing: ` + "`fleetctl cluster detach shop/shop --management first` or " +
		"`fleetctl cluster detach shop/shop --management second`" + `
✗ dark: management cluster dark: it cannot be reached
  hint: ` + "`fleetctl init`" + ` makes, starts or completes it
`
	if diff := cmp.Diff(text, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A management cluster that has ended is no fault of the fleet, and its line says what has become of it.
func TestEnded(t *testing.T) {
	all := Join([]*Report{Ended("root"), managing("eu", shop("10.0.0.1:6443", false))})
	var out strings.Builder
	if err := AllView(&out, all, Style{}); err != nil {
		t.Fatal(err)
	}
	if want := "✓ root (ended)\n✓ eu (running, 1 of 1 workload cluster ready)\n"; !all.Ready || out.String() != want {
		t.Errorf("ready %t, it says\n%s", all.Ready, out.String())
	}
}

// A management cluster that runs and was not asked, for example because it belongs to another fleet, has no known number of workload
// clusters, neither for people nor for programs.
func TestNothingIsKnownOfWhatWasNotAsked(t *testing.T) {
	stranger := Collect(t.Context(), Sources{Cluster: Cluster{Name: "eu", State: "running"}, Unreachable: errors.New("it is another's")})
	if want := []string{partFlux, partProviders, partClusters}; !slices.Equal(stranger.Unknown, want) {
		t.Errorf("unknown: %q, want %q", stranger.Unknown, want)
	}
	var out strings.Builder
	if err := AllView(&out, Join([]*Report{stranger}), Style{}); err != nil {
		t.Fatal(err)
	}
	if first, _, _ := strings.Cut(out.String(), "\n"); first != "✗ eu (running, its workload clusters are not known)" {
		t.Errorf("it says %q", first)
	}
}

// A damaged record of an owner is reported: nobody can tell from it whether another management cluster has taken the cluster over.
func TestDamagedRecordOfTheOwner(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		r := managing("mgmt", workload(capi.Cluster{Namespace: "shop", Name: "shop", OwnerDamaged: damaged}))
		(&collector{report: r}).judgeOwners()
		said := slices.ContainsFunc(r.Problems, func(p Problem) bool {
			return p.Object == "Cluster shop/shop" && strings.Contains(p.Reason, "annotation fleetctl.dev/owner") &&
				strings.Contains(p.Hint, "kubectl annotate -n shop clusters.cluster.x-k8s.io shop fleetctl.dev/owner-")
		})
		if said != damaged || r.Ready == damaged {
			t.Errorf("damaged %t: ready %t, %+v", damaged, r.Ready, r.Problems)
		}
	}
}

// A copy that is paused, as in the midst of a hand-over, has no second owner; nor has another cluster of the same name.
func TestNotTwoOwners(t *testing.T) {
	for name, second := range map[string]Fleet{
		"paused": shop("10.0.0.1:6443", true), "another": shop("10.0.0.2:6443", false),
		"not made yet": shop("", false), "another behind the same private address": {
			Namespace: "shop", Name: "shop", Ready: true,
			Endpoint: "10.0.0.1:6443", Machines: []Machine{{Name: "shop-vwxyz"}},
		},
	} {
		if all := Join([]*Report{managing("first", shop("10.0.0.1:6443", false)), managing("second", second)}); len(all.TwoOwners) > 0 ||
			!all.Ready {
			t.Errorf("%s: %+v", name, all.TwoOwners)
		}
	}
}

// A cloud that runs the control plane may have made a cluster without machines: then the address of the API server tells, if it is unique.
func TestTwoOwnersWithoutMachines(t *testing.T) {
	for endpoint, two := range map[string]bool{
		"0123abcd.gr7.eu-west-1.eks.amazonaws.com:443": true, "93.184.216.34:443": true, "[2606:2800:220:1::1]:6443": true,
		"10.0.0.1:6443": false, "100.64.3.4:6443": false, "127.0.0.1:6443": false, "[fd00::1]:6443": false, "169.254.1.1:443": false,
		"api:6443": false, "api.svc.cluster.local:443": false, "api.lan:6443": false, "": false,
	} {
		bare := shop(endpoint, false)
		bare.Machines = nil
		if all := Join([]*Report{managing("first", bare), managing("second", bare)}); len(all.TwoOwners) > 0 != two || all.Ready == two {
			t.Errorf("%q: %+v", endpoint, all.TwoOwners)
		}
		other := shop(endpoint, false)
		if all := Join([]*Report{managing("first", bare), managing("second", other)}); len(all.TwoOwners) > 0 {
			t.Errorf("%q, where only one side has machines: %+v", endpoint, all.TwoOwners)
		}
	}
}

func TestShoutsAtAnotherOwner(t *testing.T) {
	for name, test := range map[string]struct {
		uid    string
		paused bool
		shouts bool
		shown  string
	}{
		"its own":           {"u2", false, false, "✓ shop/shop (control plane 0/0)\n"},
		"another's":         {"u1", false, true, "✗ shop/shop (control plane 0/0, owner second): TWO OWNERS: second and this one\n"},
		"another's, paused": {"u1", true, false, "✓ shop/shop (control plane 0/0, paused, owner second)\n"},
	} {
		w := shop("", test.paused)
		w.record = capi.Owner{ManagementCluster: "second", UID: "u2", Epoch: 1}
		w.Owner = w.record.ManagementCluster
		w.claim(test.uid)
		c := &collector{report: managing("first", w)}
		c.judgeOwners()
		if got := len(c.report.Problems) > 0; got != test.shouts || c.report.Ready == test.shouts {
			t.Errorf("%s: ready %t, %+v", name, c.report.Ready, c.report.Problems)
		}
		var out strings.Builder
		if err := Tree(&out, c.report, Style{}); err != nil || !strings.Contains(out.String(), test.shown) {
			t.Errorf("%s: %v, it shows\n%s", name, err, out.String())
		}
	}
}

// TestShoutsAtAnotherCluster checks that an old copy of a management cluster is not Ready, whatever it says of itself.
func TestShoutsAtAnotherCluster(t *testing.T) {
	for name, test := range map[string]struct {
		replaced *Problem
		err      error
		want     string
	}{
		"nobody":       {},
		"another one":  {replaced: &Problem{Reason: "another has its place"}, want: "management cluster mgmt: another has its place"},
		"nobody knows": {err: errors.New("no answer"), want: partPlace + ": no answer"},
	} {
		c := &collector{report: managing("mgmt"), from: Sources{
			Client: &kube.Client{},
			Place:  func(context.Context, *kube.Client) (*Problem, error) { return test.replaced, test.err },
		}}
		c.place(t.Context())
		c.judge()
		said := slices.ContainsFunc(c.report.Problems, func(p Problem) bool { return p.Object+": "+p.Reason == test.want })
		if test.want != "" && (!said || c.report.Ready) || test.want == "" && strings.Contains(fmt.Sprint(c.report.Problems), "place") {
			t.Errorf("%s: ready %t, %+v", name, c.report.Ready, c.report.Problems)
		}
	}
}

// TestCopiesAreNotCounted looks at both sides of a hand-over. The side without the clusters has copies, which are not its own.
func TestCopiesAreNotCounted(t *testing.T) {
	journal := handover.Journal{
		Phase: handover.PhaseCopied, Clusters: []string{"shop/shop"}, Select: []string{"shop/shop"},
		Source: handover.Party{Name: "first"}, Target: handover.Party{Name: "second"},
	}
	for name, test := range map[string]struct {
		role   handover.Role
		phase  handover.Phase
		facts  string
		copyOf string
	}{
		"the source, before the commit": {handover.RoleSource, handover.PhaseCopied, "running, 2 of 2 workload clusters ready", ""},
		"the target, before the commit": {
			handover.RoleTarget, handover.PhaseCopied, "running, 1 of 1 workload cluster ready, 1 copy of a hand-over under way", "first",
		},
		"the source, after the commit": {
			handover.RoleSource, handover.PhaseCommitted, "running, 1 of 1 workload cluster ready, 1 copy of a hand-over under way", "second",
		},
		"the target, after the commit": {handover.RoleTarget, handover.PhaseCommitted, "running, 2 of 2 workload clusters ready", ""},
	} {
		own := shop("10.0.0.2:6443", false)
		own.Name = "own"
		j := journal
		j.Role, j.Phase = test.role, test.phase
		c := &collector{report: managing("this", shop("10.0.0.1:6443", false), own), journal: &j}
		c.judgeCopies()
		if got := c.report.facts(); got != test.facts {
			t.Errorf("%s: %s, not %s", name, got, test.facts)
		}
		if of := c.report.Clusters[0].CopyOf; of != test.copyOf {
			t.Errorf("%s: a copy of %q", name, of)
		}
		var out strings.Builder
		err := Tree(&out, c.report, Style{})
		if err != nil || strings.Contains(out.String(), "a copy: "+test.copyOf+" has") != (test.copyOf != "") {
			t.Errorf("%s: %v, it shows\n%s", name, err, out.String())
		}
		acts := managing("another", shop("10.0.0.1:6443", false))
		if two := len(Join([]*Report{c.report, acts}).TwoOwners); (two > 0) != (test.copyOf == "") {
			t.Errorf("%s: %d clusters with two owners", name, two)
		}
	}
}
