package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// checkKey reports a reference to a key that the ConfigMap or Secret does not have. SOPS encrypts the values of a Secret, not its keys.
func (s *resolver) checkKey(p place, o *object, ref reference) diag.Findings {
	if ref.key == "" || strings.Contains(ref.key, "${") {
		return nil
	}
	keys := map[string]bool{}
	for _, held := range s.called(p, ref.name) {
		if held.Kind != ref.kind || held.Namespace != ref.namespace || groupOf(held) != "" {
			continue
		}
		if strings.Contains(string(held.JSON), "${") {
			return nil
		}
		var content map[string]any
		_ = kjson.Unmarshal(held.JSON, &content) // its schema reports wrong types
		for _, field := range []string{"data", "stringData", "binaryData"} {
			for key := range mapping.Fields(content).In(field) {
				keys[key] = true
			}
		}
	}
	if keys[ref.key] || len(keys) == 0 { // a program fills an object without keys, or makes the object
		return nil
	}
	there := slices.Sorted(maps.Keys(keys))
	hint := "it has " + strings.Join(there[:min(len(there), 10)], ", ")
	if nearest := diag.Nearest(ref.key, there); nearest != "" {
		hint = "did you mean " + nearest + "?"
	}
	return diag.Findings{o.at(ref.keyField, ref.rule, fmt.Sprintf("the %s %.80s has no key %.80s", ref.kind, ref.name, ref.key), hint)}
}

// key says which key of the ConfigMap or Secret of the last reference is meant. before is the number of references before it.
func (c *referrer) key(before int, key, at string) {
	if len(c.refs) > before && key != "" {
		ref := &c.refs[len(c.refs)-1]
		ref.key, ref.keyField = key, at
	}
}

// items adds a reference for each key that a volume takes from its ConfigMap or Secret.
func (c *referrer) items(kind, path, name string) {
	eachAt(c.fields, path, func(at string, value any) {
		inner, _ := value.(map[string]any)
		volume := mapping.Fields(inner)
		if optional, _ := volume["optional"].(bool); optional {
			return
		}
		for i, item := range volume.List("items") {
			before := len(c.refs)
			c.named("", kind, "", volume.Text(name), at+"."+name)
			c.key(before, item.Text("key"), fmt.Sprintf("%s.items[%d].key", at, i))
		}
	})
}
