package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// relistDelay is the time between the end of a broken watch and the next list.
const relistDelay = 500 * time.Millisecond

// Selection selects objects of one kind. Empty fields select all.
type Selection struct {
	Namespace string
	Name      string
	Labels    map[string]string
}

// Objects are the selected objects of one kind that exist now.
type Objects map[Key]*unstructured.Unstructured

// Watch calls onChange with the selected objects of kind gvk, at first and after each change. It returns when onChange returns true or an
// error, or when ctx ends. onChange gets all selected objects that exist at that time, and must not keep the map.
func (c *Client) Watch(
	ctx context.Context,
	gvk schema.GroupVersionKind,
	sel Selection,
	onChange func(Objects) (done bool, err error),
) error {
	for {
		done, err := c.watchOnce(ctx, gvk, sel, onChange)
		if done || err != nil {
			return err
		}
		timer := time.NewTimer(relistDelay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

// watchOnce lists the objects and watches them. A broken watch is no error; the caller then calls watchOnce again.
func (c *Client) watchOnce(
	ctx context.Context,
	gvk schema.GroupVersionKind,
	sel Selection,
	onChange func(Objects) (bool, error),
) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := c.List(ctx, list, sel.options(nil)); err != nil {
		if isTransient(err) && ctx.Err() == nil {
			return false, nil
		}
		return false, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	objects := Objects{}
	for i := range list.Items {
		objects[keyOf(&list.Items[i])] = &list.Items[i]
	}
	if done, err := onChange(objects); done || err != nil {
		return done, err
	}
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &listWatcher{c, gvk, sel})
	if err != nil {
		return false, fmt.Errorf("watch %s: %w", gvk.Kind, err)
	}
	defer watcher.Stop()
	return follow(ctx, watcher, objects, onChange)
}

// follow applies watcher's events to objects. It returns false without an error when the watch breaks.
func follow(ctx context.Context, watcher watch.Interface, objects Objects, onChange func(Objects) (bool, error)) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case event, open := <-watcher.ResultChan():
			if !open {
				return false, nil
			}
			obj, ok := event.Object.(*unstructured.Unstructured)
			switch {
			case event.Type == watch.Error: // the resource version is too old: list again
				return false, nil
			case !ok:
				continue
			case event.Type == watch.Deleted:
				delete(objects, keyOf(obj))
			case event.Type == watch.Bookmark:
				continue
			default:
				objects[keyOf(obj)] = obj
			}
			if done, err := onChange(objects); done || err != nil {
				return done, err
			}
		}
	}
}

// WaitFor waits until done returns true or an error for the object of kind gvk named key. done gets nil while the object does not exist.
func (c *Client) WaitFor(
	ctx context.Context,
	gvk schema.GroupVersionKind,
	key Key,
	done func(*unstructured.Unstructured) (bool, error),
) error {
	sel := Selection{Namespace: key.Namespace, Name: key.Name}
	err := c.Watch(ctx, gvk, sel, func(objects Objects) (bool, error) { return done(objects[key]) })
	if err != nil {
		return fmt.Errorf("wait for %s: %w", Ref{gvk, key}, err)
	}
	return nil
}

// waitGone waits until the object with this UID no longer exists. It ignores another object of the same name. An empty UID matches every
// object. It returns at once if the API server does not serve the kind.
func (c *Client) waitGone(ctx context.Context, ref Ref, uid types.UID) error {
	err := c.WaitFor(ctx, ref.GroupVersionKind, ref.Key, func(obj *unstructured.Unstructured) (bool, error) {
		return obj == nil || uid != "" && obj.GetUID() != uid, nil
	})
	if IsAbsent(err) {
		return nil
	}
	return err
}

// WaitEstablished waits until the API server serves all the named CRDs.
func (c *Client) WaitEstablished(ctx context.Context, names ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for _, name := range names {
		group.Go(func() error { return c.waitEstablished(ctx, name, establishTime) })
	}
	return group.Wait()
}

const (
	// establishTime is the time after which WaitEstablished touches a CRD. It doubles after each touch. Most CRDs are established in a
	// fraction of a second.
	establishTime = 5 * time.Second
	// touchAnnotation is an annotation without meaning. Setting it updates a CRD.
	touchAnnotation = "fleetctl.dev/touched"
)

var errNotEstablished = errors.New("it is not established")

// waitEstablished waits until the CRD is established, and touches it after this patience, and then less and less often. An API server that
// was killed after it accepted a CRD's names does not establish the CRD after its restart, until somebody updates the CRD: the establishing
// controller of k8s.io/apiextensions-apiserver handles only updates. A server that has not accepted the names in time is busy. It gets no
// touch, which would keep it busy.
func (c *Client) waitEstablished(ctx context.Context, name string, patience time.Duration) error {
	for {
		accepted, err := c.established(ctx, name, patience)
		if ctx.Err() != nil || !errors.Is(err, errNotEstablished) {
			return err
		}
		if !accepted {
			continue
		}
		patience *= 2
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(crdGroupKind.WithVersion("v1"))
		crd.SetName(name)
		touch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, touchAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
		err = retryTransient(ctx, func(ctx context.Context) error {
			return c.Patch(ctx, crd, client.RawPatch(types.MergePatchType, touch), client.FieldOwner(FieldManager))
		})
		if err != nil && !IsAbsent(err) && !isLate(err) { // a busy server may establish the CRD without the touch
			return fmt.Errorf("touch CRD %s: %w", name, err)
		}
	}
}

// established waits until the API server serves a CRD, for at most patience. accepted tells whether the server has accepted its names.
func (c *Client) established(ctx context.Context, name string, patience time.Duration) (accepted bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNotEstablished)
	defer cancel()
	err = c.WaitFor(ctx, crdGroupKind.WithVersion("v1"), Key{Name: name}, func(crd *unstructured.Unstructured) (bool, error) {
		accepted = crd != nil && conditionStatus(crd, "NamesAccepted") == metav1.ConditionTrue
		return crd != nil && conditionStatus(crd, "Established") == metav1.ConditionTrue, nil
	})
	if err != nil && errors.Is(context.Cause(ctx), errNotEstablished) { // patience ended during a request, which returned err
		return accepted, errNotEstablished
	}
	return accepted, err
}

// timeoutError returns ctx's cause. If the deadline has passed, it adds what is still missing.
func timeoutError(ctx context.Context, missing string) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w; last: %s", cause, missing)
	}
	return cause
}

func (s Selection) options(raw *metav1.ListOptions) *client.ListOptions {
	opts := &client.ListOptions{Namespace: s.Namespace, Raw: raw}
	if s.Name != "" {
		opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", s.Name)
	}
	if len(s.Labels) > 0 {
		opts.LabelSelector = labels.SelectorFromSet(s.Labels)
	}
	return opts
}

// listWatcher opens watches for a RetryWatcher.
type listWatcher struct {
	client *Client
	gvk    schema.GroupVersionKind
	sel    Selection
}

// WatchWithContext opens a watch with the resource version in opts.
func (w *listWatcher) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(w.gvk.GroupVersion().WithKind(w.gvk.Kind + "List"))
	return w.client.WithWatch.Watch(ctx, list, w.sel.options(&opts))
}

func keyOf(obj metav1.Object) Key { return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()} }

// conditionStatus returns the status of obj's condition of this type, or "".
func conditionStatus(obj *unstructured.Unstructured, conditionType string) metav1.ConditionStatus {
	for _, c := range Conditions(obj) {
		if c.Type == conditionType {
			return c.Status
		}
	}
	return ""
}
