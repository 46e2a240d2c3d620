package fleetrepo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// PauseFeature keeps changes of a feature in Git from its clusters, or lets them through again. Errors: unknown names, a feature that none
// of the named targets has.
func (r *Repo) PauseFeature(name string, opts FeatureOptions, paused bool) (*Edit, error) {
	having, err := r.Having(name, opts)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: pauses(paused) + " feature " + name, Environments: environmentsOf(having)}
	for _, t := range having {
		if _, err := r.suspendIn(e, t.FeatureFile(name), paused, anyNamed("Kustomization")); err != nil {
			return nil, err
		}
		if err := r.holdValues(e, name, t, paused); err != nil {
			return nil, err
		}
	}
	if paused {
		e.Notes = append(e.Notes, "The objects of the feature stay. Changes in Git no longer reach them, and Flux does not undo changes by hand.")
	}
	return e, nil
}

// Having returns the targets that have a feature. Without named targets it returns all that have the feature. Errors are those of
// PauseFeature.
func (r *Repo) Having(name string, opts FeatureOptions) ([]scaffold.FeatureTarget, error) {
	targets, where, err := r.candidates(name, opts)
	if err != nil {
		return nil, err
	}
	having := r.thatHave(name, targets)
	switch {
	case len(having) > 0:
	case opts.everybody():
		return nil, diag.Usage("`fleetctl feature enable "+name+"` gives it to clusters", "nobody has feature %s", name)
	default:
		return nil, diag.Usage("`fleetctl feature list` shows who has it", "nobody of %s has feature %s", where, name)
	}
	return having, nil
}

// PauseChannel stops Flux from fetching the source of a channel on every management cluster, or resumes this. Meanwhile
// the environments stay at their revision. Errors: an unknown channel, the fleet repo's branch itself, a channel
// without a source.
func (r *Repo) PauseChannel(name string, paused bool) (*Edit, error) {
	if err := r.checkChannel(name); err != nil {
		return nil, err
	}
	if name == v1alpha1.MainChannel {
		return nil, diag.Usage("`--now` suspends it on the cluster",
			"the channel %s cannot be paused by a commit: Flux would not see the later commit that resumes it", name)
	}
	// The edit concerns environments that follow the channel, but needs no promotion: the source is in the management
	// cluster's own folder.
	e := &Edit{Summary: pauses(paused) + " channel " + name}
	found := false
	for i := range r.Fleet.Spec.ManagementClusters {
		there, err := r.suspendIn(e, r.Fleet.Spec.ManagementClusters[i].Layout().SourceFile(name), paused, anyNamed("GitRepository"))
		if err != nil {
			return nil, err
		}
		found = found || there
	}
	if !found {
		return nil, noSource(name)
	}
	if paused {
		e.Notes = append(e.Notes,
			"Its environments stay at their revision: a promotion, or a commit to its branch, reaches them only after `fleetctl channel resume`.")
	}
	return e, nil
}

// noSource is the error for a channel that no management cluster has a source of.
func noSource(channel string) error {
	return diag.Errorf("its first `fleetctl promote` makes it", "channel %s has no source yet", channel)
}

func (r *Repo) checkChannel(name string) error {
	var names []string
	for _, c := range r.Fleet.Channels() {
		names = append(names, c.Name)
	}
	if !slices.Contains(names, name) {
		return diag.Unknown("channel", name, names, madeChannel(name))
	}
	return nil
}

func pauses(paused bool) string {
	if paused {
		return "Pause"
	}
	return "Resume"
}

// anyNamed selects the objects of a kind of Flux: the named ones, or all without names.
func anyNamed(kind string, names ...string) func(gotKind, name string) bool {
	return func(gotKind, name string) bool {
		return gotKind == kind && (len(names) == 0 || slices.Contains(names, name))
	}
}

// isFlux tells whether an object is one of Flux.
func isFlux(object *yaml.Node) bool {
	group, _, _ := strings.Cut(text(yamledit.Find(object, "apiVersion")), "/")
	return strings.HasSuffix(group, ".toolkit.fluxcd.io")
}

// suspendIn adds to an edit the suspension of the selected objects of a file, or its end. It tells whether the file has
// such objects; a missing file has none.
func (r *Repo) suspendIn(e *Edit, file string, suspended bool, selects func(kind, name string) bool) (bool, error) {
	if !r.exists(file) {
		return false, nil
	}
	src, err := r.read(file)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", file, err)
	}
	documents, err := documentsOf(file, src)
	if err != nil {
		return false, err
	}
	found := false
	for i, d := range documents {
		if !isFlux(d) || !selects(text(yamledit.Find(d, "kind")), text(yamledit.Find(d, "metadata", "name"))) {
			continue
		}
		found = true
		if suspended {
			src, err = yamledit.Set(src, i, yamledit.Path{"spec", "suspend"}, true)
		} else {
			src, err = yamledit.Remove(src, i, yamledit.Path{"spec", "suspend"})
		}
		if err != nil {
			return false, diag.Wrap("change "+yamledit.At(path.Clean(file), err), err, "change it in an editor")
		}
	}
	if found {
		e.Changes.Write(manifest.File{Path: file, Content: src})
	}
	return found, nil
}

// isSuspended tells whether the first object of a file is suspended. A file that is missing or cannot be read is not:
// other checks report it.
func (r *Repo) isSuspended(file string) bool {
	src, err := r.read(file)
	return err == nil && fieldOf(src, yamledit.Path{"spec", "suspend"}) == "true"
}
