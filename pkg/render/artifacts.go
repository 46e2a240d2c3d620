package render

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// kindArtifact is a source that a controller makes of others.
const kindArtifact = "ExternalArtifact"

// artifact is an ExternalArtifact that source-watcher makes of sources.
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

// learnArtifacts remembers what an ArtifactGenerator makes.
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
		return // its schema says what is wrong
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

// unpacked is the folder of the repo that a folder of an artifact is a copy of. known is false where no generator of the artifact was seen
// yet; dir is "" where the folder comes from elsewhere, or nobody copies it.
func (w *walk) unpacked(targets []string, namespace, name, folder string) (dir string, known bool) {
	a := w.artifacts[lookupKey(targets, namespace, name)]
	if a == nil {
		return "", false
	}
	for _, c := range slices.Backward(a.copies) { // a later one goes over those before
		alias, from, ok := strings.Cut(strings.TrimPrefix(c.From, "@"), "/")
		source, declared := a.sources[alias]
		to, inArtifact := strings.CutPrefix(c.To, "@artifact")
		if !ok || !declared || !inArtifact || w.foreign(a.targets, source.Kind, source.Namespace, source.Name) != "" {
			continue
		}
		to, from = cleanPath(to), strings.TrimSuffix(from, "/**")
		if strings.ContainsAny(from, "*?[{") {
			continue // some files of a folder, that is not to be had as one
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

// beneath is the path of a folder from another one that it is in, or is.
func beneath(folder, top string) (inner string, ok bool) {
	switch {
	case top == ".":
		return folder, true
	case folder == top:
		return ".", true
	}
	return strings.CutPrefix(folder, top+"/")
}

// await keeps a Kustomization for later whose source a generator makes that was not seen yet; false at the end, when none is to come.
func (w *walk) await(o *Object) bool {
	if w.last {
		return false
	}
	w.waiting = append(w.waiting, o)
	return true
}

// awaited are the Kustomizations that waited for a generator.
func (w *walk) awaited() []*Object {
	all := w.waiting
	w.waiting = nil
	return all
}
