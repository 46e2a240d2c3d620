package review

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// Objects of a folder that one side cannot build are neither added nor removed. Others are.
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
		if got := compared(whole, broken); len(got) != test.changes {
			t.Errorf("%s, removed: %d changes, want %d", name, len(got), test.changes)
		}
		if got := compared(broken, whole); len(got) != test.changes {
			t.Errorf("%s, added: %d changes, want %d", name, len(got), test.changes)
		}
	}
}
