package fleetrepo

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Environment is a group of clusters.
type Environment struct {
	Name     string `json:"name"`
	Clusters int    `json:"clusters"`
	// Channel that it follows.
	Channel    string `json:"channel"`
	Production bool   `json:"production"`
	// Declared says that fleet.yaml lists the environment. A new management cluster does not apply an environment that
	// is only a folder.
	Declared bool `json:"declared"`
}

// EnvironmentNames are the names that fleet.yaml lists, in its order.
func (r *Repo) EnvironmentNames() []string { return r.Fleet.EnvironmentNames() }

// Environments lists the environments of fleet.yaml in its order, then folders that fleet.yaml does not list. Each has
// the number of its clusters.
func (r *Repo) Environments() ([]Environment, error) {
	places, err := r.places("")
	if err != nil {
		return nil, err
	}
	all := make([]Environment, 0, len(r.Fleet.Spec.Environments))
	for _, e := range r.Fleet.Spec.Environments {
		all = append(all, Environment{Name: e.Name, Channel: r.Fleet.ChannelOf(e.Name).Name, Production: e.IsProduction(), Declared: true})
	}
	for _, p := range places {
		i := slices.IndexFunc(all, func(e Environment) bool { return e.Name == p.environment })
		if i < 0 {
			i, all = len(all), append(all, Environment{
				Name: p.environment, Channel: v1alpha1.MainChannel, Production: v1alpha1.Environment{Name: p.environment}.IsProduction(),
			})
		}
		if r.exists(p.file) {
			all[i].Clusters++
		}
	}
	return all, nil
}

// CheckEnvironment returns an error, with the nearest right name, for an environment that neither fleet.yaml nor a folder knows.
func (r *Repo) CheckEnvironment(name string) error {
	all, err := r.Environments()
	if err != nil {
		return err
	}
	names := make([]string, 0, len(all))
	for _, e := range all {
		if e.Name == name {
			return nil
		}
		names = append(names, e.Name)
	}
	return unknownEnvironment(name, names)
}

// unknownEnvironment is the error for a name that is not among the known environments.
func unknownEnvironment(name string, known []string) error {
	return diag.Unknown("environment", name, known, "`fleetctl environment add "+name+"` makes one")
}

// EnvironmentOptions are the settings of an environment.
type EnvironmentOptions struct {
	// Channel that the environment follows. "" leaves the channel as it is; for a new environment that is main.
	Channel string
	// Production says whether people depend on the environment. nil leaves it unchanged; for a new environment its name decides.
	Production *bool
}

// AddEnvironment lists an environment in fleet.yaml and adds the files with which every management cluster applies its
// clusters. Existing files stay as they are. Errors: a bad name, an unknown channel, a production environment on a
// branch in a fleet with tags.
func (r *Repo) AddEnvironment(name string, opts EnvironmentOptions) (*Edit, error) {
	e := &Edit{Summary: "Add environment " + name}
	if slices.Contains(r.EnvironmentNames(), name) {
		return e, r.setEnvironment(e, name, opts)
	}
	fleet, err := r.readFleet()
	if err != nil {
		return nil, err
	}
	wanted := v1alpha1.Environment{Name: name, Production: opts.Production}
	if opts.Channel != v1alpha1.MainChannel {
		wanted.Channel = opts.Channel
	}
	if err := r.checkEnvironment(name, opts); err != nil {
		return nil, err
	}
	if err := fleet.append("environments", v1alpha1.Node(wanted)); err != nil {
		return nil, err
	}
	after, err := fleet.finish(&e.Changes)
	if err != nil {
		return nil, r.refusedEnvironment(err, name)
	}
	return e, after.follow(e, after.Fleet.ChannelOf(name).Name, promotion{}, []string{name})
}

// SetEnvironment changes which channel an environment follows, or whether it is production. Errors are those of AddEnvironment, and an
// unknown environment.
func (r *Repo) SetEnvironment(name string, opts EnvironmentOptions) (*Edit, error) {
	if opts == (EnvironmentOptions{}) {
		return nil, diag.Usage("give --channel or --production", "there is nothing to change")
	}
	summary := "Change environment " + name
	if opts.Channel != "" {
		summary = fmt.Sprintf("Let environment %s follow channel %s", name, opts.Channel)
	}
	e := &Edit{Summary: summary}
	return e, r.setEnvironment(e, name, opts)
}

func (r *Repo) setEnvironment(e *Edit, name string, opts EnvironmentOptions) error {
	fleet, err := r.readFleet()
	if err != nil {
		return err
	}
	if err := r.checkEnvironment("", opts); err != nil {
		return err
	}
	if opts.Channel != "" {
		if err := fleet.setChannel(name, opts.Channel); err != nil {
			return err
		}
	}
	if opts.Production != nil {
		if err := fleet.set(name, "production", *opts.Production); err != nil {
			return err
		}
	}
	after, err := fleet.finish(&e.Changes)
	if err != nil {
		return r.refusedEnvironment(err, name)
	}
	return after.follow(e, after.Fleet.ChannelOf(name).Name, promotion{}, []string{name})
}

// checkEnvironment checks the settings that the user gave. name is "" for an existing environment.
func (r *Repo) checkEnvironment(name string, opts EnvironmentOptions) error {
	if name != "" {
		if _, err := scaffold.EnvironmentFiles(layout.Layout{Cloud: "x", Generation: "x"}, scaffold.Environment{Name: name}); err != nil {
			return err
		}
	}
	var channels []string
	for _, c := range r.Fleet.Channels() {
		channels = append(channels, c.Name)
	}
	if opts.Channel != "" && !slices.Contains(channels, opts.Channel) {
		return diag.Unknown("channel", opts.Channel, channels, madeChannel(opts.Channel))
	}
	return nil
}

// applied makes the files with which a management cluster applies an environment, in each cloud of the environment, and
// lets them follow the environment's channel. released tells whether the channel has a revision to follow. If not, or if
// this revision lacks the environment's folder, a new environment is not applied, and an existing one keeps its source.
// move is the promotion that makes the files, if a promotion does.
func (r *Repo) applied(e *Edit, m *v1alpha1.ManagementCluster, name string, released bool, move promotion) error {
	for _, at := range r.layoutsIn(m, name) {
		if err := r.appliedIn(e, m, at, name, released, move); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repo) appliedIn(
	e *Edit, m *v1alpha1.ManagementCluster, at layout.Layout, name string, released bool, move promotion,
) error {
	channel := r.Fleet.ChannelOf(name)
	source, file := channel.Source(), at.ClustersFile(name)
	waits, err := r.awaits(m, at, name, released, move)
	if err != nil {
		return err
	}
	released = released && !waits
	files, err := scaffold.EnvironmentFolder(at, scaffold.Environment{Name: name, Source: source, Unreleased: !released})
	if err != nil {
		return err
	}
	e.Changes.Write(scaffold.Missing(files, r.exists)...)
	if err := r.fluxFollows(e, m, at, name, released); err != nil {
		return err
	}
	if waits && move.tag == "" {
		e.Notes = append(e.Notes, awaitsPromotion(at.Environment(name), channel.Name)+r.untilThen(m, at, name))
	}
	if !released {
		return nil
	}
	if err := r.listed(&e.Changes, m.Dir(), path.Base(file), true); err != nil {
		return err
	}
	src, err := r.appliesEnvironment(m, at, name)
	if err != nil || src == nil {
		return err
	}
	if src, err = followSource(src, at, name, source); err != nil {
		return diag.Wrap("change "+yamledit.At(file, err), err, "let its sourceRef name "+source+" in an editor")
	}
	e.Changes.Write(manifest.File{Path: file, Content: src})
	return nil
}

// appliesEnvironment returns the text of the Kustomization for the folder of an environment in a cloud. If the file
// does not exist, it converts the file for the home's folder. It returns nil if neither file exists.
func (r *Repo) appliesEnvironment(m *v1alpha1.ManagementCluster, at layout.Layout, name string) ([]byte, error) {
	if file := at.ClustersFile(name); r.exists(file) {
		src, err := r.read(file)
		if err != nil {
			return nil, fmt.Errorf("read what applies environment %s: %w", name, err)
		}
		return src, nil
	}
	like, err := r.clustersFile(m, at, name)
	if err != nil || like == nil {
		return nil, err
	}
	return like.Content, nil
}

// withEnvironment adds the missing files with which an existing management cluster applies an environment in a cloud.
// Without these files, Flux would never make a cluster of the environment. An environment of a channel of tags is
// applied from the first tag that has its folder. Before `fleetctl init`, which writes what is missing, only a further
// cloud gets its file, as a copy of the home's: init does not know what somebody has changed there, such as a pause.
func (r *Repo) withEnvironment(e *Edit, m *v1alpha1.ManagementCluster, at layout.Layout, name string) error {
	if r.exists(at.ClustersFile(name)) || !r.exists(path.Join(m.Dir(), layout.FluxDir)) && !r.exists(m.Layout().ClustersFile(name)) {
		return nil
	}
	if applied, err := r.appliesAnyhow(m, at.Environment(name)); err != nil || applied {
		return err
	}
	c := r.Fleet.ChannelOf(name)
	if c.IsTag() {
		if r.exists(at.SourceFile(c.Name)) {
			e.Notes = append(e.Notes, awaitsPromotion(at.Environment(name), c.Name))
		}
		return nil
	}
	like, err := r.clustersFile(m, at, name)
	if err != nil {
		return err
	}
	files, err := scaffold.EnvironmentFolder(at, scaffold.Environment{Name: name, Source: c.Source()})
	if err != nil {
		return err
	}
	e.Changes.Write(scaffold.Missing(files, r.presentWith(&e.Changes))...)
	if like != nil {
		e.Changes.Write(*like)
	}
	file := at.ClustersFile(name)
	return r.listed(&e.Changes, path.Dir(file), path.Base(file), true)
}

// appliesAnyhow tells whether somebody has written a Flux Kustomization for a management cluster that applies a folder,
// or a folder above it.
func (r *Repo) appliesAnyhow(m *v1alpha1.ManagementCluster, dir string) (bool, error) {
	files, err := r.filesBelow(m.Dir())
	if err != nil {
		return false, err
	}
	for _, name := range files {
		if ext := path.Ext(name); ext != ".yaml" && ext != ".yml" || scaffold.IsGenerated(name) {
			continue
		}
		src, err := r.read(name)
		if err != nil {
			continue // validate reports files that cannot be read
		}
		documents, err := yamledit.Parse(src)
		if err != nil {
			continue
		}
		for _, d := range documents {
			if text(yamledit.Find(d, "kind")) != "Kustomization" {
				continue
			}
			at := path.Clean(strings.TrimPrefix(text(yamledit.Find(d, "spec", "path")), "./"))
			if at == dir || strings.HasPrefix(dir, at+"/") || at == "." && yamledit.Find(d, "spec") != nil {
				return true, nil
			}
		}
	}
	return false, nil
}

// filesBelow returns the paths of all files below a folder; none if the folder does not exist.
func (r *Repo) filesBelow(dir string) ([]string, error) {
	if !r.exists(dir) {
		return nil, nil
	}
	var names []string
	err := within.WalkDir(r.Dir, dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}
