package flux

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// applier is the field manager by which kustomize-controller applies.
const applier = "kustomize-controller"

// Switched is one object that SetSuspended was asked for.
type Switched struct {
	kube.Ref
	// Absent: there is no such object; Changed: it was not as it was wanted.
	Absent, Changed bool
	// InGit: what Git has of it says that it is suspended, and so does Flux again whenever it applies that.
	InGit bool
}

// RefTo names an object of Flux by its kind.
func RefTo(kind string, key kube.Key) (kube.Ref, error) {
	i := slices.IndexFunc(allKinds(), func(k schema.GroupVersionKind) bool { return k.Kind == kind })
	if i < 0 {
		return kube.Ref{}, fmt.Errorf("flux has no kind %s that fleetctl knows", kind)
	}
	return kube.Ref{GroupVersionKind: allKinds()[i], Key: key}, nil
}

// SetSuspended suspends objects, or lets Flux go on with them, at once, whatever Git says. It leaves no mark: Resume does not touch what a person has
// suspended so. It ends at the first error, and returns what was done before it.
func (s *System) SetSuspended(ctx context.Context, refs []kube.Ref, suspended bool) ([]Switched, error) {
	var all []Switched
	for _, ref := range refs {
		done, err := s.setSuspended(ctx, ref, suspended)
		if err != nil {
			return all, err
		}
		all = append(all, done)
	}
	return all, nil
}

func (s *System) setSuspended(ctx context.Context, ref kube.Ref, suspended bool) (Switched, error) {
	done := Switched{Ref: ref}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(ref.GroupVersionKind)
	if err := s.client.Get(ctx, ref.Key, obj); kube.IsAbsent(err) {
		done.Absent = true
		return done, nil
	} else if err != nil {
		return done, fmt.Errorf("look at %s: %w", ref, err)
	}
	was, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	done.InGit = was && suspendedInGit(obj) // Git may also say that it is not
	if was == suspended {
		return done, nil
	}
	change := map[string]any{"spec": map[string]any{"suspend": true}}
	if !suspended {
		change = toggled(nil, nil) // also where fleetctl had suspended it for something that is over
	}
	if err := s.patch(ctx, ref, change); apierrors.IsNotFound(err) {
		done.Absent = true
		return done, nil
	} else if err != nil {
		return done, fmt.Errorf("change %s: %w", ref, err)
	}
	done.Changed = true
	if suspended {
		return done, nil
	}
	return done, s.request(ctx, ref)
}

// suspendedInGit tells whether it is Flux that has set the field of an object which suspends it: it stands in what Flux has applied.
func suspendedInGit(obj *unstructured.Unstructured) bool {
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != applier || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err == nil && fields.Spec["f:suspend"] != nil {
			return true
		}
	}
	return false
}
