//go:build e2e

package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// id says which object it is, whatever its version.
type id struct{ group, kind, namespace, name string }

func (i id) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s.%s %s/%s", i.kind, i.group, i.namespace, i.name), ".")
}

// snapshot is all that a side holds.
type snapshot map[id]*unstructured.Unstructured

func (s snapshot) byUID() map[types.UID]id {
	uids := make(map[types.UID]id, len(s))
	for i, obj := range s {
		uids[obj.GetUID()] = i
	}
	return uids
}

// of are the objects of one kind.
func (s snapshot) of(kind string) map[id]*unstructured.Unstructured {
	found := map[id]*unstructured.Unstructured{}
	for i, obj := range s {
		if i.kind == kind {
			found[i] = obj
		}
	}
	return found
}

// list reads all objects of one kind.
func (s *side) list(ctx context.Context, t testing.TB, r resource) []*unstructured.Unstructured {
	t.Helper()
	objects, err := s.tryList(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// tryList also waits for a kind that the server has only just begun to serve.
func (s *side) tryList(ctx context.Context, r resource) ([]*unstructured.Unstructured, error) {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	err := s.request(ctx, http.MethodGet, r.path("", ""), nil, &list)
	for hasCode(err, http.StatusTooManyRequests) && ctx.Err() == nil {
		err = s.request(ctx, http.MethodGet, r.path("", ""), nil, &list)
	}
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i, item := range list.Items {
		objects[i] = &unstructured.Unstructured{}
		if err := json.Unmarshal(item, &objects[i].Object); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// read reads all that the side holds.
func (s *side) read(ctx context.Context, t testing.TB) snapshot {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	all := snapshot{}
	errs := make([]error, len(s.resources))
	for n, r := range s.resources {
		wg.Go(func() {
			objects, err := s.tryList(ctx, r)
			if err != nil {
				errs[n] = err
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, obj := range objects {
				all[id{r.group, r.kind, obj.GetNamespace(), obj.GetName()}] = obj
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
