package validate

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// locate finds the node for a path of the API machinery, such as spec.pools[0].name or metadata.labels[app.kubernetes.io/name]. It returns
// the key of the field, or the nearest node around a missing field. A field may have dots in its name, so the node decides where the name
// ends.
func locate(top *yaml.Node, path string) *yaml.Node {
	at := top // the node that a message points at
	n := yamledit.Resolve(top)
	for path = strings.TrimPrefix(path, "."); path != "" && n != nil; {
		key, next, rest := step(n, path)
		if next == nil {
			break
		}
		at, n, path = key, yamledit.Resolve(next), rest
	}
	return at
}

// step finds the part of n that path begins with. It returns the node to point at, its value, and the rest of the path.
func step(n *yaml.Node, path string) (key, value *yaml.Node, rest string) {
	if n.Kind == yaml.SequenceNode && path[0] != '[' { // decoders of JSON leave indexes out
		for _, item := range n.Content {
			if key, _, _ := step(yamledit.Resolve(item), path); key != nil {
				return item, item, path
			}
		}
		return nil, nil, ""
	}
	if n.Kind == yaml.SequenceNode {
		inside, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(inside)
		if !ok || err != nil || i < 0 || i >= len(n.Content) {
			return nil, nil, ""
		}
		return n.Content[i], n.Content[i], strings.TrimPrefix(rest, ".")
	}
	if n.Kind != yaml.MappingNode {
		return nil, nil, ""
	}
	best := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if name == "" || best >= 0 && len(name) < len(n.Content[best].Value) {
			continue
		}
		if _, ok := after(path, name); ok {
			best = i
		}
	}
	if best < 0 {
		return nil, nil, ""
	}
	rest, _ = after(path, n.Content[best].Value)
	return n.Content[best], n.Content[best+1], rest
}

// after returns the rest of path after the field called name, if path begins with name or [name].
func after(path, name string) (string, bool) {
	if rest, ok := strings.CutPrefix(path, "["+name+"]"); ok {
		return strings.TrimPrefix(rest, "."), true
	}
	rest, ok := strings.CutPrefix(path, name)
	if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return "", false
	}
	return strings.TrimPrefix(rest, "."), true
}
