package flux

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// applier is the field manager of kustomize-controller.
const applier = "kustomize-controller"

// Switched is the result of SetSuspended for one object.
type Switched struct {
	kube.Ref
	// Absent: there is no such object. Changed: SetSuspended has changed it.
	Absent, Changed bool
	// InGit: the object is suspended in Git, so Flux will suspend it again when it applies Git.
	InGit bool
	// Below: it was suspended, or stays so, for a Kustomization that has applied it: see SetSuspendedBelow.
	Below bool
}

// RefTo names an object of Flux by its kind.
func RefTo(kind string, key kube.Key) (kube.Ref, error) {
	i := slices.IndexFunc(allKinds(), func(k schema.GroupVersionKind) bool { return k.Kind == kind })
	if i < 0 {
		return kube.Ref{}, fmt.Errorf("%s is not a kind of Flux", kind)
	}
	return kube.Ref{GroupVersionKind: allKinds()[i], Key: key}, nil
}

// SetSuspended suspends or resumes objects at once, and does not change Git. It sets no mark, so Resume does not resume these objects. It
// ends at the first error, and returns the results up to then.
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
	done.InGit = was && suspendedInGit(obj) // the field in Git may also be false
	if was == suspended {
		return done, nil
	}
	if _, letGo := obj.GetAnnotations()[letGoAnnotation]; letGo && !suspended {
		return done, diag.Errorf("finish or undo the command that has suspended it: `fleetctl cluster transfer`, `detach`, `drain` or `remove`",
			"%s stays suspended: its cluster is handed over, detached or drained, and Flux would make it again", ref)
	}
	change := map[string]any{"spec": map[string]any{"suspend": true}}
	if !suspended {
		change = toggled(nil, nil) // removes marks of fleetctl, too
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

// suspendedInGit tells whether Flux owns the field spec.suspend of an object, which means that the field is in Git.
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
