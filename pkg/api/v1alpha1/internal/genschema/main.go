// Genschema generates files from the types of fleet.yaml and their comments: the JSON schema, embedded and published, and the reference in
// docs. `go generate` runs it in the folder of the package v1alpha1.
package main

import (
	"fmt"
	"os"
)

// outputs returns the generated files by path, relative to the folder of the package v1alpha1. The current folder must be this one.
func outputs() (map[string][]byte, error) {
	schema, err := reflectSchema()
	if err != nil {
		return nil, err
	}
	text, err := encode(schema)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"fleet.schema.json":                         text,
		"../../../docs/reference/fleet.schema.json": text,
		"../../../docs/reference/fleet.yaml.md":     reference(schema),
	}, nil
}

func main() {
	files, err := outputs()
	for path, content := range files {
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "genschema:", err)
		os.Exit(1)
	}
}
