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

// fleetMarks are, by the provider of a flavour's cloud, the field of a chart's values that tags cloud resources, and
// the key of the fleet's identity in this field.
var fleetMarks = map[string]struct{ field, key string }{
	"aws":     {"tags", v1alpha1.FleetTag},
	"vsphere": {"vmxKeys", v1alpha1.FleetKey},
}

// tagFleet adds the tag that proves in the cloud which fleet a new cluster belongs to. It does so if the flavour's
// cloud and chart support such a tag, and the fleet has an identity. A tag that the user has set stays. If the repo
// already has the same cluster without a tag, it stays without.
func (r *Repo) tagFleet(ch *chart, file string, values map[string]any) error {
	mark, takes := fleetMarks[providerOf(ch.flavour)]
	if fields, _ := ch.schema["properties"].(map[string]any); !takes || fields[mark.field] == nil { // a repo may have an older chart
		return nil
	}
	identity, err := ReadIdentity(r.Dir)
	if err != nil || identity == "" {
		return err
	}
	if r.exists(file) {
		if src, err := r.read(file); err != nil || !bytes.Contains(src, []byte(mark.key)) {
			return err
		}
	}
	there, ok := values[mark.field].(map[string]any)
	if !ok && values[mark.field] != nil {
		return nil // the chart's schema refuses it
	}
	if _, set := there[mark.key]; set {
		return nil
	}
	marks := map[string]any{mark.key: identity}
	maps.Copy(marks, there)
	values[mark.field] = marks
	return nil
}

// FleetTag is a place in the fleet repo that tells a cloud which fleet a cluster belongs to.
type FleetTag struct {
	File   string
	Line   int
	Column int
	// Fleet is the identity that it names.
	Fleet string
}

// FleetTags are the fleet tags in the folders of clusters, by file and line. They leave out a tag that names no identity, such as a
// variable that Flux fills in, because it proves nothing. They also leave out unreadable files, which validate reports.
func (r *Repo) FleetTags() ([]FleetTag, error) {
	var all []FleetTag
	err := r.eachDeclaration(mentionsFleet, func(file string, document *yaml.Node) { all = append(all, fleetTagsOf(file, document)...) })
	// Two management clusters of one cloud and generation share a folder.
	slices.SortFunc(all, func(a, b FleetTag) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(all), err
}

// eachDeclaration calls seen for each document in the folders of clusters, in files that contain the searched text. It
// leaves out files that cannot be read.
func (r *Repo) eachDeclaration(has func(src []byte) bool, seen func(file string, document *yaml.Node)) error {
	for _, l := range r.layouts() {
		if err := r.eachDocument(l.Clusters(), has, seen); err != nil {
			return err
		}
	}
	return nil
}

func (r *Repo) eachDocument(dir string, has func([]byte) bool, seen func(string, *yaml.Node)) error {
	entries, err := within.ReadDir(r.Dir, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the folder %s: %w", dir, err)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			if err := r.eachDocument(name, has, seen); err != nil {
				return err
			}
		case e.Type().IsRegular() && slices.Contains([]string{".yaml", ".yml"}, path.Ext(name)):
			src, err := r.read(name)
			if err != nil || !has(src) {
				continue
			}
			documents, err := yamledit.Parse(src)
			if err != nil {
				continue
			}
			for _, document := range documents {
				seen(name, document)
			}
		}
	}
	return nil
}

// mentionsFleet tells whether a file may name the identity of a fleet. Most files do not, and need not be parsed.
func mentionsFleet(src []byte) bool {
	return bytes.Contains(src, []byte(v1alpha1.FleetTag)) || bytes.Contains(src, []byte(v1alpha1.FleetKey))
}

// fleetTagsOf follows no alias, because the aliased node is in the same file.
func fleetTagsOf(file string, n *yaml.Node) []FleetTag {
	var all []FleetTag
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && v1alpha1.IsFleetMark(n.Content[i-1].Value) {
			if named := yamledit.Resolve(child); named != nil && ValidIdentity(named.Value) {
				all = append(all, FleetTag{File: file, Line: child.Line, Column: child.Column, Fleet: named.Value})
			}
		}
		all = append(all, fleetTagsOf(file, child)...)
	}
	return all
}
