package releases

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Valued is an object of a provider whose manifest contains variables.
type Valued struct {
	*unstructured.Unstructured
	// Variables are the names of these variables.
	Variables []string
}

var documentStart = regexp.MustCompile(`(?m)^---(\s|$)`)

// documents returns the YAML documents of a file for which chosen returns true.
func documents(content []byte, chosen func(doc []byte) bool) [][]byte {
	var all [][]byte
	starts := append(documentStart.FindAllIndex(content, -1), []int{len(content)})
	begin := 0
	for _, at := range starts {
		if doc := content[begin:at[0]]; chosen(doc) {
			all = append(all, doc)
		}
		begin = at[0]
	}
	return all
}

func namesVariables(doc []byte) bool { return bytes.Contains(doc, []byte("${")) }

// Given returns the values that s was given for the variables in the components of p. named are all variables of p with their defaults, or
// nil for a variable without a default.
func (s *Source) Given(ctx context.Context, p Provider) (given map[string]string, named map[string]*string, err error) {
	named, err = s.namedBy(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	given = map[string]string{}
	for name := range named {
		if value, ok := s.options.Variables[name]; ok && !slices.Contains(s.options.Kept, name) {
			given[name] = value
		}
	}
	return given, named, nil
}

// FromVariables returns the objects of p whose manifests contain variables: filled in, tuned and pinned.
func (s *Source) FromVariables(ctx context.Context, p Provider, namespace string) ([]Valued, error) {
	r, err := s.screened(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.checkFilled(r); err != nil {
		return nil, diag.Wrap("read the components of "+p.String(), err, "")
	}
	var all []Valued
	fill := newProcessor()
	for _, doc := range documents(r.manifest.YAML, namesVariables) {
		names, err := fill.GetVariables(doc)
		if err != nil {
			return nil, fmt.Errorf("read the variables of %s: %w", p, err)
		}
		components, err := repository.NewComponents(repository.ComponentsInput{
			Provider: r.provider, ConfigClient: s.config, Processor: fill, RawYaml: doc,
			Options: repository.ComponentsOptions{Version: r.manifest.Version, TargetNamespace: namespace},
		})
		if err != nil {
			return nil, diag.Wrap("read the components of "+p.String(), &quotingError{s.Hiding(err)}, "")
		}
		if err := s.tune(components); err != nil {
			return nil, err
		}
		objects := components.Objs()
		pin(kube.Pointers(objects), s.pinned())
		for i := range objects {
			if objects[i].GetKind() != "Namespace" {
				all = append(all, Valued{&objects[i], names})
			}
		}
	}
	return all, nil
}
