package fleetrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Each edit changes its own lines, and no other line.
func TestEdits(t *testing.T) {
	size := func(replicas, least, most int) PoolOptions {
		var o PoolOptions
		if replicas > 0 {
			o.Replicas = &replicas
			return o
		}
		o.Min, o.Max = &least, &most
		return o
	}
	for name, tc := range map[string]struct {
		edit func(r *Repo) (*Edit, error)
		want string
	}{
		"scale the control plane": {
			func(r *Repo) (*Edit, error) { return r.ScaleControlPlane("demo", 3) },
			"-      replicas: 1   # it is a demo\n+      replicas: 3   # it is a demo\n",
		},
		"scale to what it is": {func(r *Repo) (*Edit, error) { return r.ScaleControlPlane("demo", 1) }, ""},
		"pause":               {func(r *Repo) (*Edit, error) { return r.Pause("demo", true) }, "+  suspend: true\n"},
		"pause again":         {func(r *Repo) (*Edit, error) { return r.Pause("shop", true) }, ""},
		"resume":              {func(r *Repo) (*Edit, error) { return r.Pause("shop", false) }, "-  suspend: true # until the sale is over\n"},
		"resume again":        {func(r *Repo) (*Edit, error) { return r.Pause("demo", false) }, ""},
		"add a pool": {
			func(r *Repo) (*Edit, error) { return r.AddPool("demo", "extra", size(0, 1, 3)) },
			"+    - name: extra\n+      min: 1\n+      max: 3\n",
		},
		"add a pool with values": {
			func(r *Repo) (*Edit, error) {
				o := size(2, 0, 0)
				o.Values = map[string]any{"size": "m7i.xlarge", "labels": map[string]any{"team": "ml"}}
				return r.AddPool("shop", "ml", o)
			},
			"+      - name: ml\n+        replicas: 2\n+        labels:\n+          team: ml\n+        size: m7i.xlarge\n",
		},
		"scale a pool": {
			func(r *Repo) (*Edit, error) { return r.ScalePool("demo", "md-0", size(5, 0, 0)) },
			"-      replicas: 2  # one more on Fridays\n+      replicas: 5  # one more on Fridays\n",
		},
		"scale a pool by limits": {
			func(r *Repo) (*Edit, error) { return r.ScalePool("shop", "burst", size(0, 2, 9)) },
			"-      - {name: burst, min: 1, max: 5, size: m7i.large, kubernetesVersion: v1.35.0} # the sale\n" +
				"+      - {name: burst, min: 2, max: 9, size: m7i.large, kubernetesVersion: v1.35.0} # the sale\n",
		},
		"a pool leaves the autoscaler": {
			func(r *Repo) (*Edit, error) { return r.ScalePool("shop", "burst", size(4, 0, 0)) },
			"-      - {name: burst, min: 1, max: 5, size: m7i.large, kubernetesVersion: v1.35.0} # the sale\n" +
				"+      - {name: burst, size: m7i.large, kubernetesVersion: v1.35.0, replicas: 4} # the sale\n",
		},
		"a pool joins the autoscaler": {
			func(r *Repo) (*Edit, error) { return r.ScalePool("demo", "md-0", size(0, 1, 4)) },
			"-      replicas: 2  # one more on Fridays\n+      min: 1\n+      max: 4\n",
		},
		"remove a pool": {
			func(r *Repo) (*Edit, error) { return r.RemovePool("shop", "general") },
			"-      - name: general\n-        replicas: 3\n-        size: m7i.large\n",
		},
		"remove the only pool": {
			func(r *Repo) (*Edit, error) { return r.RemovePool("demo", "md-0") },
			"-    pools:\n+    pools: []\n-    - name: md-0\n-      replicas: 2  # one more on Fridays\n",
		},
		"upgrade the control plane": {
			func(r *Repo) (*Edit, error) { return r.Upgrade("demo", UpgradeOptions{Version: "v1.36.3"}) },
			"-    kubernetesVersion: v1.35.2 # what the customer has\n+    kubernetesVersion: v1.36.3 # what the customer has\n+      " +
				"kubernetesVersion: v1.35.2\n",
		},
		"upgrade pools": {
			func(r *Repo) (*Edit, error) { return r.Upgrade("shop", UpgradeOptions{Version: "v1.36.1"}) },
			"-      - {name: burst, min: 1, max: 5, size: m7i.large, kubernetesVersion: v1.35.0} # the sale\n" +
				"+      - {name: burst, min: 1, max: 5, size: m7i.large} # the sale\n",
		},
		"upgrade a pool that is there": {
			func(r *Repo) (*Edit, error) {
				return r.Upgrade("shop", UpgradeOptions{Version: "v1.36.1", Pools: []string{"general"}})
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			e, err := tc.edit(r)
			diff, r := done(t, r, e, err)
			if d := cmp.Diff(tc.want, lines(diff)); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			e, err = tc.edit(r)
			if name == "upgrade the control plane" || strings.HasPrefix(name, "remove") {
				return // the same arguments mean another change the second time
			}
			if diff, _ := done(t, r, e, err); diff != "" {
				t.Errorf("a second time:\n%s", diff)
			}
		})
	}
}

// A refusal says what is wrong, where, and what to do.
func TestRefusals(t *testing.T) {
	n := func(i int) *int { return &i }
	for name, tc := range map[string]struct {
		edit      func(r *Repo) (*Edit, error)
		err, hint string
	}{
		"unknown cluster": {func(r *Repo) (*Edit, error) { return r.Pause("shpo", true) }, `there is no cluster "shpo"`, "did you mean shop?"},
		"unknown pool": {
			func(r *Repo) (*Edit, error) { return r.RemovePool("shop", "genral") },
			`there is no pool in cluster shop called "genral"`, "did you mean general?",
		},
		"pool is there": {
			func(r *Repo) (*Edit, error) { return r.AddPool("shop", "general", PoolOptions{Replicas: n(1)}) },
			"has a pool general already (providers/aws/v1/clusters/prod/shop/cluster.yaml:20)", "fleetctl pool scale",
		},
		"no size": {
			func(r *Repo) (*Edit, error) { return r.AddPool("shop", "x", PoolOptions{}) },
			"the size of the pool is missing", "--replicas",
		},
		"two sizes": {
			func(r *Repo) (*Edit, error) { return r.AddPool("shop", "x", PoolOptions{Replicas: n(1), Min: n(1)}) },
			"not both", "--replicas",
		},
		"half the limits": {func(r *Repo) (*Edit, error) { return r.ScalePool("demo", "md-0", PoolOptions{Min: n(1)}) }, "fixed size", "both"},
		"even control plane": {
			func(r *Repo) (*Edit, error) { return r.ScaleControlPlane("demo", 2) },
			"demo/cluster.yaml:29:17: controlPlane.replicas: value must be one of 1, 3, 5, 7", "",
		},
		"the cloud's own": {
			func(r *Repo) (*Edit, error) { return r.ScaleControlPlane("shop", 3) }, "the cloud runs them",
			"fleetctl pool scale",
		},
		"limits crossed": {
			func(r *Repo) (*Edit, error) { return r.ScalePool("shop", "burst", PoolOptions{Min: n(6)}) },
			"cluster.yaml:23:28: pools[1].min: 6 is more than max, 5", "",
		},
		"value of a pool": {func(r *Repo) (*Edit, error) {
			return r.AddPool("demo", "x", PoolOptions{Replicas: n(1), Values: map[string]any{"size": "big"}})
		}, "pools[1].size: flavour in-memory has no such value", ""},
		"nearest value": {func(r *Repo) (*Edit, error) {
			return r.AddPool("shop", "x", PoolOptions{Replicas: n(1), Values: map[string]any{"labls": 1}})
		}, "pools[2].labls: flavour aws-eks has no such value (did you mean labels?)", ""},
		"bad pool name": {
			func(r *Repo) (*Edit, error) { return r.AddPool("shop", "Not_A_Name", PoolOptions{Replicas: n(1)}) },
			"is not a DNS label", "lower case",
		},
		"downgrade": {
			func(r *Repo) (*Edit, error) { return r.Upgrade("demo", UpgradeOptions{Version: "v1.34.9"}) },
			"cannot downgrade cluster demo from v1.35.2 to v1.34.9", "backup",
		},
		"two minors": {
			func(r *Repo) (*Edit, error) { return r.Upgrade("demo", UpgradeOptions{Version: "v1.37.0"}) },
			"one minor version at a time", "`fleetctl cluster upgrade demo --version v1.36.0`",
		},
		"no v": {
			func(r *Repo) (*Edit, error) { return r.Upgrade("demo", UpgradeOptions{Version: "1.36.0"}) }, "does not start with v",
			"did you mean v1.36.0?",
		},
		"no version": {
			func(r *Repo) (*Edit, error) { return r.Upgrade("demo", UpgradeOptions{Version: "latest"}) },
			`"latest" is not a version`, "v1.36.3",
		},
		"pools first": {func(r *Repo) (*Edit, error) {
			return r.Upgrade("demo", UpgradeOptions{Version: "v1.36.0", Pools: []string{"md-0"}})
		}, "the control plane of cluster demo goes first", "without --pool"},
		"remove while paused": {
			func(r *Repo) (*Edit, error) { _, err := r.Remove("shop", false); return nil, err }, "cluster shop is paused",
			"fleetctl cluster resume shop",
		},
		"bad environment": {
			func(r *Repo) (*Edit, error) { return r.AddEnvironment("Not_A_Name", EnvironmentOptions{}) },
			"is not a DNS label", "lower case",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.edit(open(t))
			if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(diag.Hint(err), tc.hint) {
				t.Errorf("got %v (%s); want %s (%s)", err, diag.Hint(err), tc.err, tc.hint)
			}
		})
	}
}

// Nodes may not fall more than three minor versions behind.
func TestUpgradeKeepsSkew(t *testing.T) {
	r := open(t)
	for _, version := range []string{"v1.36.0", "v1.37.0", "v1.38.0"} {
		e, err := r.Upgrade("demo", UpgradeOptions{Version: version})
		_, r = done(t, r, e, err)
	}
	_, err := r.Upgrade("demo", UpgradeOptions{Version: "v1.39.0"})
	if err == nil || !strings.Contains(err.Error(), "pool md-0 is at v1.35.2, and nodes may be 3 minor versions behind") {
		t.Errorf("got %v", err)
	}
	e, err := r.Upgrade("demo", UpgradeOptions{Version: "v1.38.0"})
	diff, r := done(t, r, e, err)
	if got := lines(diff); got != "-      kubernetesVersion: v1.35.2\n" {
		t.Errorf("got %s", got)
	}
	e, err = r.Upgrade("demo", UpgradeOptions{Version: "v1.39.0"})
	done(t, r, e, err)
}

// Cancelling a removal restores every byte that its first step has changed.
func TestRemove(t *testing.T) {
	r := open(t)
	file := filepath.Join(r.Dir, "providers/docker/v1/clusters/dev/demo/cluster.yaml")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.Remove("demo", false)
	if err != nil {
		t.Fatal(err)
	}
	if first.Deletes {
		t.Error("the first step deletes")
	}
	diff, r := done(t, r, &first.Edit, nil)
	for _, want := range []string{
		"-    kustomize.toolkit.fluxcd.io/prune: disabled\n", "+    kustomize.toolkit.fluxcd.io/prune: enabled\n",
		"+    fleetctl.dev/remove: requested\n", "+                path: /metadata/annotations/helm.sh~1resource-policy\n",
		"+    disableWait: true\n",
	} {
		if !strings.Contains(lines(diff), want) {
			t.Errorf("lacks %q:\n%s", want, diff)
		}
	}
	cancelled, err := r.CancelRemove("demo")
	_, r = done(t, r, cancelled, err)
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("after cancelling (-want +got)\n%s", diff)
	}

	first, err = r.Remove("demo", false)
	if err != nil {
		t.Fatal(err)
	}
	_, r = done(t, r, &first.Edit, nil)
	second, err := r.Remove("demo", false)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Deletes || !strings.Contains(strings.Join(second.Notes, "\n"),
		"this deletes cluster demo in dev, its control plane (1 node), pool md-0 (2 nodes)") {
		t.Errorf("second step: %v", second.Notes)
	}
	_, r = done(t, r, &second.Edit, nil)
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := r.Cluster("demo"); err == nil {
		t.Error("the cluster is still there")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
