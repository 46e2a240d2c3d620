package fleetrepo

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schemas compiles the schemas of charts' values, each once. It may be used at once. The zero value knows none yet.
type Schemas struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]*ValuesSchema
}

// ValuesSchema is what a chart demands of its values.
type ValuesSchema struct {
	// Document is the schema as it stands in the chart.
	Document map[string]any

	compiled *jsonschema.Schema
	mu       sync.Mutex
	// taken are digests of values that are valid: those of a cluster are looked at where they stand, and again as Helm sees them.
	taken map[[sha256.Size]byte]bool
}

// Compile reads the schema of a chart's values. It loads nothing from anywhere else: a schema that refers to others is an error.
func (s *Schemas) Compile(document map[string]any) (*ValuesSchema, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256(text)
	if known := s.all[sum]; known != nil {
		return known, nil
	}
	v := &ValuesSchema{Document: document, taken: map[[sha256.Size]byte]bool{}}
	if v.compiled, err = compileSchema(text); err != nil {
		return nil, err
	}
	if s.all == nil {
		s.all = map[[sha256.Size]byte]*ValuesSchema{}
	}
	s.all[sum] = v
	return v, nil
}

func compileSchema(text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	if err := compiler.AddResource("values.schema.json", document); err != nil {
		return nil, err
	}
	return compiler.Compile("values.schema.json")
}

// Judge returns what the schema refuses of values; nil where it takes them. The error says that they cannot be JSON.
func (v *ValuesSchema) Judge(values map[string]any) (*jsonschema.ValidationError, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	v.mu.Lock()
	known := v.taken[sum]
	v.mu.Unlock()
	if known {
		return nil, nil
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if failed, ok := errors.AsType[*jsonschema.ValidationError](v.compiled.Validate(plain)); ok {
		return failed, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.taken[sum] = true
	return nil, nil
}
