// Package valuesschema reads the schemas of charts' values, and validates values by them. It knows no repository, and reads no files.
package valuesschema

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/fleetctl/fleetctl/pkg/await"
)

// Schemas compiles the schemas of charts' values, each once. It is safe for use by several goroutines. The zero value knows none yet.
type Schemas struct {
	// Elsewhere, if set, judges values by a schema, both JSON, in a process with limits, and this process compiles nothing: a few lines of a
	// schema can take all time and all memory. Without it, this process has such limits itself.
	Elsewhere func(schema, values []byte) (*Refusal, error)
	// Within bounds how long this process compiles a schema, and how long it checks values. Default: six seconds. Honest schemas take
	// milliseconds, but 40 lines can refer to each other in a trillion ways.
	Within time.Duration

	mu  sync.Mutex
	all map[[sha256.Size]byte]*Schema
}

// Schema is the schema of a chart's values.
type Schema struct {
	// Document is the schema's text in the chart.
	Document map[string]any

	compiled  *jsonschema.Schema // nil where another process judges
	elsewhere func(values []byte) (*Refusal, error)
	within    time.Duration
	mu        sync.Mutex
	// slow is the error of a check that took too long. The schema checks no other values.
	slow error
	// taken are digests of valid values. The same values of a cluster are checked twice: in the file, and as Helm
	// merges them.
	taken map[[sha256.Size]byte]bool
}

// Compile reads the schema of a chart's values. It loads nothing from anywhere else: a schema that refers to others is an error.
func (s *Schemas) Compile(document map[string]any) (*Schema, error) {
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
	v := &Schema{Document: document, within: cmp.Or(s.Within, usualTime), taken: map[[sha256.Size]byte]bool{}}
	if s.Elsewhere != nil {
		v.elsewhere = func(values []byte) (*Refusal, error) { return s.Elsewhere(text, values) }
	} else if v.compiled, err = bounded(v.within, "compile it", func() (*jsonschema.Schema, error) { return compile(text) }); err != nil {
		return nil, err
	}
	if s.all == nil {
		s.all = map[[sha256.Size]byte]*Schema{}
	}
	s.all[sum] = v
	return v, nil
}

func compile(text []byte) (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{})
	if err := compiler.AddResource(address, document); err != nil {
		return nil, errorOf(err)
	}
	compiled, err := compiler.Compile(address)
	if err != nil {
		return nil, errorOf(err)
	}
	return compiled, nil
}

// Judge returns the schema's refusal of values, nil if they are valid. It fails if they cannot be encoded as JSON or cannot be checked.
func (v *Schema) Judge(values map[string]any) (*Refusal, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	v.mu.Lock()
	known, slow := v.taken[sum], v.slow
	v.mu.Unlock()
	if known || slow != nil {
		return nil, slow
	}
	judge := v.elsewhere
	if judge == nil {
		judge = func(values []byte) (*Refusal, error) { return refusedWithin(v.within, v.compiled, values) }
	}
	refusal, err := judge(text)
	v.mu.Lock()
	defer v.mu.Unlock()
	if errors.Is(err, ErrSlow) {
		v.slow = err
	}
	if err == nil && refusal == nil {
		v.taken[sum] = true
	}
	return refusal, err
}

// Judge does the work of Schemas.Elsewhere in the other process.
func Judge(schema, values []byte) (*Refusal, error) {
	compiled, err := bounded(usualTime, "compile it", func() (*jsonschema.Schema, error) { return compile(schema) })
	if err != nil {
		return nil, err
	}
	return refusedWithin(usualTime, compiled, values)
}

// usualTime is the default of Schemas.Within.
const usualTime = 6 * time.Second

// ErrSlow is the error of a schema that takes too long.
var ErrSlow = errors.New("out of time")

// bounded returns what do returns, or an error that matches ErrSlow after the time within. The library takes no context, so do goes on: the
// process has limits of its own, and ends with its command.
func bounded[T any](within time.Duration, what string, do func() (T, error)) (T, error) {
	return await.Within(within, fmt.Errorf("%w: to %s takes longer than %s", ErrSlow, what, within), do)
}

func refusedWithin(within time.Duration, schema *jsonschema.Schema, values []byte) (*Refusal, error) {
	return bounded(within, "check the values against values.schema.json", func() (*Refusal, error) { return refused(schema, values) })
}

func refused(schema *jsonschema.Schema, values []byte) (*Refusal, error) {
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(values))
	if err != nil {
		return nil, err
	}
	if failed, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(plain)); ok {
		return refusalOf(failed, plain), nil
	}
	return nil, nil
}

// Refusal says why a schema refuses a value. It is the library's error in a form that another process can send.
type Refusal struct {
	Location []string
	// Unknown are fields that the schema does not have. Missing are required fields.
	Unknown, Missing []string
	// Name is a field that the schema does not allow because of its name; "" if it is not that.
	Name string
	// Choice says that the schema wants one of several things. Each cause says why the value is not one of them. Not
	// says what the value must not be.
	Choice, Not bool
	// Said is the library's message, if there are no causes.
	Said   string
	Causes []Refusal
}

func refusalOf(e *jsonschema.ValidationError, values any) *Refusal {
	r := &Refusal{Location: e.InstanceLocation}
	switch k := e.ErrorKind.(type) {
	case *kind.PropertyNames:
		r.Name, r.Location = k.Property, named(values, e.InstanceLocation, k.Property)
		return r
	case *kind.AdditionalProperties:
		r.Unknown = k.Properties
	case *kind.Required:
		r.Missing = k.Missing
	case *kind.AnyOf, *kind.OneOf:
		r.Choice = true
	case *kind.Not:
		r.Not = true
	}
	for _, cause := range e.Causes {
		r.Causes = append(r.Causes, *refusalOf(cause, values))
	}
	if len(r.Causes) == 0 {
		r.Said = said(e.ErrorKind)
	}
	return r
}

// said returns the library's message. Nobody reads a long pattern, such as that of an IPv6 network: the description of the value, which
// stands beside the message, says what it means.
func said(k jsonschema.ErrorKind) string {
	const readable = 80
	if pattern, ok := k.(*kind.Pattern); ok && len(pattern.Want) > readable {
		return fmt.Sprintf("%.80q does not have the form of this value", pattern.Got)
	}
	return k.LocalizedString(message.NewPrinter(language.English))
}

// named returns where in values a field of this name is. For the name of a field, the library gives a location that it writes over while it
// goes on: only its length holds. So the location is taken if it has such a field, and otherwise the first one as deep that has.
func named(values any, location []string, name string) []string {
	var found [][]string
	var walk func(value any, at []string)
	walk = func(value any, at []string) {
		fields, isObject := value.(map[string]any)
		if len(at) == len(location) {
			if _, has := fields[name]; has {
				found = append(found, slices.Clone(at))
			}
			return
		}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			walk(fields[field], append(at, field))
		}
		if items, isList := value.([]any); isList && !isObject {
			for i, item := range items {
				walk(item, append(at, strconv.Itoa(i)))
			}
		}
	}
	walk(values, nil)
	if i := slices.IndexFunc(found, func(at []string) bool { return slices.Equal(at, location) }); i >= 0 {
		return found[i]
	}
	if len(found) > 0 {
		return found[0]
	}
	return slices.Clone(location)
}
