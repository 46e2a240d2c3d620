package fleetrepo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// tagFleet gives the values of a new cluster the tag that proves in the cloud whose it is, where its flavour's cloud takes such a tag and
// the fleet has an identity. A tag that the user has set stays. A cluster that the repo already has without a tag stays without one: it
// is the same cluster, not a new one.
func (r *Repo) tagFleet(flavour, file string, values map[string]any) error {
	if providerOf(flavour) != "aws" {
		return nil
	}
	identity, err := ReadIdentity(r.Dir)
	if err != nil || identity == "" {
		return err
	}
	if r.exists(file) {
		if src, err := r.read(file); err != nil || !bytes.Contains(src, []byte(v1alpha1.FleetTag)) {
			return err
		}
	}
	there, ok := values["tags"].(map[string]any)
	if !ok && values["tags"] != nil {
		return nil // the chart's schema refuses it
	}
	if _, set := there[v1alpha1.FleetTag]; set {
		return nil
	}
	tags := map[string]any{v1alpha1.FleetTag: identity}
	maps.Copy(tags, there)
	values["tags"] = tags
	return nil
}

// FleetTag is a place in the fleet repo that tells a cloud which fleet a cluster is of.
type FleetTag struct {
	File   string
	Line   int
	Column int
	// Fleet is the identity that it names.
	Fleet string
}

// FleetTags are those in the folders of clusters, by file and line. What names no identity, as something that Flux fills in, proves
// nothing anywhere, and is left out. What cannot be read is validate's to tell.
func (r *Repo) FleetTags() ([]FleetTag, error) {
	var all []FleetTag
	for i := range r.Fleet.Spec.ManagementClusters {
		found, err := r.fleetTagsIn(r.Fleet.Spec.ManagementClusters[i].Layout().Clusters())
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	// Two management clusters of one cloud and generation share a folder.
	slices.SortFunc(all, func(a, b FleetTag) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(all), nil
}

func (r *Repo) fleetTagsIn(dir string) ([]FleetTag, error) {
	entries, err := within.ReadDir(r.Dir, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the folder %s: %w", dir, err)
	}
	var all []FleetTag
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			more, err := r.fleetTagsIn(name)
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
		case e.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)):
			src, err := r.read(name)
			if err != nil || !bytes.Contains(src, []byte(v1alpha1.FleetTag)) {
				continue
			}
			documents, err := yamledit.Parse(src)
			if err != nil {
				continue
			}
			for _, document := range documents {
				all = append(all, fleetTagsOf(name, document)...)
			}
		}
	}
	return all, nil
}

// fleetTagsOf follows no alias, because the aliased node is in the same file.
func fleetTagsOf(file string, n *yaml.Node) []FleetTag {
	var all []FleetTag
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].Value == v1alpha1.FleetTag {
			if named := yamledit.Resolve(child); named != nil && ValidIdentity(named.Value) {
				all = append(all, FleetTag{File: file, Line: child.Line, Column: child.Column, Fleet: named.Value})
			}
		}
		all = append(all, fleetTagsOf(file, child)...)
	}
	return all
}
