//go:build e2e

package handover

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// id says which object it is, whatever its version.
type id struct{ group, kind, namespace, name string }

func (i id) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s.%s %s/%s", i.kind, i.group, i.namespace, i.name), ".")
}

// snapshot has all objects of a side.
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

// unread are what an API server keeps for itself, or what says nothing of a fleet.
var unread = []string{
	"/registry/clusterroles/", "/registry/clusterrolebindings/", "/registry/roles/", "/registry/rolebindings/", "/registry/serviceaccounts/",
	"/registry/services/", "/registry/endpointslices/", "/registry/ipaddresses/", "/registry/servicecidrs/", "/registry/priorityclasses/",
	"/registry/csinodes/", "/registry/podtemplates/", "/registry/minions/",
}

// read reads all objects of the side from etcd, so that the API server has no work with it. Built-in kinds are stored as protobuf.
func (s *side) read(ctx context.Context, t testing.TB) snapshot {
	t.Helper()
	pairs, err := s.etcd.save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all := snapshot{}
	for key, value := range pairs {
		path, content := plain(t, key), plain(t, value)
		if slices.ContainsFunc(unread, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			continue
		}
		obj, err := decode([]byte(content))
		if err != nil {
			t.Fatalf("%s: %s: %v", s.name, path, err)
		}
		group, _, found := strings.Cut(obj.GetAPIVersion(), "/")
		if !found {
			group = ""
		}
		all[id{group, obj.GetKind(), obj.GetNamespace(), obj.GetName()}] = obj
	}
	return all
}

func plain(t testing.TB, text string) string {
	t.Helper()
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func decode(stored []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if bytes.HasPrefix(stored, []byte("{")) {
		return obj, json.Unmarshal(stored, &obj.Object)
	}
	typed, kind, err := scheme.Codecs.UniversalDeserializer().Decode(stored, nil, nil)
	if err != nil {
		return nil, err
	}
	typed.GetObjectKind().SetGroupVersionKind(*kind)
	content, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	return obj, json.Unmarshal(content, &obj.Object)
}
