package cmd

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/views"
)

// pausing pauses and resumes objects of one kind: by a commit, or at once on the cluster.
type pausing struct {
	noun     string
	what     argument
	byCommit func(r *fleetrepo.Repo, name string, paused bool) (*fleetrepo.Edit, error)
	atOnce   func(r *fleetrepo.Repo, name string) ([]fleetrepo.FluxObject, error)
	// onlyAtOnce is the name of the object that no commit can pause; "" if there is none.
	onlyAtOnce string
}

// now is a part of the help of such a command.
const now = `

--now changes the objects on the cluster at once, without a commit. "fleetctl status" shows the difference until Git has
the change too. If the file in Git sets suspend, Git wins: Flux changes the object back with its next reconciliation.`

// addPausing adds the commands pause and resume to a noun.
func addPausing(f *factory, parent *cobra.Command, pauses, resumes string, p func(c *cobra.Command) pausing) {
	for _, paused := range []bool{true, false} {
		c := &cobra.Command{Use: "pause NAME", Aliases: []string{"suspend"}, Short: pauses}
		if !paused {
			c = &cobra.Command{Use: "resume NAME", Short: resumes}
		}
		f.pauses(c, p(c), paused)
		parent.AddCommand(c)
	}
}

// pauses makes c a command that pauses, or resumes.
func (f *factory) pauses(c *cobra.Command, p pausing, paused bool) {
	o := &pauseOptions{pausing: p, paused: paused, verb: c.Name()}
	if c.Long == "" {
		c.Long = c.Short + "."
	}
	c.Long += now + editing
	c.Example = "  fleetctl " + p.noun + " " + c.Name() + " NAME --push\n  fleetctl " + p.noun + " " + c.Name() + " NAME --now"
	c.RunE = running(f, o, runPause)
	c.Flags().BoolVar(&o.now, "now", false, "change the cluster at once, without a commit")
	f.managementFlag(c, "with --now: change only this management cluster")
	doesWithout(c, worksOnAll)
	f.addReach(c)
	o.add(c)
	takes(f, c, p.what)
}

// pauseOptions are the flags of a command that pauses or resumes.
type pauseOptions struct {
	changeFlags
	named
	pausing
	// verb is the name of the command. paused tells whether it pauses; otherwise it resumes.
	verb   string
	paused bool
	now    bool
}

func (o *pauseOptions) complete(f *factory, args ...string) error {
	if o.now && (o.dryRun || o.commit || o.push || o.pr) {
		return diag.Usage("run the command twice: once with --now, and once without",
			"use either --now, which changes the cluster at once, or the flags that change Git")
	}
	return o.named.complete(f, args...)
}

func (o *pauseOptions) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return o.byCommit(r, o.name, o.paused)
}

func runPause(ctx context.Context, f *factory, o *pauseOptions) error {
	if o.now {
		return pauseNow(ctx, f, o)
	}
	return runEdit(ctx, f, o)
}

// managementToPause returns the management clusters of the fleet repo, or the one that --management, --kubeconfig or --context names.
func (f *factory) managementToPause(repo *fleetrepo.Repo) ([]string, error) {
	if !f.flags.nameOne() {
		return repo.ManagementClusterNames(), nil
	}
	m, err := repo.Fleet.ManagementCluster(f.flags.management)
	if err != nil {
		return nil, err
	}
	return []string{m.Name}, nil
}

// targetFlags are the flags that say which of a feature's targets are paused.
var targetFlags = []string{"environment", "cluster", "on-management"}

// inGit returns the command that makes the same change in Git; "" if no commit can make it.
func (o *pauseOptions) inGit(f *factory, repo *fleetrepo.Repo) string {
	if o.name == o.onlyAtOnce {
		return ""
	}
	publish := "--push"
	if repo.Fleet.Spec.Git.Scheme() == v1alpha1.GitLocal { // Flux follows the commits in this folder
		publish = "--commit"
	}
	return diag.ShellCommand(slices.Concat([]string{"fleetctl", o.noun, o.verb, o.name}, f.typedWords(targetFlags), []string{publish})...)
}

// ending returns the command that ends the pause at once.
func (o *pauseOptions) ending(f *factory) string {
	reach := f.typedWords(append([]string{"management", "kubeconfig", "context"}, targetFlags...))
	return diag.ShellCommand(slices.Concat([]string{"fleetctl", o.noun, "resume", o.name, "--now"}, reach)...)
}

func pauseNow(ctx context.Context, f *factory, p *pauseOptions) error {
	repo, err := f.fleetRepo()
	if err != nil {
		return err
	}
	objects, err := p.atOnce(repo, p.name)
	if err != nil {
		return err
	}
	names, err := f.managementToPause(repo)
	if err != nil {
		return err
	}
	done := []management.Switched{}
	var failed []error
	for _, cluster := range names {
		var here []management.FluxObject
		for _, o := range objects {
			if o.ManagementCluster == cluster {
				here = append(here, management.FluxObject{
					Cluster: o.Cluster, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Below: o.Below, InGit: o.InGit,
				})
			}
		}
		if len(here) == 0 {
			continue
		}
		target, err := management.Find(f.store(), cluster, repo.Dir)
		if err == nil {
			var some []management.Switched
			some, err = management.SetSuspended(ctx, target, here, p.paused)
			done = append(done, some...)
		}
		failed = append(failed, err)
	}
	show := f.show(views.Paused(p.paused, done, p.inGit(f, repo), p.ending(f)))
	if errors.Join(failed...) == nil && !slices.ContainsFunc(done, func(o management.Switched) bool { return !o.Absent }) {
		failed = append(failed, diag.NotReady("`fleetctl status` shows Flux's objects there",
			"no object of %s %s is on a cluster yet", p.noun, p.name))
	}
	return errors.Join(append(failed, show)...)
}
