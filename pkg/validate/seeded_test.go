package validate

import (
	"maps"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

const (
	clusters = "providers/docker/v1/clusters/"
	one      = clusters + "staging/one/cluster.yaml"
	two      = clusters + "production/two/cluster.yaml"
	shared   = clusters + "staging/chart-in-memory.yaml"
	// sharedRef is how a cluster of staging names its chart, ownChart how one does that has a chart to itself.
	sharedRef = "  chartRef:\n    kind: HelmChart\n    name: staging-in-memory\n    namespace: flux-system\n"
	ownChart  = "  chart:\n    spec:\n      chart: ./charts/in-memory\n      sourceRef:\n        kind: GitRepository\n        name: " +
		"flux-system\n        namespace: flux-system\n"
	mgmt     = "providers/docker/v1/mgmt/"
	platform = mgmt + "platform/"
	apps     = platform + "apps.yaml"
	widget   = platform + "widgets.yaml"
	web      = "features/web/namespaced/deployment.yaml"
	settings = platform + "settings.yaml"
)

// Each error is found, at its file and line, and nothing else is.
func TestSeededErrors(t *testing.T) {
	crds := knownKinds(t)
	valid := fleet(t)
	all := plants()
	found := make([]outcome, len(all))
	var group errgroup.Group
	group.SetLimit(4)
	for i, p := range all {
		group.Go(func() error {
			found[i] = p.plantIn(t, maps.Clone(valid), crds)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	printOutcomes(t, found)
	planted := map[string]bool{}
	for i := range all {
		planted[all[i].rule] = true
	}
	for _, r := range rules() {
		switch r.ID {
		case RuleMissingCRDs, RuleVariable, RuleForeign, RuleUnused, RuleSameName, RuleCommit: // tests of their own
		default:
			if !planted[r.ID] {
				t.Errorf("no error is planted for the rule %s", r.ID)
			}
		}
	}
}

// outcome is what became of a mistake.
type outcome struct {
	// there: it is found at its line; elsewhere: by its rule, at another one. false are the findings besides.
	there, elsewhere bool
	falseAlarms      int
}

func printOutcomes(t *testing.T, all []outcome) {
	t.Helper()
	there, elsewhere, missed, falseAlarms := 0, 0, 0, 0
	for _, o := range all {
		switch {
		case o.there:
			there++
		case o.elsewhere:
			elsewhere++
		default:
			missed++
		}
		falseAlarms += o.falseAlarms
	}
	t.Logf("%d planted: %d found at their line, %d found elsewhere, %d not found, %d false alarms", len(all), there,
		elsewhere, missed, falseAlarms)
}

// plantIn makes the mistake, and fails the test where it is not found at its line or something else is.
func (p plant) plantIn(t *testing.T, files map[string]string, crds *schema.Set) (out outcome) {
	t.Helper()
	if p.old != "" && strings.Count(files[p.file], p.old) != 1 {
		t.Errorf("%s: %q is in %s %d times", p.name, p.old, p.file, strings.Count(files[p.file], p.old))
		return out
	}
	if p.old == "" {
		files[p.file] += p.becomes
	} else {
		files[p.file] = strings.Replace(files[p.file], p.old, p.becomes, 1)
	}
	if p.more != nil {
		p.more(files)
	}
	file := p.file
	if p.place != "" {
		file = p.place
	}
	line := 0
	if at := strings.Index(files[file], p.at); at >= 0 && p.at != "" {
		line = 1 + strings.Count(files[file][:at], "\n")
	} else if p.at != "" {
		t.Errorf("%s: %q is not in %s", p.name, p.at, file)
	}
	also := map[string]bool{}
	for _, rule := range p.also {
		also[rule] = true
	}
	for _, f := range validate(t, files, crds).Findings {
		switch {
		case f.Rule == p.rule && f.File == file && (line == 0 || f.Line == line):
			out.there = true
		case also[f.Rule]:
		default:
			out.elsewhere = out.elsewhere || f.Rule == p.rule
			out.falseAlarms++
			t.Errorf("%s: not planted: %s [%s] (%s)", p.name, f, f.Rule, f.Hint)
		}
	}
	if !out.there {
		t.Errorf("%s: not found: %s in %s, line %d", p.name, p.rule, file, line)
	}
	return out
}
