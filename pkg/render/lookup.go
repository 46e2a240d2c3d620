package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// learn remembers objects that other objects refer to.
func (w *walk) learn(all []*content, targets []string) {
	for _, c := range all {
		name := lookupKey(targets, c.Metadata.Namespace, c.Metadata.Name)
		switch {
		case c.Kind == "ConfigMap" && c.APIVersion == "v1":
			var o struct {
				Data map[string]string `json:"data"`
			}
			if err := json.Unmarshal(c.json, &o); err == nil {
				w.configMaps[name] = configMap{o.Data, c.source}
				for i := 1; i < len(targets); i++ { // another ConfigMap of these values may be on one of the targets alone
					w.configMaps[lookupKey(targets[i:], c.Metadata.Namespace, c.Metadata.Name)] = configMap{o.Data, c.source}
				}
			}
		case c.Kind == "ArtifactGenerator" && strings.HasPrefix(c.APIVersion, "source.extensions.fluxcd.io/"):
			w.learnArtifacts(c, targets)
		case isFlux(c, "GitRepository"):
			var o struct {
				Spec struct {
					URL string `json:"url"`
					Ref struct {
						Branch string `json:"branch"`
						Tag    string `json:"tag"`
						SemVer string `json:"semver"`
						Commit string `json:"commit"`
						Name   string `json:"name"`
					} `json:"ref"`
				} `json:"spec"`
			}
			if err := json.Unmarshal(c.json, &o); err == nil {
				source := gitSource{url: o.Spec.URL}
				if ref := o.Spec.Ref; ref.Tag == "" && ref.SemVer == "" && ref.Commit == "" &&
					(ref.Name == "" || strings.HasPrefix(ref.Name, "refs/heads/")) {
					source.branch = cmp.Or(strings.TrimPrefix(ref.Name, "refs/heads/"), ref.Branch, "master") // source-controller's own default
				}
				w.sources[name] = source
			}
		case isFlux(c, sourcev1.HelmRepositoryKind), isFlux(c, sourcev1.OCIRepositoryKind):
			w.learnRepository(c, targets)
		case isFlux(c, "HelmChart"):
			var o struct {
				Spec sourcev1.HelmChartSpec `json:"spec"`
			}
			if err := json.Unmarshal(c.json, &o); err == nil {
				w.charts[name] = &chartSource{
					chart: o.Spec.Chart, sourceKind: o.Spec.SourceRef.Kind, sourceNamespace: c.Metadata.Namespace, sourceName: o.Spec.SourceRef.Name,
					valuesFiles: o.Spec.ValuesFiles, ignoreMissing: o.Spec.IgnoreMissingValuesFiles,
					version: o.Spec.Version,
				}
			}
		}
	}
}

// chartSource is the source of a chart: of a HelmChart, or of a HelmRelease without one.
type chartSource struct {
	chart                                   string
	sourceKind, sourceNamespace, sourceName string
	valuesFiles                             []string
	ignoreMissing                           bool
	version                                 string
}

// ownChart returns the source of the chart in a HelmRelease's own spec, or nil if it has none.
func ownChart(spec *helmv2.HelmReleaseSpec, namespace string) *chartSource {
	if spec.Chart == nil {
		return nil
	}
	t := spec.Chart.Spec
	return &chartSource{
		chart: t.Chart, sourceKind: cmp.Or(t.SourceRef.Kind, "GitRepository"), sourceNamespace: cmp.Or(t.SourceRef.Namespace, namespace),
		sourceName: t.SourceRef.Name, valuesFiles: t.ValuesFiles, ignoreMissing: t.IgnoreMissingValuesFiles,
		version: t.Version,
	}
}

func lookupKey(targets []string, namespace, name string) string {
	first := "" // an object with several targets is the same on each of them
	if len(targets) > 0 {
		first = targets[0]
	}
	return first + "\x00" + namespace + "\x00" + name
}

// configMap is the data of a ConfigMap, and its place in the repo.
type configMap struct {
	data   map[string]string
	source Source
}

func (w *walk) configMap(targets []string, namespace, name string) (map[string]string, bool) {
	found, ok := w.configMaps[lookupKey(targets, namespace, name)]
	return found.data, ok
}

// foreign says why the content of a source is not the files of this repo. It returns "" if it is.
func (w *walk) foreign(targets []string, kind, namespace, name string) string {
	if w.own.Name != "" && len(targets) == 0 && kind == w.own.Kind && namespace == w.own.Namespace && name == w.own.Name {
		return "" // also if it is an artifact that is made from this repo
	}
	if w.mgmt.Path != "" && w.own.Name == "" && len(targets) == 0 && namespace == fluxSystem && name == fluxSystem {
		return "" // a FluxInstance makes the source of the cluster's Flux under this name
	}
	if kind != "GitRepository" {
		return fmt.Sprintf("it comes from the %s %s", kind, name)
	}
	source, ok := w.sources[lookupKey(targets, namespace, name)]
	own := w.sources[lookupKey(nil, cmp.Or(w.own.Namespace, fluxSystem), cmp.Or(w.own.Name, fluxSystem))]
	mine := w.r.fleet.Spec.Git
	switch {
	case !ok || own.url == "" && mine.URL == "":
		return ""
	case source.url != own.url && source.url != mine.URL && !v1alpha1.SeemsSameRepository(source.url, cmp.Or(own.url, mine.URL)) &&
		!v1alpha1.SeemsSameRepository(source.url, mine.URL):
		return fmt.Sprintf("it comes from another repository, that of the GitRepository %s", name)
	}
	branch := cmp.Or(own.branch, mine.Branch, v1alpha1.DefaultBranch)
	if source.branch == "" || source.branch == branch || w.isChannel(name) {
		return ""
	}
	return fmt.Sprintf("it comes from another branch of this repository: the GitRepository %s follows %s, and the files here are those of %s",
		name, source.branch, branch)
}

// mayBeForeign says why a folder probably belongs to another repo. It returns "" if the folder exists, or must exist, in this repo.
// Only repos with their own layout need the guess: they may say neither which repo they are nor where a source comes from.
func (w *walk) mayBeForeign(targets []string, kind, namespace, name, dir string) string {
	ownNamespace, ownName := cmp.Or(w.own.Namespace, fluxSystem), cmp.Or(w.own.Name, fluxSystem)
	if w.mgmt.Path == "" || dir != "." && w.r.repo.isDir(dir) || namespace == ownNamespace && name == ownName {
		return ""
	}
	source, ok := w.sources[lookupKey(targets, namespace, name)]
	own := w.sources[lookupKey(nil, ownNamespace, ownName)]
	switch known := cmp.Or(own.url, w.r.fleet.Spec.Git.URL); {
	case ok && known != "" && v1alpha1.SeemsSameRepository(source.url, known):
		return ""
	case dir == ".":
		return fmt.Sprintf("the repo does not say that the %s %s is this repo", kind, name)
	case ok:
		return fmt.Sprintf("the folder %s is not here, so it comes from another repository, that of the %s %s", dir, kind, name)
	}
	return fmt.Sprintf("the folder %s is not here, and the repo does not say where the %s %s comes from", dir, kind, name)
}

// gitSource is the URL and the branch of a GitRepository. branch is "" if it follows a tag or a commit.
type gitSource struct{ url, branch string }

// isChannel tells whether a source is the source of a channel. The content of channels is rendered from the files of this repo.
func (w *walk) isChannel(name string) bool {
	return name == fluxSystem || slices.ContainsFunc(w.r.fleet.Channels(), func(c v1alpha1.Channel) bool { return c.Source() == name })
}

// leavesOut reports a source of this repo whose content differs from the repo's files, which are rendered.
func (w *walk) leavesOut(o *Object) {
	if !isFluxKind(o.APIVersion, o.Kind, "GitRepository") || w.foreign(o.Targets, o.Kind, o.Namespace, o.Name) != "" {
		return
	}
	var source sourcev1.GitRepository
	if err := json.Unmarshal(o.JSON, &source); err != nil {
		w.problem(o, diag.SeverityError, RuleDecode, err.Error())
		return
	}
	if source.Spec.RecurseSubmodules {
		w.problem(o, diag.SeverityWarning, RuleSource, "spec.recurseSubmodules gives Flux the files of submodules, which are not rendered")
	}
	for field, there := range map[string]bool{
		"ignore": source.Spec.Ignore != nil, "sparseCheckout": len(source.Spec.SparseCheckout) > 0, "include": len(source.Spec.Include) > 0,
	} {
		if there {
			w.problem(o, diag.SeverityWarning, RuleSource, "spec."+field+
				" changes which files of this repo Flux gets, but all files are rendered")
		}
	}
}
