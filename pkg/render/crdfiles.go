package render

import (
	"encoding/json"
	"fmt"

	sigsyaml "sigs.k8s.io/yaml"
)

// The limits for one type of a file in `crds`: how many types kustomize may visit for it, and how deep. Kustomize follows every reference
// from type to type and does not remember the visited types. A type that refers to itself, even through others, would overflow its stack.
const (
	maxCRDVisits = 100_000
	maxCRDDepth  = 100
)

// apiTypes are the types of a file in `crds` as kustomize reads them: OpenAPI definitions by name, whose properties refer to other types.
type apiTypes map[string]struct {
	Schema struct {
		Properties map[string]struct {
			Ref string `json:"$ref"`
		}
	}
}

// crds reports a file in `crds` with which kustomize would never end.
func (c *closure) crds(dir, name string, at place) {
	file, ok := inside(dir, name)
	content := c.files[file]
	if !ok || len(content) == 0 {
		return // its faults are already reported
	}
	var types apiTypes
	decode := json.Unmarshal
	if content[0] != '{' {
		decode = func(text []byte, into any) error { return sigsyaml.Unmarshal(text, into) }
	}
	if decode(content, &types) != nil {
		return // kustomize reports what is wrong
	}
	w := apiWalk{types: types, known: map[string]extent{}}
	for name, api := range types {
		p := api.Schema.Properties
		_, kind := p["kind"]
		_, version := p["apiVersion"]
		_, metadata := p["metadata"]
		if !kind || !version || !metadata {
			continue // kustomize does not begin at such a type
		}
		if w.visit(name); w.problem != "" {
			c.problem(RuleKustomize, at, fmt.Sprintf("%s: %s", file, w.problem),
				"kustomize follows every $ref: remove the one that leads back, or the file, which only says which fields have names")
			return
		}
	}
}

// apiWalk counts the types that kustomize would visit.
type apiWalk struct {
	types   apiTypes
	known   map[string]extent
	problem string
}

// extent is the number of types that kustomize visits from a type on, and the depth. It is zero while the type is being counted.
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
