package releases

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkFilled refuses values of variables that make the YAML of the components invalid. It does not quote the parser's own error, which
// contains the whole object with all values. It does not report missing values.
func (s *Source) checkFilled(r *release) error {
	const anything = "x"
	fill := newProcessor()
	given := s.config.Variables().Get
	for _, doc := range documents(r.manifest.YAML, namesVariables) {
		names, err := fill.GetVariables(doc)
		if err != nil {
			continue // the parser reports this error
		}
		// holds tells whether the document is valid YAML with the values of the chosen variables, and with a placeholder for the others. It also
		// returns true for errors that other code reports.
		holds := func(chosen ...string) bool {
			filled, err := fill.Process(doc, func(name string) (string, error) {
				if slices.Contains(chosen, name) {
					return given(name)
				}
				return anything, nil
			})
			return err != nil || isYAML(filled)
		}
		if holds(names...) || !holds() {
			continue
		}
		breaking := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return holds(name) })
		if len(breaking) == 0 { // each value alone is valid
			breaking = names
		}
		return diag.Errorf("see where the provider's components use it, and write the value so that it is valid there: without line breaks, "+
			"and with its quotes escaped", "the value of %s makes the YAML of the provider's components invalid",
			strings.Join(breaking, " or "))
	}
	return nil
}

// isYAML tells whether a document is valid YAML. The YAML and JSON files in its Secrets and ConfigMaps must be valid too.
func isYAML(doc []byte) bool {
	objects, err := utilyaml.ToUnstructured(doc)
	if err != nil {
		return false
	}
	for _, object := range objects {
		for _, field := range []string{"stringData", "data"} {
			files, _, err := unstructured.NestedStringMap(object.Object, field)
			if err != nil || object.GetKind() == "Secret" && field == "data" { // this field is base64
				continue
			}
			for name, content := range files {
				var parsed any
				if slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) && yaml.Unmarshal([]byte(content), &parsed) != nil {
					return false
				}
			}
		}
	}
	return true
}
