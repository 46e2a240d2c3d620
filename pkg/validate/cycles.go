package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// cycles reports Flux objects that wait for each other forever.
func (s *resolver) cycles(all []*object) diag.Findings {
	nodes := map[known]*object{}
	for _, o := range all {
		if o.Kind == "Kustomization" || o.Kind == "HelmRelease" {
			nodes[known{place: o.places()[0], kind: o.Kind, namespace: o.Namespace, name: o.Name}] = o
		}
	}
	var out diag.Findings
	const open, done = 1, 2
	state := map[known]int{}
	var visit func(at known, way []known)
	visit = func(at known, way []known) {
		state[at] = open
		way = append(way, at)
		for _, ref := range nodes[at].refs {
			next := known{place: at.place, kind: ref.kind, namespace: ref.namespace, name: ref.name}
			if ref.rule != RuleMissingDepends || nodes[next] == nil {
				continue
			}
			if state[next] == open {
				out = append(out, cycleFinding(nodes, way[slices.Index(way, next):]))
			}
			if state[next] == 0 {
				visit(next, way)
			}
		}
		state[at] = done
	}
	for _, o := range all {
		if at := (known{place: o.places()[0], kind: o.Kind, namespace: o.Namespace, name: o.Name}); nodes[at] == o && state[at] == 0 {
			visit(at, nil)
		}
	}
	return out
}

// cycleFinding is the finding about a cycle. It names the objects in their order, from the first by name.
func cycleFinding(nodes map[known]*object, cycle []known) diag.Finding {
	first := 0
	for i, k := range cycle {
		if k.namespace+"/"+k.name < cycle[first].namespace+"/"+cycle[first].name {
			first = i
		}
	}
	cycle = slices.Concat(cycle[first:], cycle[:first], cycle[first:first+1])
	names := make([]string, len(cycle))
	for i, k := range cycle {
		names[i] = k.name
		if k.namespace != cycle[0].namespace {
			names[i] = k.namespace + "/" + k.name
		}
	}
	o := nodes[cycle[0]]
	field := "spec.dependsOn"
	for _, ref := range o.refs {
		if ref.rule == RuleMissingDepends && ref.name == cycle[1].name && ref.namespace == cycle[1].namespace {
			field = ref.field
		}
	}
	return o.at(field, RuleDependsCycle, fmt.Sprintf("each waits for the next one, forever: %s", strings.Join(names, " → ")),
		"remove one of these from dependsOn")
}
