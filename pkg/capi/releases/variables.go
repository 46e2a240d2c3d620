package releases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Variable is one that a provider's components need.
type Variable struct {
	Name string
	// HasDefault tells that it may be left out; Default is then used.
	HasDefault bool
	Default    string
	// IsSet tells that the Source was given a value.
	IsSet bool
}

// Variables are the variables that the components of p name, sorted by name.
func (s *Source) Variables(ctx context.Context, p Provider) ([]Variable, error) {
	defaults, err := s.namedBy(ctx, p)
	if err != nil {
		return nil, err
	}
	variables := make([]Variable, 0, len(defaults))
	for name, value := range defaults {
		v := Variable{Name: name, HasDefault: value != nil}
		if value != nil {
			v.Default = *value
		}
		_, v.IsSet = s.variables[name]
		variables = append(variables, v)
	}
	slices.SortFunc(variables, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	return variables, nil
}

// namedBy are the variables that the components of p name, with their defaults.
func (s *Source) namedBy(ctx context.Context, p Provider) (map[string]*string, error) {
	s.mu.Lock()
	known := s.named[p]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	r, err := s.screened(ctx, p)
	if err != nil {
		return nil, err
	}
	found, err := yamlprocessor.NewSimpleProcessor().GetVariableMap(r.manifest.YAML)
	if err != nil {
		return nil, fmt.Errorf("read the variables of %s: %w", p, err)
	}
	if p.Version != "" {
		s.mu.Lock()
		s.named[p] = found
		s.mu.Unlock()
	}
	return found, nil
}

// WithVariables is s with other values for the variables, of which kept are not known. What has been found out about the components is not
// looked for again.
func (s *Source) WithVariables(variables map[string]string, kept ...string) (*Source, error) {
	opts := s.options
	opts.Variables, opts.Kept = variables, kept
	other, err := NewSource(opts)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(other.named, s.named)
	maps.Copy(other.releases, s.releases)
	other.certsRaw, other.pins = s.certsRaw, s.pins
	return other, nil
}

// CheckVariables returns an error that names every variable without a value that one of providers needs, and where to read about it.
func (s *Source) CheckVariables(ctx context.Context, providers []Provider) error {
	errs := make([]error, len(providers))
	var group errgroup.Group
	for i, p := range providers {
		group.Go(func() error {
			errs[i] = s.checkVariables(ctx, p)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, so that all are told at once
	return errors.Join(errs...)
}

func (s *Source) checkVariables(ctx context.Context, p Provider) error {
	variables, err := s.Variables(ctx, p)
	if err != nil {
		return err
	}
	var missing []string
	for _, v := range variables {
		if !v.IsSet && !v.HasDefault {
			missing = append(missing, v.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return diag.Wrap("", &MissingVariablesError{Provider: p, Names: missing},
		"export them, or say where they come from: `variables:` of the provider in fleet.yaml")
}

// MissingVariablesError names the variables that a provider needs and that have no value.
type MissingVariablesError struct {
	Provider Provider
	Names    []string
}

// Error names the provider, the variables and where to read about them.
func (e *MissingVariablesError) Error() string {
	return fmt.Sprintf("%s needs a value for %s (see %s)", e.Provider, strings.Join(e.Names, ", "), e.Provider.DocumentationURL())
}
