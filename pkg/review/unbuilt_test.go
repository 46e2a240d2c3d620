package review

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// Objects of a folder that the older side cannot build are not added. Others are.
func TestUnbuiltFolder(t *testing.T) {
	in := func(file string) *render.Object {
		o := object("ConfigMap", "default", "a", "")
		o.Source.File = file
		return o
	}
	for name, test := range map[string]struct {
		failed, file string
		changes      int
	}{
		"the folder":            {"clusters/dev", "clusters/dev/demo/cluster.yaml", 0},
		"its kustomization":     {"clusters/dev/kustomization.yaml", "clusters/dev/demo/cluster.yaml", 0},
		"another folder":        {"clusters/dev", "clusters/dev2/demo/cluster.yaml", 1},
		"another kustomization": {"clusters/dev/sub/kustomization.yaml", "clusters/dev/demo/cluster.yaml", 1},
		"another file":          {"clusters/dev/bad.yaml", "clusters/dev/demo/cluster.yaml", 1},
	} {
		whole := &render.Result{Objects: []*render.Object{in(test.file)}}
		broken := &render.Result{Findings: diag.Findings{{Severity: diag.SeverityError, Rule: render.RuleKustomize, File: test.failed}}}
		if got := compared(broken, whole); len(got) != test.changes {
			t.Errorf("%s: %d changes, want %d", name, len(got), test.changes)
		}
	}
}

// stayNot says of each object that lacks that it was removed.
func stayNot(*render.Object, string) bool { return false }

// Nothing is removed that is applied by something incomplete on the newer side, through any number of levels. What others apply is removed.
func TestIncomplete(t *testing.T) {
	unfinished := func(name string, targets ...string) render.Result {
		k := &render.Kustomization{ManagementCluster: "mgmt", Targets: targets, Incomplete: true}
		k.Owner = render.Owner{Kind: render.KindKustomization, Namespace: "flux-system", Name: name}
		return render.Result{Kustomizations: []*render.Kustomization{k}}
	}
	kustomization := func(name string) render.Owner {
		return render.Owner{Kind: render.KindKustomization, Namespace: "flux-system", Name: name}
	}
	release := render.Owner{Kind: render.KindHelmRelease, Namespace: "shop", Name: "shop"}
	in := func(by render.Owner, kind, namespace, name, targets string) *render.Object {
		o := object(kind, namespace, name, "")
		if targets != "" {
			o.Targets = strings.Split(targets, ",")
		}
		o.Owner = by
		return o
	}
	declaration := in(kustomization("dev"), release.Kind, release.Namespace, release.Name, "")
	whole := &render.Result{
		Objects: []*render.Object{
			in(kustomization("flux-system"), render.KindKustomization, "flux-system", "flux-system", ""), // as Flux's own does
			in(kustomization("flux-system"), render.KindKustomization, "flux-system", "dev", ""),
			declaration,
			in(release, "Cluster", "shop", "shop", ""),
			in(kustomization("dev"), render.KindKustomization, "flux-system", "a", "one,two"),
			in(kustomization("a"), render.KindKustomization, "flux-system", "b", "one,two"),
			in(kustomization("b"), render.KindKustomization, "flux-system", "a", "one,two"), // a circle
			in(kustomization("b"), "ConfigMap", "apps", "x", "one,two"),
		},
		Releases: []*render.Release{{Owner: release, Object: declaration, Rendered: true}},
	}
	for name, test := range map[string]struct {
		after render.Result
		has   int // so many of the objects are still there
		want  string
	}{
		"none": {render.Result{}, 0, "Kustomization/flux-system Kustomization/dev HelmRelease/shop Cluster/shop Kustomization/a[one two] " +
			"Kustomization/b[one two] Kustomization/a[one two] ConfigMap/x[one two]"},
		"the root":        {unfinished("flux-system"), 0, ""},
		"the environment": {unfinished("dev"), 2, ""},
		"on one target":   {unfinished("b", "two"), 6, "ConfigMap/x[one]"},
		"a release": {
			render.Result{Releases: []*render.Release{{Owner: release, Object: declaration}}},
			3,
			"Kustomization/a[one two] Kustomization/b[one two] Kustomization/a[one two] ConfigMap/x[one two]",
		},
		"one that is whole": {
			render.Result{Kustomizations: []*render.Kustomization{{ManagementCluster: "mgmt", Owner: kustomization("dev")}}}, 8, "",
		},
	} {
		var got []string
		test.after.Objects = whole.Objects[:test.has]
		for _, c := range compared(whole, &test.after) {
			text := c.Kind + "/" + c.Name
			if len(c.Targets) > 0 {
				text += fmt.Sprint(c.Targets)
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: removed are %q, want %q", name, text, test.want)
		}
	}
}
