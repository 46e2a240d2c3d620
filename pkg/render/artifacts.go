package render

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// kindArtifact is the kind of sources that a controller makes from other sources.
const kindArtifact = "ExternalArtifact"

// artifact is an ExternalArtifact that source-watcher makes from sources.
type artifact struct {
	targets []string
	sources map[string]artifactSource // by their aliases
	copies  []artifactCopy
}

type artifactSource struct {
	Alias     string `json:"alias"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type artifactCopy struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// learnArtifacts remembers the artifacts of an ArtifactGenerator.
func (w *walk) learnArtifacts(c *content, targets []string) {
	var o struct {
		Spec struct {
			Sources   []artifactSource `json:"sources"`
			Artifacts []struct {
				Name string         `json:"name"`
				Copy []artifactCopy `json:"copy"`
			} `json:"artifacts"`
		} `json:"spec"`
	}
	if json.Unmarshal(c.json, &o) != nil {
		return // its schema reports it
	}
	sources := map[string]artifactSource{}
	for _, s := range o.Spec.Sources {
		s.Namespace = cmp.Or(s.Namespace, c.Metadata.Namespace)
		sources[s.Alias] = s
	}
	for _, a := range o.Spec.Artifacts {
		w.artifacts[lookupKey(targets, c.Metadata.Namespace, a.Name)] = &artifact{targets: targets, sources: sources, copies: a.Copy}
	}
}

// unpacked returns the folder of the repo from which a folder of an artifact was copied. known is false if the generator of the artifact
// was not found yet. dir is "" if the folder does not come from this repo, or if no copy makes it.
func (w *walk) unpacked(targets []string, namespace, name, folder string) (dir string, known bool) {
	a := w.artifacts[lookupKey(targets, namespace, name)]
	if a == nil {
		return "", false
	}
	for _, c := range slices.Backward(a.copies) { // a later copy overwrites earlier ones
		alias, from, ok := strings.Cut(strings.TrimPrefix(c.From, "@"), "/")
		source, declared := a.sources[alias]
		to, inArtifact := strings.CutPrefix(c.To, "@artifact")
		if !ok || !declared || !inArtifact || w.foreign(a.targets, source.Kind, source.Namespace, source.Name) != "" {
			continue
		}
		to, from = cleanPath(to), strings.TrimSuffix(from, "/**")
		if strings.ContainsAny(from, "*?[{") {
			continue // it copies only some files of a folder, so no folder of the repo is the same
		}
		inner, ok := beneath(folder, to)
		if !ok {
			continue
		}
		for _, at := range []string{path.Join(cleanPath(from), inner), path.Join(path.Dir(cleanPath(from)), inner)} {
			if at = w.folder(source.Kind, at); w.r.repo.isDir(at) {
				return at, true
			}
		}
	}
	return "", true
}

// beneath returns the path of folder relative to top. ok is false if folder is neither top nor below it.
func beneath(folder, top string) (inner string, ok bool) {
	switch {
	case top == ".":
		return folder, true
	case folder == top:
		return ".", true
	}
	return strings.CutPrefix(folder, top+"/")
}
