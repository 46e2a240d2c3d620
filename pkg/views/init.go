package views

import (
	"cmp"
	"io"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
)

// Scaffold is what `fleetctl init --scaffold` has written.
func Scaffold(r *lifecycle.ScaffoldResult) View { return of(r, scaffoldView) }

// InitPlan is what `fleetctl init --dry-run` would do.
func InitPlan(p *lifecycle.Plan) View { return of(p, planView) }

// Init is what `fleetctl init` and `fleetctl upgrade apply` have made.
func Init(r *lifecycle.InitResult) View { return of(r, initView) }

// Bootstrap is what `fleetctl bootstrap` has made.
func Bootstrap(r *lifecycle.BootstrapResult) View { return of(r, bootstrapView) }

// Teardown is what `fleetctl teardown` has deleted.
func Teardown(r *lifecycle.TeardownResult) View { return of(r, teardownView) }

// TeardownPlan is what `fleetctl teardown` is about to do.
func TeardownPlan(p *lifecycle.TeardownPlan) View { return of(p, teardownPlanView) }

// UpgradePlan is what `fleetctl upgrade plan` shows.
func UpgradePlan(plan *upgrade.Plan) View {
	return view{plan, func(p *Page) error { return upgradePlanView(p.Out, p.Format, plan) }}
}

func scaffoldView(w io.Writer, r *lifecycle.ScaffoldResult) error {
	if r.Changed {
		ui.Fprintf(w, "Wrote the fleet repo of %s: %s, committed to %s as %s. Nothing was pushed.\n", r.Fleet, plain.Count(len(r.Files), "file"),
			r.Branch, short(r.Commit))
	} else {
		ui.Fprintf(w, "Nothing to do: the fleet repo of %s is complete.\n", r.Fleet)
	}
	if r.KeyFile != "" {
		ui.Fprintf(w, "The private key of its secrets is in %s. Keep a copy in a safe place: init needs it.\n", r.KeyFile)
	}
	ui.FprintText(w, "\nNext:")
	for _, line := range r.Next {
		if _, err := ui.Fprintf(w, "  %s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func planView(w io.Writer, p *lifecycle.Plan) error {
	ui.Fprintf(w, "Steps for the management cluster %s of fleet %s:\n", p.Cluster, p.Fleet)
	for _, s := range p.Steps {
		after := ""
		if len(s.Needs) > 0 {
			after = "  (after: " + strings.Join(s.Needs, ", ") + ")"
		}
		ui.Fprintf(w, "  %s%s\n", s.Name, after)
	}
	others := 0
	for _, u := range p.Upgrades {
		if u.IsFlux() { // it does not wait for the others
			continue
		}
		if others++; others == 1 {
			ui.FprintText(w, "\nIt upgrades, in this order, each healthy before the next, after a snapshot of the Cluster API objects:")
		}
		ui.Fprintf(w, "  %s\n", u)
	}
	for _, u := range p.Upgrades {
		if u.IsFlux() {
			ui.Fprintf(w, "\nIt upgrades %s.\n", u)
		}
	}
	if now := p.Flux; now != nil {
		ui.Fprintf(w, "\nFlux on the cluster follows %s.\ninit refuses to point it at %s without --take-over-flux.\n", now.Follows, now.Wanted)
		if len(now.WouldDelete) > 0 {
			ui.FprintText(w, "It applied these, which this repo does not have; --take-over-flux keeps them, and pruning would delete them:")
		}
		for _, name := range now.WouldDelete {
			ui.Fprintf(w, "  %s\n", name)
		}
	}
	for _, note := range p.FluxNotes {
		ui.Fprintf(w, "\nNote: %s.\n(%s)\n", note.Text, note.Hint)
	}
	_, err := ui.Fprintf(w, "\nThe manifests are in %s (%s). Nothing else was changed.\n", p.ManifestDir,
		plain.Count(len(p.Manifests), "file"))
	return err
}

func initView(w io.Writer, r *lifecycle.InitResult) error {
	ui.Fprintf(w, "\nManagement cluster %s follows %s (%s) at %s.\n", r.Cluster, r.GitURL, r.Branch, short(r.Revision))
	for _, u := range r.Upgraded {
		ui.Fprintf(w, "Upgraded %s.\n", u)
	}
	for _, r := range r.Renewed {
		ui.Fprintf(w, "Changed %s.\n", r)
	}
	if r.Snapshot != "" {
		ui.Fprintf(w, "The Cluster API objects as they were before, Secrets included: %s\n", r.Snapshot)
	}
	if r.DeployKey != "" {
		ui.Fprintf(w, "Flux reads it with this deploy key:\n  %s\n", r.DeployKey)
	}
	ui.FprintText(w, "\nNext:")
	for _, line := range r.Next {
		if _, err := ui.Fprintf(w, "  %s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func bootstrapView(w io.Writer, r *lifecycle.BootstrapResult) error {
	for _, c := range r.Clusters {
		state := "Available"
		if !c.Available {
			state = "not Available: " + c.Reason
		}
		ui.Fprintf(w, "%s/%s  %s\n", c.Namespace, c.Name, state)
	}
	if r.Error != "" {
		return nil // the kubeconfig is printed after this
	}
	if r.PivotedTo != "" {
		_, err := ui.Fprintf(w, "\nThe management cluster is now %s; the bootstrap cluster is deleted. Its kubeconfig: %s\n",
			r.PivotedTo, r.Kubeconfig)
		return err
	}
	_, err := ui.Fprintf(w, "\nThe management cluster %s is kept: its Clusters (%s) live only there. Its kubeconfig: %s\n",
		r.Cluster, strings.Join(r.ClusterNames(), ", "), r.Kubeconfig)
	return err
}

// teardownPlanView shows what a teardown is about to do, in order.
func teardownPlanView(w io.Writer, p *lifecycle.TeardownPlan) error {
	ui.FprintText(w, "This is what it does, in order:")
	for i, step := range p.Steps {
		if _, err := ui.Fprintf(w, "  %d. %s\n", i+1, step); err != nil {
			return err
		}
	}
	return nil
}

func teardownView(w io.Writer, r *lifecycle.TeardownResult) error {
	if r.Plan != nil && !r.Changed {
		if err := teardownPlanView(w, r.Plan); err != nil {
			return err
		}
		_, err := ui.Fprintf(w, "Nothing was changed.\n")
		return err
	}
	for _, left := range r.Leftovers {
		ui.Fprintf(w, "Left over: %s\n", left)
	}
	for _, cluster := range r.Orphaned {
		ui.Fprintf(w, "To delete the cloud resources of the cluster %s: %s\n", cluster,
			diag.ShellCommand("fleetctl", "orphans", "--delete", cluster, "--gone", r.Cluster))
	}
	for _, what := range r.NotAsked {
		ui.Fprintf(w, "Could not look for remaining resources: %s\n", what)
	}
	if !r.Changed {
		_, err := ui.Fprintf(w, "There is no management cluster %s; nothing to do.\n", r.Cluster)
		return err
	}
	outcome := "The management cluster %s is gone."
	if len(r.Leftovers) > 0 {
		outcome = "This machine has forgotten the management cluster %s; remove the leftovers yourself."
	}
	_, err := ui.Fprintf(w, outcome+" The fleet repo is as it was.\n", r.Cluster)
	return err
}

var versionTable = table[upgrade.Component]{
	name: func(c upgrade.Component) string { return c.Name },
	columns: []column[upgrade.Component]{
		{title: "COMPONENT", of: componentName},
		{title: "INSTALLED", of: func(c upgrade.Component) string { return cmp.Or(c.Installed, "-") }},
		{title: "FLEET.YAML", of: func(c upgrade.Component) string { return cmp.Or(c.Declared, "-") }},
		{title: "NEWEST", of: newestVersion},
		{title: "CONTRACT", of: func(c upgrade.Component) string { return c.Contract }, optional: true},
	},
}

// newestVersion is "?" if nobody could be asked.
func newestVersion(c upgrade.Component) string {
	if c.Unread {
		return "?"
	}
	return cmp.Or(c.Newest, "-")
}

func componentName(c upgrade.Component) string {
	if c.Type == c.Name {
		return c.Name
	}
	return c.Type + " " + c.Name
}

func upgradePlanView(w io.Writer, format ui.Format, p *upgrade.Plan) error {
	if err := versionTable.print(w, format, p.Components); err != nil || format == ui.Name {
		return err
	}
	for _, c := range p.Components {
		for _, line := range []struct {
			what  string
			texts []string
		}{
			{"cannot be upgraded", c.Against},
			{"replaces the Deployments", c.Restarts},
			{"stores anew", c.Converts},
			{"replaces", c.Replaces},
		} {
			if len(line.texts) > 0 {
				ui.Fprintf(w, "%s %s: %s\n", componentName(c), line.what, strings.Join(line.texts, ", "))
			}
		}
		if c.Note != "" {
			ui.Fprintf(w, "%s: %s\n", componentName(c), c.Note)
		}
	}
	if p.ToApply {
		ui.Fprintf(w, "\n`fleetctl upgrade apply` brings the cluster to fleet.yaml. No machine of a workload cluster is replaced by that.\n")
	}
	if p.ToDeclare {
		ui.Fprintf(w, "\n`fleetctl upgrade plan --to latest` puts the newest versions into the fleet repo.\n")
	}
	return nil
}
