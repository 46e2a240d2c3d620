package fleetrepo

import (
	"errors"
	"fmt"
	"io/fs"
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

// Channel is a channel of the fleet with its present tags and its environments.
type Channel struct {
	Name string `json:"name"`
	// Branch that it follows, or the pattern of its tags.
	Branch  string `json:"branch,omitempty"`
	Pattern string `json:"tags,omitempty"`
	// At is the tag that each management cluster has it at; empty before the first promotion, and for a branch.
	At []Position `json:"at"`
	// Environments that follow it.
	Environments []string `json:"environments"`
}

// Position is the tag that a management cluster has a channel at.
type Position struct {
	ManagementCluster string `json:"managementCluster"`
	Tag               string `json:"tag"`
}

// Channels lists all channels, main first. Errors: a source that cannot be read.
func (r *Repo) Channels() ([]Channel, error) {
	all := make([]Channel, 0, len(r.Fleet.Spec.Channels)+1)
	for _, c := range r.Fleet.Channels() {
		at, err := r.Positions(c.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, Channel{Name: c.Name, Branch: c.Branch, Pattern: c.Tag, At: at, Environments: r.Fleet.EnvironmentsOf(c.Name)})
	}
	return all, nil
}

// Positions returns the present tags of a channel by management cluster. It leaves out management clusters without a tag.
func (r *Repo) Positions(channel string) ([]Position, error) { return r.positions(channel, r.read) }

// PositionsIn is Positions in another state of the repo, such as the remote's.
func (r *Repo) PositionsIn(files fs.FS, channel string) ([]Position, error) {
	return r.positions(channel, func(name string) ([]byte, error) { return fs.ReadFile(files, name) })
}

func (r *Repo) positions(channel string, read func(name string) ([]byte, error)) ([]Position, error) {
	all := []Position{}
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		tag, err := tagIn(m.Layout().SourceFile(channel), channel, read)
		if err != nil {
			return nil, err
		}
		if tag != "" {
			all = append(all, Position{m.Name, tag})
		}
	}
	return all, nil
}

// tagOf returns the tag in the channel's source, or "".
func (r *Repo) tagOf(m *v1alpha1.ManagementCluster, channel string) (string, error) {
	return tagIn(m.Layout().SourceFile(channel), channel, r.read)
}

func tagIn(name, channel string, read func(name string) ([]byte, error)) (string, error) {
	src, err := read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the source of channel %s: %w", channel, err)
	}
	documents, err := documentsOf(name, src)
	if err != nil {
		return "", err
	}
	if len(documents) == 0 {
		return "", nil
	}
	return text(yamledit.Find(documents[0], "spec", "ref", "tag")), nil
}

// AddChannel lists a channel in fleet.yaml and lets environments follow it at once. The first channel of tags also
// takes all production environments, because production follows no branch in a fleet with tags. Environments can follow
// a branch immediately, and tags as soon as the first tag exists. Errors: a bad or taken name, an unknown environment.
func (r *Repo) AddChannel(c v1alpha1.Channel, environments []string) (*Edit, error) {
	if err := scaffold.CheckName("channel", c.Name, 63); err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Add channel " + c.Name}
	fleet, err := r.readFleet()
	if err != nil {
		return nil, err
	}
	if there, ok := r.Fleet.Channel(c.Name); !ok {
		fleet.src, err = yamledit.Append(fleet.src, 0, yamledit.Path{"spec", "channels"}, v1alpha1.Node(c))
	} else if there != c && c.Name == v1alpha1.MainChannel {
		return nil, diag.Usage("choose another name; spec.git.branch in "+v1alpha1.FileName+" says which branch it is",
			"the channel %s is the fleet repo's branch", c.Name)
	} else if there != c {
		return nil, diag.Usage("choose another name, or change it in "+v1alpha1.FileName, "there is a channel %s already, and it is another",
			c.Name)
	}
	if err != nil {
		return nil, diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "add the channel in an editor")
	}
	if along := r.productionAlong(c, environments); len(along) > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("Production follows it from now on: %s. In a fleet with tags it follows no branch.",
			strings.Join(along, ", ")))
		environments = append(slices.Clone(environments), along...)
	}
	for _, name := range environments {
		if err := fleet.setChannel(name, c.Name); err != nil {
			return nil, err
		}
	}
	after, err := fleet.finish(&e.Changes)
	if err != nil {
		return nil, r.refusedChannel(err, c)
	}
	return e, after.follow(e, c.Name, promotion{}, environments)
}

// RemoveChannel removes a channel that no environment follows from fleet.yaml, and its sources from the management
// clusters. Errors: an unknown channel, main, and a channel that environments follow.
func (r *Repo) RemoveChannel(name string) (*Edit, error) {
	var names []string
	for _, c := range r.Fleet.Spec.Channels {
		names = append(names, c.Name)
	}
	index := slices.Index(names, name)
	switch {
	case name == v1alpha1.MainChannel:
		return nil, diag.Usage("let environments follow another channel: `fleetctl environment set NAME --channel CHANNEL`",
			"the channel %s is the fleet repo's branch: it stays", name)
	case index < 0:
		return nil, diag.Unknown("channel", name, names, madeChannel(name))
	}
	if followers := r.Fleet.EnvironmentsOf(name); len(followers) > 0 {
		return nil, diag.Errorf(r.anotherChannel(name, followers), "channel %s is followed by %s", name, strings.Join(followers, ", "))
	}
	fleet, err := r.readFleet()
	if err != nil {
		return nil, err
	}
	path := yamledit.Path{"spec", "channels", index}
	if len(names) == 1 {
		path = path[:2]
	}
	if fleet.src, err = yamledit.Remove(fleet.src, 0, path); err != nil {
		return nil, diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "remove the channel in an editor")
	}
	e := &Edit{Summary: "Remove channel " + name}
	after, err := fleet.finish(&e.Changes)
	if err != nil {
		return nil, err
	}
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		if err := after.renotify(e, m, noticed{before: r}); err != nil {
			return nil, err
		}
		e.Changes.Delete(m.Layout().SourceFile(name))
		if err := r.listedSource(&e.Changes, m, name, false); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Promote moves a channel to a tag, on the named management cluster or on all: it changes one line in the source of
// each. The first promotion makes the source, and the Flux Kustomizations of the environments that waited for it.
// Errors: an unknown channel, a channel that follows a branch, a tag that does not match the channel's pattern, and a
// management cluster that `fleetctl init` has not made yet.
//
// The Kustomization for a folder is made with the first tag that has the folder, because Flux would report a folder
// that its source lacks as an error. files are the files of the tag.
func (r *Repo) Promote(channel, tag, cluster string, files fs.FS) (*Edit, error) {
	c, err := r.TagChannel(channel)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Promote %s to channel %s", tag, c.Name)}
	_, e.Notes = r.Paused(r.Fleet.EnvironmentsOf(c.Name))
	return e, r.follow(e, c.Name, promotion{tag, cluster, files}, r.Fleet.EnvironmentsOf(c.Name))
}

// TagChannel returns the channel of that name. With an empty name, it returns the only channel of tags.
func (r *Repo) TagChannel(name string) (v1alpha1.Channel, error) {
	var names []string
	var found v1alpha1.Channel
	for _, c := range r.Fleet.Channels() {
		if c.IsTag() {
			names = append(names, c.Name)
			found = c
		}
	}
	const makeOne = "`fleetctl channel add release --tag 'v*' --environment production` makes one"
	if name == "" {
		switch len(names) {
		case 0:
			return found, diag.Usage(makeOne, "no channel goes through tags")
		case 1:
			return found, nil
		}
		return found, diag.Usage("choose one with --channel: "+strings.Join(names, ", "), "several channels go through tags")
	}
	c, ok := r.Fleet.Channel(name)
	switch {
	case !ok:
		return c, diag.Unknown("channel", name, names, madeChannel(name))
	case !c.IsTag():
		return c, diag.Usage("push to the branch: it needs no promotion", "channel %s follows the branch %s, not tags", name, c.Branch)
	}
	return c, nil
}

// follow makes the sources of a channel, or moves them to a tag, and lets environments follow the channel once it has a tag.
func (r *Repo) follow(e *Edit, channel string, move promotion, environments []string) error {
	c, _ := r.Fleet.Channel(channel)
	tag, cluster := move.tag, move.cluster
	if cluster != "" {
		if _, err := r.managementCluster(cluster); err != nil {
			return err
		}
	}
	waiting := false
	for i := range r.Fleet.Spec.ManagementClusters {
		m := &r.Fleet.Spec.ManagementClusters[i]
		if cluster != "" && m.Name != cluster {
			continue
		}
		there, err := r.source(e, m, c, tag)
		if err != nil {
			return err
		}
		waiting = waiting || !there
		now := noticed{before: r, environments: environments, released: map[string]bool{}}
		for _, name := range environments {
			if err := r.applied(e, m, name, there, move); err != nil {
				return err
			}
			now.released[name] = there
		}
		if len(environments) > 0 {
			if err := r.renotify(e, m, now); err != nil {
				return err
			}
		}
	}
	if waiting && c.IsTag() && tag == "" {
		e.Notes = append(e.Notes, "Channel "+c.Name+" has no tag yet: `fleetctl promote --channel "+c.Name+
			"` makes the first one, and from then on its environments follow it.")
	}
	return nil
}

// source makes the source of a channel on a management cluster, or moves it to a tag. It returns whether the source
// exists afterwards.
func (r *Repo) source(e *Edit, m *v1alpha1.ManagementCluster, c v1alpha1.Channel, tag string) (bool, error) {
	if c.Name == v1alpha1.MainChannel {
		return true, nil
	}
	file := m.Layout().SourceFile(c.Name)
	if src, err := r.read(file); err == nil {
		if tag == "" {
			return true, nil
		}
		if src, err = yamledit.Set(src, 0, yamledit.Path{"spec", "ref", "tag"}, tag); err != nil {
			return false, diag.Wrap("change "+yamledit.At(file, err), err, "write the tag there in an editor: "+tag)
		}
		e.Changes.Write(manifest.File{Path: file, Content: src})
		return true, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read the source of channel %s: %w", c.Name, err)
	}
	if c.IsTag() && tag == "" {
		return false, nil
	}
	sync, err := r.read(m.Layout().SyncFile())
	if errors.Is(err, fs.ErrNotExist) {
		e.Notes = append(e.Notes, "Management cluster "+m.Name+" is not there yet: run this again when `fleetctl init` has made it.")
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read what management cluster %s follows: %w", m.Name, err)
	}
	made, err := scaffold.ChannelFile(scaffold.ChannelOptions{Name: c.Name, Branch: c.Branch, Tag: tag, Layout: m.Layout(), Sync: sync})
	if err != nil {
		return false, err
	}
	e.Changes.Write(made)
	return true, r.listedSource(&e.Changes, m, c.Name, true)
}

// listedSource lists the source in the kustomization.yaml of the management cluster's folder, if it has one.
func (r *Repo) listedSource(cs *manifest.ChangeSet, m *v1alpha1.ManagementCluster, channel string, want bool) error {
	return r.listed(cs, m.Dir(), path.Join("sources", channel, "gitrepository.yaml"), want)
}

// fleetFile is fleet.yaml while it is edited.
type fleetFile struct {
	repo *Repo
	src  []byte
}

func (r *Repo) readFleet() (*fleetFile, error) {
	src, err := r.read(v1alpha1.FileName)
	return &fleetFile{r, src}, err
}

// editFleet changes fleet.yaml and returns the repo after the change. It fails if the result is not a valid fleet.yaml.
func (r *Repo) editFleet(e *Edit, change func(*fleetFile) error) (*Repo, error) {
	fleet, err := r.readFleet()
	if err != nil {
		return nil, err
	}
	if err := change(fleet); err != nil {
		return nil, err
	}
	after, err := fleet.finish(&e.Changes)
	if err != nil {
		return nil, err
	}
	return after, v1alpha1.Validate(after.Fleet).Err()
}

// setChannel lets an environment follow a channel.
func (f *fleetFile) setChannel(environment, channel string) error {
	if channel == v1alpha1.MainChannel {
		return f.set(environment, "channel", nil)
	}
	return f.set(environment, "channel", channel)
}

// set gives a field of an environment a value, or removes the field for nil.
func (f *fleetFile) set(environment, field string, value any) error {
	names := f.repo.EnvironmentNames()
	i := slices.Index(names, environment)
	if i < 0 {
		return unknownEnvironment(environment, names)
	}
	at := yamledit.Path{"spec", "environments", i, field}
	var err error
	if value == nil {
		f.src, err = yamledit.Remove(f.src, 0, at)
	} else {
		f.src, err = yamledit.Set(f.src, 0, at, value)
	}
	return diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "change the environment there in an editor")
}

// append adds an item to a list of spec.
func (f *fleetFile) append(list string, item *yaml.Node) error {
	return f.take(yamledit.Append(f.src, 0, yamledit.Path{"spec", list}, item))
}

// take continues with the file as yamledit has changed it. If yamledit could not change it, the error says how to do it by hand.
func (f *fleetFile) take(src []byte, err error) error {
	if err != nil {
		return diag.Wrap("change "+yamledit.At(v1alpha1.FileName, err), err, "change it in an editor")
	}
	f.src = src
	return nil
}

// finish validates the edited file, adds it to the changes, and returns the repo with this fleet.yaml.
func (f *fleetFile) finish(cs *manifest.ChangeSet) (*Repo, error) {
	fleet, err := v1alpha1.Decode(v1alpha1.FileName, f.src)
	if err != nil {
		return nil, err
	}
	cs.Write(manifest.File{Path: v1alpha1.FileName, Content: f.src})
	after := New(f.repo.Dir, fleet)
	after.Tagged = f.repo.Tagged
	return after, nil
}
