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

// checkFilled refuses values that are taken for YAML where they are filled in, and break it. The parser's own error is not told: it quotes
// the whole object, with all values in it. Values that are missing are not its business.
func (s *Source) checkFilled(r *release) error {
	const anything = "x"
	fill := newProcessor()
	given := s.config.Variables().Get
	for _, doc := range documents(r.manifest.YAML, namesVariables) {
		names, err := fill.GetVariables(doc)
		if err != nil {
			continue // whoever reads it says so
		}
		// With the values of some variables, and anything for the others; true where somebody else says what is wrong.
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
		if len(breaking) == 0 { // each is harmless alone
			breaking = names
		}
		return diag.Errorf("look where the provider's components have it, and write the value so that it can stand there: without line breaks, "+
			"and with its quotes escaped", "the value of %s is taken for YAML where it is filled in, and breaks it",
			strings.Join(breaking, " or "))
	}
	return nil
}

// isYAML tells whether a document is YAML, and so are the files in its Secrets and ConfigMaps that are called so.
func isYAML(doc []byte) bool {
	objects, err := utilyaml.ToUnstructured(doc)
	if err != nil {
		return false
	}
	for _, object := range objects {
		for _, field := range []string{"stringData", "data"} {
			files, _, err := unstructured.NestedStringMap(object.Object, field)
			if err != nil || object.GetKind() == "Secret" && field == "data" { // which is base64
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
