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

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Variable is a variable of a provider's components.
type Variable struct {
	Name string
	// HasDefault means that the variable needs no value, because it has a Default.
	HasDefault bool
	Default    string
	// IsSet means that the Source was given a value.
	IsSet bool
}

// Variables returns the variables in the components of p, sorted by name.
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

// namedBy returns the variables in the components of p with their defaults.
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
	found, err := newProcessor().GetVariableMap(r.manifest.YAML)
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

// WithVariables returns s with other values for the variables. kept are the variables whose values are unknown here. The new Source keeps
// the releases that s has read.
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

// CheckVariables returns an error that names every variable of providers without a value or default, and the page that documents it.
func (s *Source) CheckVariables(ctx context.Context, providers []Provider) error {
	errs := make([]error, len(providers))
	var group errgroup.Group
	for i, p := range providers {
		group.Go(func() error {
			errs[i] = s.checkVariables(ctx, p)
			return nil
		})
	}
	_ = group.Wait() // errs has the errors, to report them together
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
		"export them, or set their sources under `variables:` of the provider in fleet.yaml")
}

// MissingVariablesError names the variables of a provider without a value or default.
type MissingVariablesError struct {
	Provider Provider
	Names    []string
}

// Error names the provider, the variables and the page that documents them.
func (e *MissingVariablesError) Error() string {
	return fmt.Sprintf("%s needs a value for %s (see %s)", e.Provider, strings.Join(e.Names, ", "), e.Provider.DocumentationURL())
}
