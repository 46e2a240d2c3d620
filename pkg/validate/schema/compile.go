package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/fleetctl/fleetctl/pkg/confine"
)

// version is one version of a CRD, compiled.
type version struct {
	once sync.Once
	err  error

	schema     *structural.Structural
	validator  validation.SchemaValidator
	acceptor   *acceptor
	rules      *cel.Validator // nil if there are none
	namespaced bool
	// warning is the API server's warning about a deprecated version; "" for other versions.
	warning string
	// replicas is the path of the number of replicas, if the kind has a scale subresource.
	replicas []string
}

// errNotServed is in the error of version if the CRD does not have the version, or does not serve it.
var errNotServed = errors.New("no such version")

// read decodes the CRD.
func (k *kind) read() (*apiextensionsv1.CustomResourceDefinition, error) {
	k.decode.Do(func() {
		k.crd, k.broken = decodeCRD(k.document)
		switch {
		case k.broken != nil:
		case k.crd == nil:
			k.broken = errors.New("it is no CRD")
		case madeBy(k.crd) != k.is: // a search for the lines of generated CRDs found another kind than the decoded CRD has
			k.broken = fmt.Errorf("its text looks like the CRD of %s, but it defines %s", k.is, madeBy(k.crd))
		}
		k.document = nil
	})
	return k.crd, k.broken
}

// served returns the versions of the kind that an API server would serve.
func (k *kind) served() []string {
	crd, err := k.read()
	if err != nil {
		return nil
	}
	var out []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

// prepare compiles a version of the CRD as named work. If an earlier process ended while it compiled the CRD, prepare refuses the CRD and
// does not read it again.
func (k *kind) prepare(ctx context.Context, name string) {
	end, refused := confine.Begin(ctx, fmt.Sprintf("the CRD of %s %s in %s", name, k.is, k.origin), "")
	defer end()
	if refused != nil {
		k.decode.Do(func() {
			err := fmt.Errorf("the CRD of %s in %s: %w", k.is, k.origin, refused)
			k.broken, k.document = &BrokenError{Origin: k.origin, Unread: true, Err: err}, nil
		})
		return
	}
	_, _ = k.version(ctx, name) // Check reports what is wrong
}

// version compiles a version of the CRD once for all callers. The end of a caller's context does not end the work.
func (k *kind) version(ctx context.Context, name string) (*version, error) {
	crd, err := k.read()
	if unread, ok := errors.AsType[*BrokenError](err); ok {
		return nil, unread
	}
	if err != nil {
		return nil, &BrokenError{Origin: k.origin, Err: fmt.Errorf("read the CRD in %s: %w", k.origin, err)}
	}
	i := slices.IndexFunc(crd.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name && v.Served })
	if i < 0 {
		return nil, errNotServed
	}
	k.mu.Lock()
	v := k.versions[name]
	if v == nil {
		v = &version{}
		k.versions[name] = v
	}
	k.mu.Unlock()
	v.once.Do(func() { v.err = v.compile(context.WithoutCancel(ctx), crd, &crd.Spec.Versions[i]) })
	if v.err != nil {
		return nil, k.brokenBy(v.err)
	}
	return v, nil
}

// BrokenError says that no API server accepts a CRD, so that no object can be checked against it.
type BrokenError struct {
	// Origin is the place that the CRD was added from. Name is the name of the CRD, or "" if it cannot be read.
	Origin, Name string
	// Unread says that the CRD was not read, because an earlier process ended while it read the CRD. An API server may accept it.
	Unread bool
	Err    error
}

// Error describes what is wrong with the CRD.
func (e *BrokenError) Error() string { return e.Err.Error() }

func (e *BrokenError) Unwrap() error { return e.Err }

// brokenBy is the error of a CRD that can be read.
func (k *kind) brokenBy(err error) *BrokenError {
	return brokenCRD(k.crd.Name, k.origin, err)
}

// compile compiles a version's schema as an API server does.
func (v *version) compile(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, from *apiextensionsv1.CustomResourceDefinitionVersion,
) error {
	v.namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
	if from.Deprecated {
		v.warning = fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, from.Name, crd.Spec.Names.Kind)
		if from.DeprecationWarning != nil {
			v.warning = *from.DeprecationWarning
		}
	}
	v.replicas = replicasOf(from)
	internal, shape, err := shapeOf(ctx, from)
	if err != nil {
		return err
	}
	v.schema = shape
	if v.validator, _, err = validation.NewSchemaValidator(internal); err != nil {
		return err
	}
	v.acceptor = newAcceptor(v.schema)
	v.rules = cel.NewValidator(v.schema, true, celconfig.PerCallLimit)
	return nil
}
