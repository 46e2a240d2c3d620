package fleetrepo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// followSource lets the Flux Kustomization of an environment follow another source. If nobody has changed the file, followSource writes it
// again. Otherwise it changes only the source, and the patches that name the source.
func followSource(src []byte, at layout.Layout, name, source string) ([]byte, error) {
	documents, err := yamledit.Parse(src)
	if err != nil {
		return nil, fmt.Errorf("not a Flux Kustomization: %w", err)
	}
	if len(documents) == 0 {
		return nil, errors.New("not a Flux Kustomization: it is empty")
	}
	old := text(yamledit.Find(documents[0], "spec", "sourceRef", "name"))
	if old == source {
		return src, nil
	}
	if hasPause(documents[0]) { // the pause is no change by a person: the file is written as without it
		return pausedMeanwhile(src, func(src []byte) ([]byte, error) { return followSource(src, at, name, source) })
	}
	made := func(source string) ([]byte, error) {
		files, err := scaffold.EnvironmentFiles(at, scaffold.Environment{Name: name, Source: source})
		if err != nil {
			return nil, err
		}
		return files[0].Content, nil
	}
	wanted, err := made(source)
	if err != nil {
		return nil, err
	}
	if before, err := made(old); err == nil && manifest.SameText(before, src) {
		return manifest.EndsOf(src, wanted), nil
	}
	if src, err = yamledit.Set(src, 0, yamledit.Path{"spec", "sourceRef", "name"}, source); err != nil {
		return nil, err
	}
	if src, err = withoutSourcePatches(src, yamledit.Find(documents[0], "spec", "patches")); err != nil {
		return nil, err
	}
	documents, err = yamledit.Parse(wanted)
	if err != nil {
		return nil, err
	}
	if list := yamledit.Find(documents[0], "spec", "patches"); list != nil {
		for _, item := range list.Content {
			if src, err = yamledit.Append(src, 0, yamledit.Path{"spec", "patches"}, item); err != nil {
				return nil, err
			}
		}
	}
	return src, nil
}

// withoutSourcePatches removes the patches that name a source, and the list with its last patch.
func withoutSourcePatches(src []byte, patches *yaml.Node) ([]byte, error) {
	if patches == nil {
		return src, nil
	}
	var ours []int
	for i := range patches.Content {
		if strings.Contains(text(yamledit.Find(patches, i, "patch")), "/sourceRef/name") {
			ours = append(ours, i)
		}
	}
	if len(ours) == len(patches.Content) {
		return yamledit.Remove(src, 0, yamledit.Path{"spec", "patches"})
	}
	var err error
	for _, i := range slices.Backward(ours) {
		if src, err = yamledit.Remove(src, 0, yamledit.Path{"spec", "patches", i}); err != nil {
			return nil, err
		}
	}
	return src, nil
}
