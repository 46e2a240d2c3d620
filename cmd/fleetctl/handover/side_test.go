//go:build e2e

package handover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fleetctl/fleetctl/pkg/testprograms"
)

// side is a management cluster: etcd and kube-apiserver with the CRDs and the providers' Deployments, whose controllers the test
// plays. The test reads and writes it with plain requests, so that the tested code takes no part in the proof.
type side struct {
	name       string
	config     *rest.Config
	host       string // its URL
	kubeconfig []byte
	http       *http.Client
	etcd       *etcd
	resources  []resource
	// playing is held by play while it acts.
	playing sync.Mutex
}

// resource is a kind of object that can be created.
type resource struct {
	group, version, plural, kind string
}

func (r resource) path(namespace, name string) string {
	path := "/api/" + r.version
	if r.group != "" {
		path = "/apis/" + r.group + "/" + r.version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.plural
	if name != "" {
		path += "/" + name
	}
	return path
}

// startTime bounds the start of one, beside others on a busy machine.
const startTime = 3 * time.Minute

func startSide(t testing.TB, name string) *side {
	t.Helper()
	path, definitions := programs(t), crds(t)
	env := testprograms.Start(t, func() *envtest.Environment {
		return &envtest.Environment{
			BinaryAssetsDirectory: path, ControlPlaneStartTimeout: startTime,
			CRDInstallOptions: envtest.CRDInstallOptions{CRDs: definitions, MaxTime: startTime},
		}
	})
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{
		name: name, config: config, host: strings.TrimSuffix(host.String(), "/"), kubeconfig: env.KubeConfig, http: client,
		etcd: &etcd{url: env.ControlPlane.Etcd.URL},
	}
	s.discover(t)
	return s
}

// save returns the present content of the side, for restore.
func (s *side) save(ctx context.Context, t testing.TB) saved {
	t.Helper()
	s.settle(ctx, t)
	kept, err := s.etcd.save(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// restore brings the side back to the saved content. An API server learns late that a policy is gone, so restore waits until the policy
// denies nothing.
func (s *side) restore(ctx context.Context, t testing.TB, kept saved) {
	t.Helper()
	s.playing.Lock()
	defer s.playing.Unlock()
	touched, err := s.etcd.restore(ctx, kept)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(touched, func(key string) bool { return strings.Contains(key, "validatingadmissionpolic") }) {
		const group = "admissionregistration.k8s.io"
		policies, bindings := s.listOf(ctx, t, group, "ValidatingAdmissionPolicy"), s.listOf(ctx, t, group, "ValidatingAdmissionPolicyBinding")
		s.awaitFence(ctx, t, len(policies) > 0 && len(bindings) > 0)
	}
}

// awaitFence waits until strangers are denied, or allowed, to write to Clusters as the policies say that are there.
func (s *side) awaitFence(ctx context.Context, t testing.TB, fenced bool) {
	t.Helper()
	clusters := s.listOf(ctx, t, "cluster.x-k8s.io", "Cluster")
	until(ctx, t, s.name+" to notice what policies it has", func() bool {
		return !slices.ContainsFunc(clusters, func(c *unstructured.Unstructured) bool { return s.denies(ctx, c) != fenced })
	})
}

// denies tells whether a stranger's write to obj is refused.
func (s *side) denies(ctx context.Context, obj *unstructured.Unstructured) bool {
	r := resource{group: "cluster.x-k8s.io", version: "v1beta2", plural: "clusters"}
	err := s.request(ctx, http.MethodPatch, r.path(obj.GetNamespace(), obj.GetName())+"?dryRun=All&fieldManager=stranger",
		[]byte(`{"metadata":{"annotations":{"stranger":"was here"}}}`), nil, "Impersonate-User", "stranger",
		"Impersonate-Group", "system:masters")
	return err != nil
}

func (s *side) listOf(ctx context.Context, t testing.TB, group, kind string) []*unstructured.Unstructured {
	t.Helper()
	return s.list(ctx, t, s.resourceOf(t, group, kind))
}

func (s *side) resourceOf(t testing.TB, group, kind string) resource {
	t.Helper()
	i := slices.IndexFunc(s.resources, func(r resource) bool { return r.group == group && r.kind == kind })
	if i < 0 {
		t.Fatalf("%s serves no %s of %q", s.name, kind, group)
	}
	return s.resources[i]
}

// discover finds all kinds that can be created, at the version that the server prefers.
func (s *side) discover(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	var groups metav1.APIGroupList
	s.must(ctx, t, http.MethodGet, "/apis", nil, &groups)
	versions := []string{"/api/v1"}
	for _, g := range groups.Groups {
		versions = append(versions, "/apis/"+g.PreferredVersion.GroupVersion)
	}
	for _, version := range versions {
		var list metav1.APIResourceList
		s.must(ctx, t, http.MethodGet, version, nil, &list)
		group, v, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group, v = "", list.GroupVersion
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "create") && !strings.Contains(r.Name, "/") {
				s.resources = append(s.resources, resource{group: group, version: v, plural: r.Name, kind: r.Kind})
			}
		}
	}
}

// statusError is an answer that is none of success.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

func hasCode(err error, code int) bool {
	status, ok := errors.AsType[*statusError](err)
	return ok && status.code == code
}

// request sends a request with a JSON body, and headers as pairs of name and value.
func (s *side) request(ctx context.Context, method, path string, body []byte, answer any, headers ...string) error {
	r, err := http.NewRequestWithContext(ctx, method, s.host+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Impersonate-Group" { // there may be several
			r.Header.Add(headers[i], headers[i+1])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		var status metav1.Status
		_ = json.Unmarshal(content, &status) // where it is none, the code says it
		message := fmt.Sprintf("%s: %s %s: %s: %s", s.name, method, r.URL.Path, response.Status, status.Message)
		return &statusError{code: response.StatusCode, message: message}
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(content, answer)
}

func (s *side) must(ctx context.Context, t testing.TB, method, path string, body []byte, answer any) {
	t.Helper()
	if err := s.request(ctx, method, path, body, answer); err != nil {
		t.Fatal(err)
	}
}

// waitTime bounds a wait for what takes a second where nothing else runs.
const waitTime = 90 * time.Second

// until polls a condition that no request can wait for.
func until(ctx context.Context, t testing.TB, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, waitTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
