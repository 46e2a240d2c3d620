package kube

import (
	"context"
	"errors"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/await"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// prompt is a client whose calls end with their context while the client learns which kinds the API server has. Discovery takes no
// context: a call with little time left would wait as long as a single request may take, and queue behind the discovery of other calls.
type prompt struct {
	client.WithWatch

	host string
	// learnt has a schema.GroupVersionKind for each kind that the mapper knows, so that most calls start no goroutine.
	learnt *sync.Map
}

// promptly returns what ask returns, or an error when ctx ends. ask takes no context and goes on in the background: its requests have a
// time limit of their own.
func promptly[T any](ctx context.Context, host string, ask func() (T, error)) (value T, err error) {
	if err := ctx.Err(); err != nil {
		return value, notAsked(host, err)
	}
	defer progress.Wait(ctx, func() string { return "an answer of " + host })()
	value, err = await.Call(ctx, ask)
	if err != nil && ctx.Err() != nil {
		return value, notAsked(host, ctx.Err())
	}
	return value, err
}

// notAsked is the error of discovery that its caller no longer waits for.
func notAsked(host string, err error) error {
	hint := ""
	if errors.Is(err, context.DeadlineExceeded) {
		hint = lateHint
	}
	return diag.Wrap("ask the API server "+host+" which kinds it has", err, hint)
}

// learn learns the mapping of an object's kind within ctx.
func (p *prompt) learn(ctx context.Context, obj runtime.Object) error {
	gvk, err := p.GroupVersionKindFor(obj)
	if err != nil {
		return nil //nolint:nilerr // the call itself returns this error
	}
	if _, list := obj.(client.ObjectList); list {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	return p.learnKind(ctx, gvk)
}

func (p *prompt) learnKind(ctx context.Context, gvk schema.GroupVersionKind) error {
	if _, known := p.learnt.Load(gvk); known {
		return nil
	}
	_, err := promptly(ctx, p.host, func() (*meta.RESTMapping, error) { return p.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version) })
	if err == nil {
		p.learnt.Store(gvk, true)
	}
	return err
}

// learnConfiguration is learn for what client.ApplyConfigurationFromUnstructured returns.
func (p *prompt) learnConfiguration(ctx context.Context, obj runtime.ApplyConfiguration) error {
	of, ok := obj.(interface {
		GroupVersionKind() schema.GroupVersionKind
	})
	if !ok {
		return nil
	}
	return p.learnKind(ctx, of.GroupVersionKind())
}

// Get implements client.Reader.
func (p *prompt) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := p.learn(ctx, obj); err != nil {
		return err
	}
	return p.WithWatch.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (p *prompt) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := p.learn(ctx, list); err != nil {
		return err
	}
	return p.WithWatch.List(ctx, list, opts...)
}

// Watch implements client.WithWatch.
func (p *prompt) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	if err := p.learn(ctx, list); err != nil {
		return nil, err
	}
	return p.WithWatch.Watch(ctx, list, opts...)
}

// Apply implements client.Writer.
func (p *prompt) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := p.learnConfiguration(ctx, obj); err != nil {
		return err
	}
	return p.WithWatch.Apply(ctx, obj, opts...)
}

// Create implements client.Writer.
func (p *prompt) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if err := p.learn(ctx, obj); err != nil {
		return err
	}
	return p.WithWatch.Create(ctx, obj, opts...)
}

// Delete implements client.Writer.
func (p *prompt) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if err := p.learn(ctx, obj); err != nil {
		return err
	}
	return p.WithWatch.Delete(ctx, obj, opts...)
}

// Update implements client.Writer.
func (p *prompt) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if err := p.learn(ctx, obj); err != nil {
		return err
	}
	return p.WithWatch.Update(ctx, obj, opts...)
}

// Patch implements client.Writer.
func (p *prompt) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := p.learn(ctx, obj); err != nil {
		return err
	}
	return p.WithWatch.Patch(ctx, obj, patch, opts...)
}

// DeleteAllOf implements client.Writer.
func (p *prompt) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	if err := p.learn(ctx, obj); err != nil {
		return err
	}
	return p.WithWatch.DeleteAllOf(ctx, obj, opts...)
}

// Status implements client.StatusClient.
func (p *prompt) Status() client.SubResourceWriter { return p.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (p *prompt) SubResource(name string) client.SubResourceClient {
	return &promptPart{p.WithWatch.SubResource(name), p}
}

// promptPart is prompt for a part of objects, such as their status.
type promptPart struct {
	client.SubResourceClient

	whole *prompt
}

// Get implements client.SubResourceReader.
func (p *promptPart) Get(ctx context.Context, obj, part client.Object, opts ...client.SubResourceGetOption) error {
	if err := p.whole.learn(ctx, obj); err != nil {
		return err
	}
	return p.SubResourceClient.Get(ctx, obj, part, opts...)
}

// Create implements client.SubResourceWriter.
func (p *promptPart) Create(ctx context.Context, obj, part client.Object, opts ...client.SubResourceCreateOption) error {
	if err := p.whole.learn(ctx, obj); err != nil {
		return err
	}
	return p.SubResourceClient.Create(ctx, obj, part, opts...)
}

// Update implements client.SubResourceWriter.
func (p *promptPart) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if err := p.whole.learn(ctx, obj); err != nil {
		return err
	}
	return p.SubResourceClient.Update(ctx, obj, opts...)
}

// Patch implements client.SubResourceWriter.
func (p *promptPart) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := p.whole.learn(ctx, obj); err != nil {
		return err
	}
	return p.SubResourceClient.Patch(ctx, obj, patch, opts...)
}

// Apply implements client.SubResourceWriter.
func (p *promptPart) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if err := p.whole.learnConfiguration(ctx, obj); err != nil {
		return err
	}
	return p.SubResourceClient.Apply(ctx, obj, opts...)
}

// Mapping returns how the API server names the objects of a kind, as RESTMapper does, and ends with ctx.
func (c *Client) Mapping(ctx context.Context, kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return promptly(ctx, c.Host(), func() (*meta.RESTMapping, error) { return c.RESTMapper().RESTMapping(kind, versions...) })
}

// KindFor returns the kind of a resource, as RESTMapper does, and ends with ctx.
func (c *Client) KindFor(ctx context.Context, resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return promptly(ctx, c.Host(), func() (schema.GroupVersionKind, error) { return c.RESTMapper().KindFor(resource) })
}
