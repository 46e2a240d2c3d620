package validate

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// checkResources reports texts that are no objects in a ConfigMap that a ClusterResourceSet applies. Cluster API then applies nothing of
// the ConfigMap, and reports it in a condition of the ClusterResourceSet.
func (s *resolver) checkResources(p place, o *object, ref reference) (out diag.Findings) {
	if o.Kind != "ClusterResourceSet" || ref.kind != "ConfigMap" {
		return nil
	}
	for _, found := range s.called(p, ref.name) {
		if found.Kind != ref.kind || found.Namespace != ref.namespace || found.Template != "" || s.read[found.Object] {
			continue
		}
		s.read[found.Object] = true
		var content map[string]any
		_ = kjson.Unmarshal(found.JSON, &content) // its schema reports wrong types
		data := mapping.Fields(content).In("data")
		for _, name := range slices.Sorted(maps.Keys(data)) {
			text, _ := data[name].(string)
			if why := notObjects(text); why != "" {
				out = append(out, found.at("data["+name+"]", RuleValue, why,
					fmt.Sprintf("the ClusterResourceSet %.80s applies each text of it as objects of Kubernetes", o.Name)))
			}
		}
	}
	return out
}

// notObjects says why a text is not a stream of objects; "" if it is one.
func notObjects(text string) string {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for n := 1; ; n++ {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return fmt.Sprintf("it is not YAML: %.200s", err)
		}
		if len(document.Content) == 0 {
			continue
		}
		top := document.Content[0]
		if yamledit.Text(yamledit.Lookup(top, "apiVersion")) != "" && yamledit.Text(yamledit.Lookup(top, "kind")) == "" {
			return fmt.Sprintf("its document %d is no object: kind is missing", n)
		}
	}
}
