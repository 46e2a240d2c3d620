package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// parallelism bounds the concurrent requests of one call. More requests only make a small API server slower.
const parallelism = 12

// ApplyOptions are the options of Apply.
type ApplyOptions struct {
	// FieldManager that owns the applied fields. Default: FieldManager.
	FieldManager string
	// ForceConflicts takes over fields that another manager owns. Without it, a conflict is an error that names the fields.
	ForceConflicts bool
	// Detail, if not nil, is called with each line of progress.
	Detail func(string)
}

// Action is the effect of applying an object.
type Action string

// The actions.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
)

// Change is the effect of applying one object.
type Change struct {
	Ref
	Action Action
}

// Apply applies objects by server-side apply, in stages: namespaces; CRDs, and waits until these are established; objects of built-in
// kinds; webhook configurations; custom resources. It applies the objects of a stage in parallel, and repeats a custom resource while its
// webhook does not answer. If an object fails, Apply tries the others of its stage, and returns the joined errors. The result has a Change
// for each applied object, in the order of objects. Apply may be repeated at any point.
func (c *Client) Apply(ctx context.Context, objects []*unstructured.Unstructured, opts ApplyOptions) ([]Change, error) {
	if opts.FieldManager == "" {
		opts.FieldManager = FieldManager
	}
	if opts.Detail == nil {
		opts.Detail = func(string) {}
	}
	changes := make([]*Change, len(objects))
	for _, stage := range stagesOf(objects) {
		if len(stage.indices) == 0 {
			continue
		}
		opts.Detail("applying " + plain.Count(len(stage.indices), stage.name))
		if err := c.applyStage(ctx, stage, objects, changes, opts); err != nil {
			return collect(changes), err
		}
		if stage.after != nil {
			if err := stage.after(ctx, c); err != nil {
				return collect(changes), err
			}
		}
	}
	return collect(changes), nil
}

// stage is a part of an Apply. Its objects do not depend on each other.
type stage struct {
	name    string // of one of its objects
	indices []int
	// retry means that Apply repeats an object while its webhook does not answer or its kind does not exist.
	retry bool
	after func(context.Context, *Client) error
}

// stagesOf sorts objects into stages.
func stagesOf(objects []*unstructured.Unstructured) []*stage {
	namespaces := &stage{name: "namespace"}
	crds := &stage{name: "CRD"}
	builtIn := &stage{name: "object"}
	webhooks := &stage{name: "webhook"}
	custom := &stage{name: "custom resource", retry: true}
	var crdNames []string
	for i, obj := range objects {
		gk := obj.GroupVersionKind().GroupKind()
		var to *stage
		switch {
		case gk.Group == "" && gk.Kind == "Namespace":
			to = namespaces
		case gk == crdGroupKind:
			to = crds
			crdNames = append(crdNames, obj.GetName())
		case gk.Group == "admissionregistration.k8s.io":
			to = webhooks
		case isBuiltIn(gk.Group):
			to = builtIn
		default:
			to = custom
		}
		to.indices = append(to.indices, i)
	}
	crds.after = func(ctx context.Context, c *Client) error { return c.WaitEstablished(ctx, crdNames...) }
	return []*stage{namespaces, crds, builtIn, webhooks, custom}
}

func (c *Client) applyStage(
	ctx context.Context,
	s *stage,
	objects []*unstructured.Unstructured,
	changes []*Change,
	opts ApplyOptions,
) error {
	return Each(parallelism, s.indices, func(i int) error {
		apply := func(ctx context.Context) (err error) {
			changes[i], err = c.applyOne(ctx, objects[i], opts)
			return err
		}
		if s.retry {
			return untilAnswered(ctx, "the API answers for "+RefOf(objects[i]).String(), opts.Detail, apply)
		}
		return retryTransient(ctx, apply)
	})
}

// applyOne applies a copy of obj and returns the effect.
func (c *Client) applyOne(ctx context.Context, obj *unstructured.Unstructured, opts ApplyOptions) (*Change, error) {
	ref := RefOf(obj)
	before := &metav1.PartialObjectMetadata{}
	before.SetGroupVersionKind(obj.GroupVersionKind())
	if err := c.Get(ctx, ref.Key, before); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("apply %s: %w", ref, err)
	}
	applied := obj.DeepCopy()
	if ref.Kind == "Namespace" && ref.Group == "" {
		// The API server sets this label on each Namespace, on behalf of this field manager. Without it, the next apply would remove the
		// label.
		AddLabels(applied, map[string]string{corev1.LabelMetadataName: ref.Name})
	}
	applyOpts := []client.ApplyOption{client.FieldOwner(opts.FieldManager)}
	if opts.ForceConflicts {
		applyOpts = append(applyOpts, client.ForceOwnership)
	}
	if err := c.WithWatch.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), applyOpts...); err != nil {
		return nil, fmt.Errorf("apply %s: %w", ref, err)
	}
	change := &Change{Ref: ref, Action: Configured}
	switch before.GetResourceVersion() {
	case "":
		change.Action = Created
	case applied.GetResourceVersion():
		change.Action = Unchanged
	}
	return change, nil
}

func collect(changes []*Change) []Change {
	all := make([]Change, 0, len(changes))
	for _, c := range changes {
		if c != nil {
			all = append(all, *c)
		}
	}
	return all
}
