package pivot

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// A management cluster that is fenced for another tool has all providers and Flux, and its Flux is not connected to a repo.
func TestFenceStepsLeaveFluxAlone(t *testing.T) {
	all := converge.UpTo(converge.NewRun(&session.Session{}).Steps(), converge.StepHost, converge.StepProviders, converge.StepFlux)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	for _, never := range []string{converge.StepPush, converge.StepConnect, converge.StepSynced, converge.StepServe} {
		if slices.Contains(names, never) {
			t.Errorf("%q is among %q", never, names)
		}
	}
	for _, always := range []string{
		converge.StepPreflight, converge.StepAPI, converge.StepManifests, converge.StepHost,
		converge.StepProviders, converge.StepFlux,
	} {
		if !slices.Contains(names, always) {
			t.Errorf("%q is not among %q", always, names)
		}
	}
	if err := steps.Check(all); err != nil {
		t.Error(err)
	}
}

func veleroRestore(name, phase string) unstructured.Unstructured {
	r := unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
	if phase == "" { // Velero has not seen the Restore yet
		r.Object = map[string]any{}
	}
	r.SetName(name)
	return r
}

// A running restore of Velero is an error, and a restore that failed in part is a warning with its name.
func TestRestoresOfVeleroHaveToEnd(t *testing.T) {
	for _, phase := range []string{"", "New", "InProgress", "Finalizing", "WaitingForPluginOperations"} {
		err := restoresEnded([]unstructured.Unstructured{veleroRestore("first", "Completed"), veleroRestore("nightly", phase)}, func(string) {})
		if err == nil || !strings.Contains(err.Error(), "nightly") || diag.Code(err) != diag.ExitNotReady {
			t.Errorf("%q: %v", phase, err)
		}
	}
	var warned []string
	err := restoresEnded([]unstructured.Unstructured{veleroRestore("nightly", "PartiallyFailed"), veleroRestore("again", "Completed")},
		func(s string) { warned = append(warned, s) })
	if err != nil || len(warned) != 1 || !strings.Contains(warned[0], "nightly") {
		t.Errorf("%v, warned %q", err, warned)
	}
}

// After the take-over, the same command does not fence again. It does what is left.
func TestFenceOnlyGoesOnAfterItHasTakenOver(t *testing.T) {
	released := &handover.Journal{Role: handover.RoleTarget, Phase: handover.PhaseReleased, Around: true}
	for _, c := range []struct {
		name         string
		journal      *handover.Journal
		sourceIsGone bool
		clusters     int
		want         bool
	}{
		{"the same command", released, false, 1, true},
		{"the same command, and all Clusters deleted", released, false, 0, true},
		{"with --source-is-gone, by habit", released, true, 1, true},
		{"another restore into it", released, true, 0, false},
		{"nothing was restored", nil, false, 0, false},
		{"a snapshot was restored", &handover.Journal{Phase: handover.PhaseReleased, Snapshot: "s"}, false, 1, false},
	} {
		a := &around{opts: RestoreOptions{SourceIsGone: c.sourceIsGone}}
		if got, err := a.begun(c.journal, func() (int, error) { return c.clusters, nil }); err != nil || got != c.want {
			t.Errorf("%s: %t, %v", c.name, got, err)
		}
	}
}

// recorder keeps the warnings.
type recorder struct {
	progress.Reporter
	warned []string
}

func (r *recorder) Warn(message string) { r.warned = append(r.warned, message) }

// A dry run names all reasons for a refusal, not only the first one, because the user may uninstall Velero after it.
func TestAllThatIsRefusedIsFound(t *testing.T) {
	r := &recorder{}
	a := &around{
		session: &session.Session{Deps: management.Deps{Report: r}}, warned: map[string]bool{},
		paused: map[string]string{"team/shop": "is managed by second"},
	}
	a.opts.DryRun = true
	arrival := &handover.Arrival{Clusters: []string{"team/shop"}, Absent: []string{"Secret team/shop-ca did not arrive"}}
	problems := []diag.Finding{{File: "clusters/web/cluster.yaml", Line: 3, Summary: "it is no cluster"}}
	missing := absent(arrival, map[string]bool{"shop": true, "blog": true}, problems)
	refusals := errors.Join(a.refusals(arrival, []unstructured.Unstructured{veleroRestore("nightly", "InProgress")}, missing)...)
	for _, want := range []string{
		"nightly", "shop-ca did not arrive", "cluster blog is declared in Git", "clusters/web/cluster.yaml:3",
		"is managed by second",
	} {
		if refusals == nil || !strings.Contains(refusals.Error(), want) {
			t.Errorf("%q is not among what is refused: %v", want, refusals)
		}
	}
	if strings.Contains(refusals.Error(), "cluster shop is declared") {
		t.Errorf("shop has come: %v", refusals)
	}
	a.opts.Incomplete, a.opts.PauseElsewhere = true, true
	if refusals := a.refusals(arrival, nil, missing); len(refusals) > 0 ||
		!strings.Contains(strings.Join(r.warned, "\n"), "clusters/web/cluster.yaml:3") {
		t.Errorf("agreed to: %v, warned %q", refusals, r.warned)
	}
	if !strings.Contains(strings.Join(r.warned, "\n"), "whether Velero has finished") {
		t.Errorf("without Velero: warned %q", r.warned)
	}
}

// init refuses a fenced management cluster, because it would start the stopped controllers.
func TestInitRefusesWhatIsFenced(t *testing.T) {
	s := &session.Session{Mgmt: &v1alpha1.ManagementCluster{Name: "root"}}
	journal := &handover.Journal{Role: handover.RoleTarget, Phase: handover.PhaseFenced, Around: true, By: "somebody"}
	if err := standing.RefuseJournal(s, journal); err == nil || !strings.Contains(diag.Hint(err), "fleetctl restore --fence-only") {
		t.Errorf("fenced: %v (%s)", err, diag.Hint(err))
	}
	journal.Phase = handover.PhaseReleased
	if err := standing.RefuseJournal(s, journal); err != nil {
		t.Errorf("released: %v", err)
	}
}

// init refuses the target of a pivot that is not committed, because the target does not have the work yet.
func TestInitRefusesATargetBeforeItHasTheWork(t *testing.T) {
	s := &session.Session{Mgmt: &v1alpha1.ManagementCluster{Name: "platform"}}
	for _, phase := range []handover.Phase{handover.PhasePlanned, handover.PhaseFenced, handover.PhaseCopied, handover.PhaseAborting} {
		journal := &handover.Journal{
			Role: handover.RoleTarget, Phase: phase, Source: handover.Party{Name: "root"}, Target: handover.Party{Name: "platform"},
		}
		err := standing.RefuseJournal(s, journal)
		if err == nil || !strings.Contains(err.Error(), "from root to platform") || !strings.Contains(diag.Hint(err), "fleetctl pivot") {
			t.Errorf("%s: %v (%s)", phase, err, diag.Hint(err))
		}
	}
	for _, phase := range []handover.Phase{handover.PhaseCommitted, handover.PhaseReleased} {
		if err := standing.RefuseJournal(s, &handover.Journal{Role: handover.RoleTarget, Phase: phase}); err != nil {
			t.Errorf("%s: %v", phase, err)
		}
	}
}
