package session

import (
	"errors"
	"io/fs"
	"path"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Layout is the layout of the management cluster's files in the fleet repo.
func (s *Session) Layout() layout.Layout { return s.Mgmt.Layout() }

// Folder is an environment in one of the management cluster's clouds.
type Folder struct {
	layout.Layout
	Environment string
}

// Folders returns the environments in the fleet repo at root: each environment in the home cloud of the management cluster, and in each
// further cloud in which it has clusters.
func (s *Session) Folders(root string) []Folder {
	var all []Folder
	for _, env := range s.Fleet.Spec.Environments {
		for _, l := range s.Fleet.Layouts(s.Mgmt) {
			if l.IsHome() || within.Exists(root, l.Environment(env.Name)) {
				all = append(all, Folder{l, env.Name})
			}
		}
	}
	return all
}

// ChannelFiles returns the files with the sources of the channels. An existing source gets the address from which Flux reads the fleet repo
// now, because that address may have changed. The first promotion makes the source of a channel of tags.
func (s *Session) ChannelFiles(system []manifest.File) ([]manifest.File, error) {
	var sync []byte
	for _, f := range system {
		if path.Base(f.Path) == flux.SyncFile {
			sync = f.Content
		}
	}
	var files []manifest.File
	for _, c := range s.Fleet.Channels() {
		if c.Name == v1alpha1.MainChannel {
			continue
		}
		name := s.Layout().SourceFile(c.Name)
		there, err := within.ReadFile(s.Opts.Dir, name, fleetrepo.MaxFile)
		switch {
		case err == nil:
			content, err := scaffold.FollowSync(there, sync)
			if err != nil {
				return nil, diag.Wrap("change "+yamledit.At(name, err), err,
					"let its url and secretRef be those of the GitRepository flux-system in "+flux.SyncFile)
			}
			files = append(files, manifest.File{Path: name, Content: content})
		case !errors.Is(err, fs.ErrNotExist):
			return nil, diag.Wrap("read the source of channel "+c.Name, err, "")
		case !c.IsTag():
			made, err := scaffold.ChannelFile(scaffold.ChannelOptions{Name: c.Name, Branch: c.Branch, Layout: s.Layout(), Sync: sync})
			if err != nil {
				return nil, err
			}
			files = append(files, made)
		}
	}
	return files, nil
}
