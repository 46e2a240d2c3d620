package render

import (
	"encoding/json"
	"fmt"

	sigsyaml "sigs.k8s.io/yaml"
)

// These are the limits of what kustomize may go through for one type of a file of `crds`, and how deep. Kustomize follows every reference
// from one type to the next and does not remember where it has been: a type that refers to itself, even through others, would fill its
// stack.
const (
	maxCRDVisits = 100_000
	maxCRDDepth  = 100
)

// apiTypes are the types of a file of `crds` as kustomize reads them: OpenAPI definitions by their names, of which the properties refer to
// others.
type apiTypes map[string]struct {
	Schema struct {
		Properties map[string]struct {
			Ref string `json:"$ref"`
		}
	}
}

// crds says of a file of `crds` that kustomize would not come to an end with it.
func (c *closure) crds(dir, name string, at place) {
	file, ok := inside(dir, name)
	content := c.files[file]
	if !ok || len(content) == 0 {
		return // what is wrong with it was said
	}
	var types apiTypes
	decode := json.Unmarshal
	if content[0] != '{' {
		decode = func(text []byte, into any) error { return sigsyaml.Unmarshal(text, into) }
	}
	if decode(content, &types) != nil {
		return // kustomize says what is wrong with it
	}
	w := apiWalk{types: types, known: map[string]extent{}}
	for name, api := range types {
		p := api.Schema.Properties
		_, kind := p["kind"]
		_, version := p["apiVersion"]
		_, metadata := p["metadata"]
		if !kind || !version || !metadata {
			continue // kustomize does not begin there
		}
		if w.visit(name); w.problem != "" {
			c.problem(RuleKustomize, at, fmt.Sprintf("%s: %s", file, w.problem),
				"kustomize follows every $ref: leave out what leads back, or the file, which only tells it of fields with names in them")
			return
		}
	}
}

// apiWalk counts how many types kustomize goes through.
type apiWalk struct {
	types   apiTypes
	known   map[string]extent
	problem string
}

// extent is how many types kustomize goes through from one on, and how deep; the zero value stands there while it is counted.
type extent struct{ visits, depth int }

func (w *apiWalk) visit(name string) extent {
	api, there := w.types[name]
	if !there || w.problem != "" {
		return extent{1, 1}
	}
	if e, seen := w.known[name]; seen {
		if e.visits == 0 {
			w.problem = fmt.Sprintf("the type %s refers to itself", name)
		}
		return e
	}
	w.known[name] = extent{}
	own := extent{1, 1}
	for _, p := range api.Schema.Properties {
		if p.Ref != "" {
			e := w.visit(p.Ref)
			own.visits, own.depth = min(own.visits+e.visits, maxCRDVisits+1), max(own.depth, e.depth+1)
		}
	}
	switch {
	case w.problem != "":
	case own.depth > maxCRDDepth:
		w.problem = fmt.Sprintf("its types refer to one another more than %d deep", maxCRDDepth)
	case own.visits > maxCRDVisits:
		w.problem = fmt.Sprintf("kustomize would go through more than %d types for %s", maxCRDVisits, name)
	}
	w.known[name] = own
	return own
}
