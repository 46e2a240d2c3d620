package v1alpha1

import (
	_ "embed" // the schema is generated: the comments that it is made of are not in the binary
	"slices"
)

//go:generate go run ./internal/genschema

//go:embed fleet.schema.json
var schema []byte

// Schema returns the JSON schema of fleet.yaml, for editors. Decode and Validate check more than it can say.
func Schema() []byte { return slices.Clone(schema) }
