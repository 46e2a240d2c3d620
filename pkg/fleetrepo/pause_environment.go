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
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// PauseEnvironment keeps changes in Git from the clusters of an environment, or lets them through again. On every management cluster it
// patches what the Flux Kustomization of the clusters applies: see scaffold.PausePatches. Clusters, features and tenants that come later
// are paused, too, and so is the next promotion. Errors: an unknown environment, an environment that nothing applies, and a flux.yaml that
// the patches do not fit.
func (r *Repo) PauseEnvironment(name string, paused bool) (*Edit, error) {
	if err := r.CheckEnvironment(name); err != nil {
		return nil, err
	}
	// In an environment that follows tags, it changes nothing that needs a promotion.
	e := &Edit{Summary: pauses(paused) + " environment " + name}
	found := false
	for _, at := range r.everyLayoutIn(name) {
		there, err := r.pauseIn(e, at, name, paused)
		if err != nil {
			return nil, err
		}
		found = found || there
	}
	if !found {
		return nil, diag.Errorf("`fleetctl init`, or the first `fleetctl promote` of its channel, adds the Kustomization that applies it",
			"nothing applies environment %s yet", name)
	}
	if paused {
		if err := r.checkPausable(name); err != nil {
			return nil, err
		}
		e.Notes = append(e.Notes, "Changes in Git no longer reach its clusters, except for Secrets and other objects beside them that are not "+
			"Flux's; Cluster API still manages their machines.")
	}
	return e, nil
}

// pauseIn is PauseEnvironment for one cloud of a management cluster. It tells whether a Flux Kustomization applies the environment there.
func (r *Repo) pauseIn(e *Edit, at layout.Layout, name string, paused bool) (bool, error) {
	file := at.ClustersFile(name)
	if !r.exists(file) {
		return false, nil
	}
	src, err := r.read(file)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", file, err)
	}
	changed, found, err := withPause(src, paused)
	if err != nil {
		return false, diag.Wrap("change "+yamledit.At(file, err), err, "change it in an editor")
	}
	if !found {
		return false, nil
	}
	e.Changes.Write(manifest.File{Path: file, Content: changed})
	if paused {
		return true, nil
	}
	return true, r.resumeApps(e, at, name)
}

// resumeApps ends a pause of an earlier fleetctl, which also suspended the Kustomization apps of the clusters' own Flux.
func (r *Repo) resumeApps(e *Edit, at layout.Layout, name string) error {
	files, err := r.filesBelow(at.Sync(name))
	if err != nil || r.Fleet.ChannelOf(name).IsTag() { // the clusters run the files of the tag
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".yaml") && !strings.HasSuffix(file, ".sops.yaml") {
			if _, err := r.suspendIn(e, file, false, anyNamed("Kustomization", "apps")); err != nil {
				return err
			}
		}
	}
	return nil
}

// withPause returns the file of an environment's Kustomizations with or without the pause. found tells whether the file has such objects.
func withPause(src []byte, paused bool) (changed []byte, found bool, err error) {
	documents, err := yamledit.Parse(src)
	if err != nil {
		return nil, false, err
	}
	for i, d := range documents {
		if !isFlux(d) || text(yamledit.Find(d, "kind")) != "Kustomization" {
			continue
		}
		found = true
		// A Kustomization that is suspended itself would apply neither the pause nor its end.
		if src, err = yamledit.Remove(src, i, yamledit.Path{"spec", "suspend"}); err != nil {
			return nil, false, err
		}
		switch {
		case !paused:
			src, err = removePause(src, i, yamledit.Find(d, "spec", "patches"))
		case !hasPause(d):
			src, err = appendPause(src, i)
		}
		if err != nil {
			return nil, false, err
		}
	}
	return src, found, nil
}

func appendPause(src []byte, document int) ([]byte, error) {
	patches, err := scaffold.PausePatches()
	if err != nil {
		return nil, err
	}
	for _, p := range patches {
		if src, err = yamledit.Append(src, document, yamledit.Path{"spec", "patches"}, p); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// removePause removes what appendPause has added.
func removePause(src []byte, document int, patches *yaml.Node) ([]byte, error) {
	if patches == nil {
		return src, nil
	}
	var err error
	for i := range slices.Backward(patches.Content) {
		if !scaffold.IsPausePatch(text(yamledit.Find(patches, i, "patch"))) {
			continue
		}
		if src, err = yamledit.RemoveItem(src, document, yamledit.Path{"spec", "patches", i}); err != nil {
			return nil, err
		}
	}
	return src, nil
}

// pausedMeanwhile changes the file of a paused environment's Kustomization as it is without the pause, and pauses it again.
func pausedMeanwhile(src []byte, change func(src []byte) ([]byte, error)) ([]byte, error) {
	src, _, err := withPause(src, false)
	if err != nil {
		return nil, err
	}
	if src, err = change(src); err != nil {
		return nil, err
	}
	src, _, err = withPause(src, true)
	return src, err
}

// hasPause tells whether a Flux Kustomization has the patches of a pause.
func hasPause(kustomization *yaml.Node) bool {
	patches := yamledit.Find(kustomization, "spec", "patches")
	return patches != nil && patches.Kind == yaml.SequenceNode && slices.ContainsFunc(patches.Content, func(p *yaml.Node) bool {
		return scaffold.IsPausePatch(text(yamledit.Find(p, "patch")))
	})
}

// isPaused tells whether the Kustomization of an environment's clusters in a file is paused: with patches or, by an earlier fleetctl or by
// hand, suspended. A file that is missing or cannot be read is not: other checks report it.
func (r *Repo) isPaused(file string) bool {
	src, err := r.read(file)
	if err != nil {
		return false
	}
	documents, err := yamledit.Parse(src)
	return err == nil && slices.ContainsFunc(documents, func(d *yaml.Node) bool {
		return isFlux(d) && (hasPause(d) || text(yamledit.Find(d, "spec", "suspend")) == "true")
	})
}

// checkPausable returns an error if the pause of an environment would break the Kustomizations of one of its clusters. Patches are lists,
// and a patch cannot add to a list that may be missing. So the pause has to know whether a Kustomization has patches.
func (r *Repo) checkPausable(environment string) error {
	places, err := r.places("")
	if err != nil {
		return err
	}
	for _, p := range places {
		file := path.Join(path.Dir(p.file), layout.FluxFile)
		if p.environment != environment || !r.exists(file) {
			continue
		}
		src, err := r.read(file)
		if err != nil {
			return fmt.Errorf("read how cluster %s runs Flux: %w", p.target().Cluster, err)
		}
		documents, err := documentsOf(file, src)
		if err != nil {
			return err
		}
		for _, d := range documents {
			name := text(yamledit.Find(d, "metadata", "name"))
			has := yamledit.Find(d, "spec", "patches") != nil
			hint := "undo your change there, or pause it with --now"
			switch part := text(yamledit.Find(d, "metadata", "labels", scaffold.FluxLabel)); {
			case part == "sync" && has:
				return diag.Errorf(hint, "%s: the Kustomization %s has patches of its own, and the pause would replace them", file, name)
			case (part == "source" || part == "apps") && !has:
				return diag.Errorf(hint, "%s: the Kustomization %s has lost the patches to which the pause adds its own", file, name)
			}
		}
	}
	return nil
}

// Paused returns the environments that are paused in Git, with notes that say how a commit gets through to them again.
func (r *Repo) Paused(environments []string) (paused, notes []string) {
	for _, env := range environments {
		channel := r.Fleet.ChannelOf(env).Name
		hint := ""
		for _, l := range r.everyLayoutIn(env) {
			switch {
			case r.isPaused(l.ClustersFile(env)):
				hint = fmt.Sprintf("Environment %s is paused: `fleetctl environment resume %s` lets this through to its clusters.", env, env)
			case channel != v1alpha1.MainChannel && r.isSuspended(l.SourceFile(channel)):
				hint = fmt.Sprintf("Channel %s is paused: `fleetctl channel resume %s` lets this through to its environments.", channel, channel)
			}
		}
		if hint != "" {
			paused = append(paused, env)
			notes = append(notes, hint)
		}
	}
	return paused, sortedSet(notes)
}
