package promotion

import (
	"context"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Status says which environment runs which revision, and which commits wait for a promotion.
type Status struct {
	FormatVersion string `json:"formatVersion"`
	// Head is the newest commit of the branch: at the remote, if there is one that could be read.
	Head string `json:"head"`
	// NotFetched says why the remote could not be read; "" if it was read, or if there is none. The rest then tells what this clone knows.
	NotFetched string `json:"notFetched,omitempty"`
	// Hint says what to do about NotFetched.
	Hint         string        `json:"hint,omitempty"`
	Environments []Environment `json:"environments"`
}

// Environment is the state of one environment on one management cluster.
type Environment struct {
	Name              string `json:"name"`
	ManagementCluster string `json:"managementCluster"`
	Channel           string `json:"channel"`
	Production        bool   `json:"production"`
	// Branch that the environment follows, if it follows no tags.
	Branch string `json:"branch,omitempty"`
	// Tag of the environment in Git: at the remote, if there is one. It is empty for an environment that follows a branch, and before the
	// first promotion.
	Tag string `json:"tag,omitempty"`
	// TagOnlyHere says that the remote does not have the tag, and so Flux cannot follow it.
	TagOnlyHere bool `json:"tagOnlyHere,omitempty"`
	// Wanted is the commit of the environment in Git. It is empty if this clone does not know it.
	Wanted string `json:"wanted,omitempty"`
	// Applied is the commit that the management cluster has applied; empty if that is not known. Ready says that
	// everything is healthy there.
	Applied string `json:"applied,omitempty"`
	Ready   bool   `json:"ready"`
	// Reason says what is not healthy, or why nothing is known.
	Reason string `json:"reason,omitempty"`
	// Waiting are the commits that a promotion would bring, newest first. NotCompared says why this clone cannot tell them; Waiting is
	// empty then.
	Waiting     []WaitingCommit `json:"waiting"`
	NotCompared string          `json:"notCompared,omitempty"`
}

// WaitingCommit is a commit that is not promoted yet.
type WaitingCommit struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Author  string `json:"author"`
}

// Look looks at all environments, or at those of the named channel. A management cluster or a remote that does not answer is a reason in
// the result, and not an error. Errors: those of the fleet repo.
func Look(ctx context.Context, store state.Store, o Options) (*Status, error) {
	p := &run{store: store, opts: o, notAsked: map[string]string{}}
	var err error
	if p.repo, err = fleetrepo.Open(o.Change.Dir); err != nil {
		return nil, err
	}
	names := p.repo.EnvironmentNames()
	if o.Channel != "" {
		if p.channel, err = p.repo.TagChannel(o.Channel); err != nil {
			return nil, p.orBehind(ctx, err)
		}
		names = p.repo.Fleet.EnvironmentsOf(p.channel.Name)
	}
	out := &Status{FormatVersion: "1", Environments: []Environment{}}
	if err := p.connectIfPossible(ctx, out); err != nil {
		return nil, err
	}
	out.Head = p.head
	for i := range p.repo.Fleet.Spec.ManagementClusters {
		m := &p.repo.Fleet.Spec.ManagementClusters[i]
		if o.Cluster != "" && o.Cluster != m.Name {
			continue
		}
		looks, lookErr := p.environmentsOn(ctx, m, names, "")
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for j, name := range names {
			e, err := p.environment(ctx, m, name)
			if err != nil {
				return nil, err
			}
			switch {
			case lookErr != nil:
				e.Reason = "not known: " + lookErr.Error()
			default:
				e.Applied, e.Ready = looks[j].Commit, len(looks[j].Missing) == 0
				if !e.Ready {
					e.Reason = looks[j].Missing[0]
				}
				if e.Ready && e.Wanted != "" && e.Applied != e.Wanted {
					e.Ready, e.Reason = false, "it has not applied the revision in Git yet"
				}
			}
			out.Environments = append(out.Environments, *e)
		}
	}
	return out, nil
}

// connectIfPossible is connect. If the remote cannot be read, it says so in out, and goes on with what this clone knows.
func (p *run) connectIfPossible(ctx context.Context, out *Status) error {
	if err := p.openGit(); err != nil {
		return err
	}
	if err := p.fetch(ctx); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		p.remote = false
		out.NotFetched, out.Hint = err.Error(), diag.Hint(err)
	}
	return p.checkBegun()
}

// environment returns what Git says of an environment.
func (p *run) environment(ctx context.Context, m *v1alpha1.ManagementCluster, name string) (*Environment, error) {
	declared, _ := p.repo.Fleet.Environment(name)
	channel := p.repo.Fleet.ChannelOf(name)
	e := &Environment{
		Name: name, ManagementCluster: m.Name, Channel: channel.Name, Production: declared.IsProduction(), Waiting: []WaitingCommit{},
	}
	if !channel.IsTag() {
		e.Branch = channel.Branch
		if channel.Name == v1alpha1.MainChannel {
			e.Wanted = p.head
		}
		return e, nil
	}
	at, err := p.positions(channel.Name)
	if err != nil {
		return nil, err
	}
	for _, position := range at {
		if position.ManagementCluster == m.Name {
			e.Tag = position.Tag
		}
	}
	if e.Tag != "" {
		e.TagOnlyHere = p.remote && !p.pushed[e.Tag]
		// p.tags lacks the tags of another channel, and somebody may have deleted a tag.
		if e.Wanted, err = p.git.Resolve("refs/tags/" + e.Tag + "^{commit}"); err != nil {
			e.Wanted, e.TagOnlyHere, e.NotCompared = "", false, "this repository has no tag "+e.Tag
			if p.remote {
				e.NotCompared = "the remote has no tag " + e.Tag
			}
			return e, nil // there is nothing to compare with
		}
	}
	if cut, err := p.cutOff(ctx, p.head, e.Wanted); err != nil {
		return nil, err
	} else if cut {
		e.NotCompared = "this clone has only a part of the history: `git fetch --unshallow` brings the rest"
		return e, nil
	}
	commits, err := p.git.Log(ctx, p.head, e.Wanted)
	if err != nil {
		return nil, err
	}
	for _, c := range commits {
		if !c.Merge && slices.ContainsFunc(c.Files, layout.InChannels) {
			e.Waiting = append(e.Waiting, WaitingCommit{c.Hash, c.Subject, c.Author})
		}
	}
	return e, nil
}
