package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

const (
	schemaID   = "https://fleetctl.dev/schemas/v1alpha1/fleet.schema.json"
	apiPackage = "github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// reflectSchema returns the schema of a fleet, with the types' comments as descriptions and with the valid values of fields.
func reflectSchema() (*jsonschema.Schema, error) {
	r := &jsonschema.Reflector{Mapper: enumerations}
	if err := r.AddGoComments(apiPackage, "./", jsonschema.WithFullComment()); err != nil {
		return nil, fmt.Errorf("read comments: %w", err)
	}
	for name, comment := range r.CommentMap {
		r.CommentMap[name] = strings.Join(strings.Fields(comment), " ")
	}
	schema := r.Reflect(&v1alpha1.Fleet{})
	schema.ID = schemaID
	schema.Title = "fleet.yaml"
	return schema, refine(schema)
}

// enumerations returns the schema of a text type with a fixed set of values, and nil for every other type.
func enumerations(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[v1alpha1.HostType]():
		return enumeration(v1alpha1.HostTypes())
	case reflect.TypeFor[v1alpha1.ForgeType]():
		return enumeration(v1alpha1.ForgeTypes())
	case reflect.TypeFor[v1alpha1.VaultMethod]():
		return enumeration(v1alpha1.VaultMethods())
	case reflect.TypeFor[v1alpha1.ProviderType]():
		return enumeration(v1alpha1.ProviderTypes())
	}
	return nil
}

func enumeration[T any](values []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	return s
}

// refine adds the rules that the types cannot express.
func refine(schema *jsonschema.Schema) error {
	for _, change := range []struct {
		definition, field string
		apply             func(*jsonschema.Schema)
	}{
		{"Fleet", "apiVersion", func(s *jsonschema.Schema) { s.Const = v1alpha1.APIVersion }},
		{"Fleet", "kind", func(s *jsonschema.Schema) { s.Const = v1alpha1.Kind }},
		{"FleetSpec", "managementClusters", func(s *jsonschema.Schema) { s.MinItems = new(uint64(1)) }},
		{"ManagerTuning", "flags", func(s *jsonschema.Schema) { s.AdditionalProperties.Minimum = "1" }},
		{"Flux", "components", func(s *jsonschema.Schema) { s.Items = enumeration(v1alpha1.FluxComponents()) }},
	} {
		definition := schema.Definitions[change.definition]
		if definition == nil {
			return fmt.Errorf("no type %s", change.definition)
		}
		field, ok := definition.Properties.Get(change.field)
		if !ok {
			return fmt.Errorf("type %s has no field %s", change.definition, change.field)
		}
		change.apply(field)
	}
	return nil
}

func encode(schema *jsonschema.Schema) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(schema); err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return b.Bytes(), nil
}
