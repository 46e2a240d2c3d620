//go:build integration

package flux

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A channel goes to a tag, and back while the real kustomize-controller is still fetching the tag for one of two Kustomizations. The
// controller overlooks the way back for that one. Status says so, and the hint's command ends it.
func TestOverlookedRevision(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	client, kubeconfig := kubetest.Start(t)
	installCRDs(ctx, t, client)
	startControllers(t, kubeconfig, kustomizeController)
	system := NewSystem(client)

	const old, newer = "v0.1.0", "v0.1.1"
	server := serveArtifacts(t, old, newer)
	source := suspendedSource("release", "https://git.example.com/fleet.git")
	unstructured.RemoveNestedField(source.Object, "spec", "suspend")
	if err := client.Create(ctx, source); err != nil {
		t.Fatal(err)
	}
	server.offer(ctx, client, old)
	for _, name := range []string{"one", "two"} {
		k := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
			"metadata": map[string]any{"name": name, "namespace": Namespace},
			"spec": map[string]any{
				"interval": "1h", "prune": true, "path": "./" + name, "sourceRef": map[string]any{"kind": "GitRepository", "name": "release"},
			},
		}}
		if err := client.Create(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	ready := func(o Object) bool { return o.Ready }
	at := func(tag string) func(Object) bool {
		return func(o Object) bool { return strings.HasPrefix(o.Revision, tag+"@") && (o.Ready || o.Behind != "") }
	}
	until(ctx, t, system, "both have applied "+old, func(all map[string]Object) bool { return ready(all["one"]) && ready(all["two"]) })

	server.offer(ctx, client, newer)
	held := server.held(ctx)
	other := map[string]string{"one": "two", "two": "one"}
	var stuck string
	until(ctx, t, system, "one has applied "+newer, func(all map[string]Object) bool {
		for name := range other {
			if at(newer)(all[name]) {
				stuck = other[name]
			}
		}
		return stuck != ""
	})
	server.offer(ctx, client, old)
	// The controller has seen the change of the source once the other one has applied it.
	until(ctx, t, system, other[stuck]+" is back", func(all map[string]Object) bool { return at(old)(all[other[stuck]]) })
	close(held)
	until(ctx, t, system, stuck+" has applied what was rolled back", func(all map[string]Object) bool { return at(newer)(all[stuck]) })

	report, err := system.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if report.Healthy() {
		t.Error("a tag that was rolled back is healthy")
	}
	for _, k := range report.Kustomizations {
		if k.Name != stuck {
			continue
		}
		if k.Ready || !strings.HasPrefix(k.Reason, "it has not applied "+old+"@sha1:") {
			t.Errorf("it is at a tag that was rolled back, and Flux does not look again; status says %+v", k)
		}
		if !strings.Contains(k.Behind, "`kubectl -n flux-system annotate --overwrite kustomization "+stuck+" reconcile.fluxcd.io/requestedAt=") {
			t.Errorf("what to do: %s", k.Behind)
		}
	}
	if err := system.request(ctx, kube.Ref{GroupVersionKind: kustomizationKind, Key: kube.Key{Namespace: Namespace, Name: stuck}}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, system, stuck+" is back", func(all map[string]Object) bool { return at(old)(all[stuck]) && ready(all[stuck]) })
}

// until waits until what the status says of the Kustomizations is as wanted.
func until(ctx context.Context, t *testing.T, system *System, what string, wanted func(map[string]Object) bool) {
	t.Helper()
	var all map[string]Object
	err := system.client.Watch(ctx, kustomizationKind, kube.Selection{}, func(kube.Objects) (bool, error) {
		report, err := system.Status(ctx)
		if err != nil {
			return false, err
		}
		all = map[string]Object{}
		for _, k := range report.Kustomizations {
			all[k.Name] = k
		}
		return wanted(all), nil
	})
	if err != nil {
		t.Fatalf("%s: %v; Kustomizations: %+v", what, err, all)
	}
}

// artifacts are a source's archives of several tags. The first request for the newest waits.
type artifacts struct {
	t       *testing.T
	url     string
	content map[string][]byte
	asked   chan struct{}
	hold    chan struct{}
}

func serveArtifacts(t *testing.T, tags ...string) *artifacts {
	t.Helper()
	a := &artifacts{t: t, content: map[string][]byte{}, asked: make(chan struct{}), hold: make(chan struct{})}
	for _, tag := range tags {
		a.content[tag] = archive(t, tag)
	}
	newest, first := tags[len(tags)-1], atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag := strings.TrimSuffix(path.Base(r.URL.Path), ".tar.gz")
		if tag == newest && first.CompareAndSwap(false, true) {
			close(a.asked)
			select {
			case <-a.hold:
			case <-r.Context().Done():
			}
		}
		_, _ = w.Write(a.content[tag])
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// held waits for the first request for the newest tag. It is answered once the channel is closed.
func (a *artifacts) held(ctx context.Context) chan struct{} {
	a.t.Helper()
	select {
	case <-a.asked:
	case <-ctx.Done():
		a.t.Fatal("the newest tag was not asked for")
	}
	return a.hold
}

// offer is what source-controller writes when it has fetched a tag.
func (a *artifacts) offer(ctx context.Context, client *kube.Client, tag string) {
	a.t.Helper()
	obj := suspendedSource("release", "")
	if err := client.Get(ctx, kube.RefOf(obj).Key, obj); err != nil {
		a.t.Fatal(err)
	}
	now := time.Now().UTC().Format(time.RFC3339)
	obj.Object["status"] = map[string]any{
		"observedGeneration": obj.GetGeneration(),
		"artifact": map[string]any{
			"revision": fmt.Sprintf("%s@sha1:%x", tag, sha256.Sum224([]byte(tag)))[:len(tag)+6+40],
			"digest":   fmt.Sprintf("sha256:%x", sha256.Sum256(a.content[tag])),
			"path":     tag, "url": a.url + "/" + tag + ".tar.gz", "lastUpdateTime": now,
		},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored artifact", "lastTransitionTime": now,
			"observedGeneration": obj.GetGeneration(),
		}},
	}
	if err := client.Status().Update(ctx, obj); err != nil {
		a.t.Fatal(err)
	}
}

func archive(t *testing.T, tag string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	files := tar.NewWriter(compressed)
	for _, name := range []string{"one", "two"} {
		content := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\ndata: {tag: " + tag + "}\n"
		header := &tar.Header{Name: name + "/map.yaml", Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
