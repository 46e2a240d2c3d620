package fleetrepo

import (
	"bytes"
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
	"github.com/fleetctl/fleetctl/pkg/within"
)

// The annotations by which a chart describes its clusters.
const (
	// fluxAnnotation is "none" if the clusters' API server cannot run Flux.
	fluxAnnotation = "fleetctl.dev/flux"
	// CNIAnnotation says that the clusters come up without a network. It names their network, a folder of addons/cni,
	// or is CNIRequired.
	CNIAnnotation = "fleetctl.dev/cni"
	// CNIRequired leaves the network open: the only network of the repo, or the one that the user names.
	CNIRequired = "required"
)

// fluxFor decides how a cluster runs Flux, and with which network. The options come first, then what the cluster has now. For a new
// cluster, whose present is nil, what the chart needs and the repo has comes second.
func (r *Repo) fluxFor(
	opts AddOptions, present *scaffold.ClusterOptions, ch *chart, mgmt *v1alpha1.ManagementCluster, at layout.Layout, e *Edit,
) (scaffold.ClusterOptions, error) {
	out := scaffold.ClusterOptions{Flux: opts.Flux, CNI: opts.CNI}
	able := ch.annotations[fluxAnnotation] != string(scaffold.FluxNone)
	switch {
	case !able && opts.Flux != "" && opts.Flux != scaffold.FluxNone:
		return out, diag.Usage("leave --flux out", "a cluster of flavour %s cannot run Flux", opts.Flavour)
	case !able:
		out.Flux = scaffold.FluxNone
	case r.manages(mgmt, opts.Name) && opts.Flux != "" && opts.Flux != scaffold.FluxNone:
		return out, diag.Usage("leave --flux out", "%s is a management cluster of this fleet: `fleetctl init --management %s` brings its Flux",
			opts.Name, opts.Name)
	case r.manages(mgmt, opts.Name):
		out.Flux = scaffold.FluxNone
		e.Notes = append(e.Notes, fmt.Sprintf("When it is Available, `fleetctl init --management %s` makes it a management cluster.", opts.Name))
	case opts.Flux == "" && present != nil:
		out.Flux = present.Flux
	case opts.Flux == "":
		out.Flux = scaffold.FluxOwn
	}
	if err := r.giveNetwork(e, &out, present, ch, opts.Name); err != nil {
		return out, err
	}
	released := r.isReleased(mgmt, at, opts.Environment)
	out.SourceDir = r.sourceDir(mgmt, at, opts.Environment, released)
	if out.Flux == scaffold.FluxRemote {
		return out, r.noteNeedsFlux(e, at, opts.Environment)
	}
	if out.Flux != scaffold.FluxOwn {
		return out, nil
	}
	ready, err := r.environmentFlux(&e.Changes, mgmt, at, opts.Environment, released)
	if err == nil && !ready {
		out.Flux, out.CNI = scaffold.FluxNone, ""
		e.Notes = append(e.Notes,
			fmt.Sprintf("It gets no Flux: the repo has none for %s. Run `fleetctl init`, then `fleetctl cluster flux %[1]s/%s`.",
				opts.Environment, opts.Name))
	}
	if err != nil || !ready {
		return out, err
	}
	reads, err := r.mayRead(&e.Changes, at, opts.Environment)
	if err == nil && !reads {
		e.Notes = append(e.Notes,
			"Its Flux cannot read the fleet repo yet: `fleetctl init` was given no token for it (--flux-token-file or FLEETCTL_FLUX_TOKEN).")
	}
	return out, err
}

// mayRead tells whether the clusters of an environment, with the changes, get credentials to read the fleet repo, or
// need none.
func (r *Repo) mayRead(cs *manifest.ChangeSet, at layout.Layout, environment string) (bool, error) {
	credentials := at.Credentials(environment)
	if r.exists(credentials) || slices.ContainsFunc(cs.Files(), func(f manifest.File) bool { return f.Path == credentials }) {
		return true, nil
	}
	sync, err := r.generated(at.SyncFile())
	if err != nil || sync == nil {
		return true, err
	}
	documents, err := yamledit.Parse(sync)
	if err != nil {
		return true, nil //nolint:nilerr // the user has written it, and `fleetctl validate` checks it
	}
	asks := slices.ContainsFunc(documents, func(d *yaml.Node) bool { return yamledit.Find(d, "spec", "secretRef") != nil })
	return !asks, nil
}

// SetFlux changes which Flux applies a cluster's apps, and the cluster's network. For mode and cni, "" means what the cluster's flux.yaml
// says, or without such a file the default of a new cluster of its flavour. It replaces or removes the cluster's flux.yaml. Errors: those
// of Add about Flux and the network.
func (r *Repo) SetFlux(name string, mode scaffold.FluxMode, cni string) (*Edit, error) {
	c, err := r.find(name)
	if err != nil {
		return nil, err
	}
	ch, err := r.chart(c.Flavour)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Set how cluster " + c.Name + " runs Flux", Environments: []string{c.Environment}}
	dir := path.Dir(c.File)
	file := path.Join(dir, layout.FluxFile)
	there, err := r.generated(file)
	if err != nil {
		return nil, err
	}
	var present *scaffold.ClusterOptions
	if there != nil {
		now := fluxOptions(c.at, c.Environment, c.Name, there)
		present = &now
	}
	asked := AddOptions{Name: c.Name, Environment: c.Environment, Flavour: c.Flavour, Flux: mode, CNI: cni}
	declared, err := r.fluxFor(asked, present, ch, c.mgmt, c.at, e)
	if err != nil {
		return nil, err
	}
	declared.Name, declared.Layout, declared.Environment, declared.Flavour = c.Name, c.at, c.Environment, c.Flavour
	files, err := scaffold.ClusterFiles(declared)
	if err != nil {
		return nil, err
	}
	switch {
	case declared.Flux != scaffold.FluxNone:
		content := files[len(files)-1].Content
		if there != nil {
			if content, err = r.keepLines(c.at, c.Environment, c.Name, file, there, content); err != nil {
				return nil, err
			}
		}
		e.Changes.Write(manifest.File{Path: file, Content: content})
	case mode == scaffold.FluxNone && there != nil:
		e.Changes.Delete(file)
	case mode != scaffold.FluxNone && ch.annotations[fluxAnnotation] != string(scaffold.FluxNone) && !r.manages(c.mgmt, c.Name):
		return nil, diag.Errorf("`fleetctl init --management "+c.mgmt.Name+
			"` brings it; or let the management cluster's own apply what the cluster runs, with --flux remote",
			"the repo has no Flux yet for the clusters of %s", c.Environment)
	default:
		e.AsWanted = "cluster " + c.Name + " runs no Flux"
		return e, nil
	}
	if err := r.keepFolders(&e.Changes, c.at, c.Environment, c.Name, declared.Flux != scaffold.FluxNone); err != nil {
		return nil, err
	}
	if there != nil && declared.Flux != scaffold.FluxOwn && !bytes.Contains(there, []byte(scaffold.FluxLabel+": apps")) {
		e.Notes = append(e.Notes, "The Flux on cluster "+c.Name+" stays there and keeps running: `flux uninstall` removes it.")
	}
	return e, r.enlist(&e.Changes, path.Dir(dir), file, declared.Flux != scaffold.FluxNone)
}

// sourceDir is the folder with the source that the clusters of an environment follow; "" if the source is in the
// environment's folder. released tells whether the environment's channel has a revision to follow.
func (r *Repo) sourceDir(m *v1alpha1.ManagementCluster, at layout.Layout, environment string, released bool) string {
	c := r.followed(m, at, environment, released)
	if c.Name == v1alpha1.MainChannel {
		return ""
	}
	return m.Layout().SourceDir(c.Name)
}

// followed returns the channel that an environment is applied from in a cloud: its own or, until its own has a tag with the folder of the
// environment, the channel that it followed before.
func (r *Repo) followed(m *v1alpha1.ManagementCluster, at layout.Layout, environment string, released bool) v1alpha1.Channel {
	if !released {
		source := r.appliedFrom(m, at, environment)
		for _, c := range r.Fleet.Channels() {
			if c.Source() == source {
				return c
			}
		}
	}
	return r.Fleet.ChannelOf(environment)
}

// appliedFrom returns the source from which a management cluster applies an environment in a cloud or, if it does not apply it there, in
// its own cloud. It is empty if nothing tells.
func (r *Repo) appliedFrom(m *v1alpha1.ManagementCluster, at layout.Layout, environment string) string {
	file := at.ClustersFile(environment)
	if !r.exists(file) {
		file = m.Layout().ClustersFile(environment)
	}
	if !r.exists(file) {
		return ""
	}
	src, err := r.read(file)
	if err != nil {
		return ""
	}
	documents, err := yamledit.Parse(src)
	if err != nil || len(documents) == 0 {
		return ""
	}
	return text(yamledit.Find(documents[0], "spec", "sourceRef", "name"))
}

// isReleased tells whether an environment follows its channel in a cloud, and does not wait for a tag of it: the first one, or one with the
// folder of the environment.
func (r *Repo) isReleased(m *v1alpha1.ManagementCluster, at layout.Layout, environment string) bool {
	c := r.Fleet.ChannelOf(environment)
	if !c.IsTag() {
		return true
	}
	from := r.appliedFrom(m, at, environment)
	return r.exists(m.Layout().SourceFile(c.Name)) && (from == "" || from == c.Source())
}

// fluxFollows lets the Flux of an environment's clusters follow the environment's channel. Changes that somebody has
// made in a flux.yaml stay. If they are in the way, fluxFollows changes nothing at all, because the cluster would be
// left without a source.
func (r *Repo) fluxFollows(e *Edit, m *v1alpha1.ManagementCluster, at layout.Layout, environment string, released bool) error {
	if _, err := r.environmentFlux(&e.Changes, m, at, environment, released); err != nil {
		return err
	}
	names, err := r.folders(at.Environment(environment))
	if err != nil {
		return err
	}
	for _, name := range names {
		file := path.Join(at.Cluster(environment, name), layout.FluxFile)
		there, err := r.generated(file)
		if err != nil {
			return err
		}
		if there == nil {
			continue
		}
		changed, err := r.fluxFileFor(at, r.sourceDir(m, at, environment, released), environment, name, file, there)
		if err != nil {
			return err
		}
		e.Changes.Write(manifest.File{Path: file, Content: changed})
	}
	return nil
}

// fluxFileFor returns a cluster's flux.yaml for its present settings, with the folder of its source. Changes that
// somebody has made in it stay.
func (r *Repo) fluxFileFor(at layout.Layout, source, environment, name, file string, there []byte) ([]byte, error) {
	o := fluxOptions(at, environment, name, there)
	o.SourceDir = source
	wanted, err := fluxFile(o)
	if err != nil {
		return nil, err
	}
	return r.keepLines(at, environment, name, file, there, wanted)
}

// keepLines merges a new flux.yaml into the one in the repo. The base of the merge is the file that fleetctl would have
// written before, so lines that a person has changed stay. If both sides change the same lines, the error names them.
func (r *Repo) keepLines(at layout.Layout, environment, name, file string, there, wanted []byte) ([]byte, error) {
	before, err := fluxFile(fluxOptions(at, environment, name, there))
	if err != nil {
		return nil, err
	}
	merged, ok := manifest.MergeText(before, there, wanted)
	if ok {
		return merged, nil
	}
	ours := there
	if manifest.CRLF(there) {
		ours = manifest.LF(there)
	}
	line := 1
	if conflicts := manifest.Conflicts(before, ours, wanted); len(conflicts) > 0 {
		line = conflicts[0].Line
	}
	return nil, diag.Errorf("remove your lines, run it again, and add them again; or delete the file, and `fleetctl cluster flux "+
		r.called(environment, name)+"` writes it anew",
		"%s:%d: you have changed lines that fleetctl has to change", file, line)
}

// fluxOptions are the options with which a cluster's flux.yaml was made, as far as its objects tell them.
func fluxOptions(at layout.Layout, environment, name string, there []byte) scaffold.ClusterOptions {
	o := scaffold.ClusterOptions{Layout: at, Environment: environment, Name: name, Flavour: "any", Flux: scaffold.FluxOwn}
	documents, err := yamledit.Parse(there)
	if err != nil {
		return o // the team has written the object itself
	}
	for _, d := range documents {
		switch text(yamledit.Find(d, "metadata", "labels", scaffold.FluxLabel)) {
		case "cni":
			o.CNI = networkIn(d)
		case "apps":
			o.Flux, o.SourceDir = scaffold.FluxRemote, sourceOfApps(at, d)
		case "source":
			o.SourceDir = strings.TrimPrefix(text(yamledit.Find(d, "spec", "path")), "./")
		}
	}
	return o
}

// sourceOfApps returns the folder of the source that a patch gives to the apps of a cluster without Flux; "" if no patch does.
func sourceOfApps(at layout.Layout, object *yaml.Node) string {
	patches := yamledit.Find(object, "spec", "patches")
	if patches == nil {
		return ""
	}
	for i := range patches.Content {
		documents, err := yamledit.Parse([]byte(text(yamledit.Find(patches, i, "patch"))))
		if err != nil || len(documents) == 0 {
			continue // somebody has written it
		}
		if name := text(yamledit.Find(documents[0], "spec", "sourceRef", "name")); name != "" {
			return at.SourceDir(name)
		}
	}
	return ""
}

// fluxFile is a flux.yaml as fleetctl writes it.
func fluxFile(o scaffold.ClusterOptions) ([]byte, error) {
	files, err := scaffold.ClusterFiles(o)
	if err != nil {
		return nil, err
	}
	return files[len(files)-1].Content, nil
}

// environmentFlux adds missing files for the Flux of an environment's clusters, copied from the management cluster and other
// environments. It returns false if there is nothing to copy yet, because init makes the first such files.
func (r *Repo) environmentFlux(
	cs *manifest.ChangeSet, m *v1alpha1.ManagementCluster, at layout.Layout, environment string, released bool,
) (bool, error) {
	components, err := r.generated(path.Join(m.Dir(), layout.FluxDir, layout.ComponentsFile))
	if err != nil {
		return false, err
	}
	sync, err := r.generated(at.SyncFile())
	if err != nil {
		return false, err
	}
	if components == nil || sync == nil {
		return r.exists(at.WorkloadFlux(environment)) || r.presentWith(cs)(path.Join(at.WorkloadFlux(environment), layout.ComponentsFile)), nil
	}
	opts := scaffold.WorkloadFluxOptions{Layout: at, Environment: environment, Components: components}
	if r.followed(m, at, environment, released).Name == v1alpha1.MainChannel {
		if opts.Source, err = scaffold.SourceOf(sync); err != nil {
			return false, err
		}
	}
	files, err := scaffold.WorkloadFluxFiles(opts)
	if err != nil {
		return false, err
	}
	present := r.presentWith(cs)
	cs.Write(scaffold.Missing(files, present)...)
	if source := path.Join(at.Sync(environment), layout.SourceFile); opts.Source == nil && present(source) {
		cs.Delete(source)
	}
	return true, r.copyCredentials(cs, m, at, environment)
}

// copyCredentials copies the encrypted credentials of another environment of the same management cluster to an
// environment in a cloud, because both read the same repo.
func (r *Repo) copyCredentials(cs *manifest.ChangeSet, m *v1alpha1.ManagementCluster, at layout.Layout, environment string) error {
	if r.presentWith(cs)(at.Credentials(environment)) {
		return nil
	}
	for _, l := range r.Fleet.Layouts(m) {
		for _, other := range r.EnvironmentNames() {
			content, err := r.generated(l.Credentials(other))
			if err != nil {
				return err
			}
			if content != nil {
				cs.Write(manifest.File{Path: at.Credentials(environment), Content: content})
				return nil
			}
		}
	}
	return nil
}

// maxGenerated is more than Flux's manifests have, some 900 KiB.
const maxGenerated = 16 << 20

// generated reads a file that fleetctl has written, which may be large. It returns nil if the file does not exist.
func (r *Repo) generated(name string) ([]byte, error) {
	if !r.exists(name) {
		return nil, nil
	}
	content, err := within.ReadFile(r.Dir, name, maxGenerated)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content, nil
}
