package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// FluxMode says which Flux applies a workload cluster's apps.
type FluxMode string

// The modes.
const (
	// FluxOwn: the cluster's own, which the management cluster's installs there.
	FluxOwn FluxMode = "own"
	// FluxRemote: the management cluster's, through the cluster's kubeconfig.
	FluxRemote FluxMode = "remote"
	// FluxNone: none.
	FluxNone FluxMode = "none"
)

// FluxModes are all modes, the default first.
func FluxModes() []string { return []string{string(FluxOwn), string(FluxRemote), string(FluxNone)} }

// FluxLabel marks the Flux objects beside a cluster.yaml with their part; see pkg/flux.
const FluxLabel = "fleetctl.dev/flux"

// WorkloadFluxOptions are what the clusters of an environment need to run a Flux of their own.
type WorkloadFluxOptions struct {
	Layout      layout.Layout
	Environment string
	// Components is the content of gotk-components.yaml.
	Components []byte
	// Source is the content of source.yaml: the GitRepository flux-system as the clusters reach it. It is nil where the environment
	// follows a channel whose source stands elsewhere.
	Source []byte
}

// WorkloadFluxFiles make what the Flux of each cluster of an environment consists of and follows. The components and the source are
// fleetctl's to update (see IsGenerated), the others the user's once they are there.
func WorkloadFluxFiles(opts WorkloadFluxOptions) ([]manifest.File, error) {
	if err := CheckLayout(opts.Layout); err != nil {
		return nil, err
	}
	if err := CheckName("environment", opts.Environment, 40); err != nil {
		return nil, err
	}
	data := struct{ Environment, Apps string }{opts.Environment, opts.Layout.Apps(opts.Environment)}
	system, err := execute("workload-flux-system.yaml", data)
	if err != nil {
		return nil, err
	}
	apps, err := execute("workload-apps.yaml", data)
	if err != nil {
		return nil, err
	}
	flux, sync := opts.Layout.WorkloadFlux(opts.Environment), opts.Layout.Sync(opts.Environment)
	files := []manifest.File{
		{Path: path.Join(flux, layout.ComponentsFile), Content: opts.Components},
		{Path: path.Join(flux, "kustomization.yaml"), Content: system},
		{Path: path.Join(sync, "apps.yaml"), Content: apps},
	}
	if opts.Source != nil {
		files = append(files, manifest.File{Path: path.Join(sync, layout.SourceFile), Content: opts.Source})
	}
	return files, nil
}

// SourceOf takes the GitRepository out of a gotk-sync.yaml: clusters read the fleet repo as their management cluster does.
func SourceOf(sync []byte) ([]byte, error) {
	documents, err := yamledit.Parse(sync)
	if err != nil {
		return nil, fmt.Errorf("read the source of Flux: %w", err)
	}
	for _, d := range documents {
		if kind := yamledit.Lookup(d, "kind"); kind == nil || kind.Value != "GitRepository" {
			continue
		}
		var out bytes.Buffer
		out.WriteString("# Written by fleetctl, as gotk-sync.yaml of the management cluster has it. Changes here are lost.\n")
		enc := yaml.NewEncoder(&out)
		enc.SetIndent(2)
		d.HeadComment, d.FootComment = "", ""
		if err := errors.Join(enc.Encode(d), enc.Close()); err != nil {
			return nil, fmt.Errorf("write the source of Flux: %w", err)
		}
		if _, err := yamledit.Parse(out.Bytes()); err != nil { // an alias of what another document names
			return nil, fmt.Errorf("write the source of Flux: %w", err)
		}
		return out.Bytes(), nil
	}
	return nil, errors.New("read the source of Flux: gotk-sync.yaml has no GitRepository")
}

// IsGenerated tells whether a file of WorkloadFluxFiles is fleetctl's to update.
func IsGenerated(name string) bool {
	base := path.Base(name)
	return base == layout.ComponentsFile || base == layout.SourceFile
}

// fluxFile makes the flux.yaml of a cluster; ok is false where it has none.
func (o ClusterOptions) fluxFile() (file manifest.File, ok bool, err error) {
	switch o.Flux {
	case "", FluxNone:
		return manifest.File{}, false, nil
	case FluxOwn, FluxRemote:
	default:
		return manifest.File{}, false, diag.Usage("choose one of "+strings.Join(FluxModes(), ", "),
			"there is no way %q to run Flux for a cluster", o.Flux)
	}
	data := struct {
		Name, Environment, CNI, Components, Source, Sync, Apps string
		Remote                                                 bool
	}{
		Name: o.Name, Environment: o.Environment, Components: o.Layout.WorkloadFlux(o.Environment), Source: o.SourceDir,
		Sync: o.Layout.Sync(o.Environment), Apps: o.Layout.Apps(o.Environment), Remote: o.Flux == FluxRemote,
	}
	if o.CNI != "" {
		if err := CheckName("network", o.CNI, 63); err != nil {
			return manifest.File{}, false, err
		}
		data.CNI = layout.CNIDir(o.CNI)
	}
	content, err := execute("flux.yaml", data)
	return manifest.File{Path: path.Join(o.Layout.Cluster(o.Environment, o.Name), layout.FluxFile), Content: content}, true, err
}
