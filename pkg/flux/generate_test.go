package flux

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with testdata/<name>.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", name, diff)
	}
}

func TestGenerateComponentsFromBase(t *testing.T) {
	before := dirNames(t, "testdata/base")
	c, err := GenerateComponents(t.Context(), ComponentsOptions{
		Version: "v2.9.5", NetworkPolicy: true, Registry: "registry.example/flux/", ManifestsBase: "testdata/base",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "gotk-components.golden.yaml", c.Content)
	var want []Image
	for _, name := range []string{"helm-controller", "kustomize-controller", "notification-controller", "source-controller"} {
		want = append(want, Image{Name: "ghcr.io/fluxcd/" + name + ":v1.2.3", From: "registry.example/flux/" + name + ":v1.2.3"})
	}
	if diff := cmp.Diff(want, c.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, dirNames(t, "testdata/base")); diff != "" {
		t.Errorf("the base was written to:\n%s", diff)
	}
}

func TestGenerateComponentsWithoutNetworkPolicy(t *testing.T) {
	c, err := GenerateComponents(t.Context(), ComponentsOptions{
		Version: "v2.9.5", Components: []string{"source-controller", "kustomize-controller"}, ManifestsBase: "testdata/base",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"NetworkPolicy", "helm-controller", "events-addr=http"} {
		if bytes.Contains(c.Content, []byte(absent)) {
			t.Errorf("unexpected %s in:\n%s", absent, c.Content)
		}
	}
}

func TestGenerateComponentsErrors(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		opts       ComponentsOptions
	}{
		{"no version", `flux version "" is not a release`, ComponentsOptions{ManifestsBase: "testdata/base"}},
		{"latest", `flux version "latest" is not a release`, ComponentsOptions{Version: "latest"}},
		{"unknown component", `unknown flux component "helm"`, ComponentsOptions{
			Version: "v2.9.5", ManifestsBase: "testdata/base", Components: []string{"source-controller", "helm"},
		}},
		{"no way to sync", "kustomize-controller is needed", ComponentsOptions{
			Version: "v2.9.5", ManifestsBase: "testdata/base", Components: []string{"source-controller"},
		}},
		{"not in the base", "lack image-reflector-controller.yaml", ComponentsOptions{
			Version: "v2.9.5", ManifestsBase: "testdata/base",
			Components: []string{"source-controller", "kustomize-controller", "image-reflector-controller"},
		}},
		{"no such base", "lack rbac.yaml", ComponentsOptions{Version: "v2.9.5", ManifestsBase: "testdata/nowhere"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := GenerateComponents(t.Context(), tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got error %v, want one with %q", err, tt.want)
			}
			if diag.Hint(err) == "" {
				t.Errorf("no hint with %v", err)
			}
		})
	}
}

func TestDownload(t *testing.T) {
	archive := releaseArchive(t, "testdata/base")
	released := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/download/v2.9.5/manifests.tar.gz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) })
	mux.HandleFunc("/download/v2.9.6/manifests.tar.gz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	})
	mux.HandleFunc("/download/v2.9.7/manifests.tar.gz",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive[:len(archive)/2]) })
	mux.HandleFunc("/download/v2.9.8/manifests.tar.gz", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-released:
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(released)

	c, err := GenerateComponents(t.Context(), ComponentsOptions{
		Version: "v2.9.5", NetworkPolicy: true, Registry: "registry.example/flux",
		ReleasesURL: server.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "gotk-components.golden.yaml", c.Content)

	for version, want := range map[string]string{"v9.9.9": "no such release", "v2.9.6": "502 Bad Gateway", "v2.9.7": "unpack"} {
		_, err := GenerateComponents(t.Context(), ComponentsOptions{Version: version, ReleasesURL: server.URL})
		if err == nil || !strings.Contains(err.Error(), want) || diag.Hint(err) == "" {
			t.Errorf("%s: got %v (hint %q), want an error with %q and a hint", version, err, diag.Hint(err), want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := GenerateComponents(ctx, ComponentsOptions{Version: "v2.9.8", ReleasesURL: server.URL}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("a server that hangs: got %v, want the context's error", err)
	}
}

func TestGenerateSync(t *testing.T) {
	for name, opts := range map[string]SyncOptions{
		"https": {URL: "https://git.example/fleet.git", Branch: "main", Path: "providers/aws/v1/mgmt", SecretName: Name},
		"local": {
			URL: "http://10.88.0.1:8123/fleet", Branch: "trunk", Path: "./providers/docker/v1/mgmt/", SecretName: Name, Interval: 10 * time.Second,
		},
		"public": {URL: "https://git.example/fleet.git", Branch: "main", Path: "providers/aws/v1/mgmt"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := GenerateSync(opts)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "gotk-sync-"+name+".golden.yaml", got)
		})
	}
	if _, err := GenerateSync(SyncOptions{URL: "https://git.example/fleet.git"}); err == nil {
		t.Error("no branch and path: want an error")
	}
}

// The three files together build with kustomize, as kustomize-controller does it.
func TestSystemFilesBuild(t *testing.T) {
	c, err := GenerateComponents(t.Context(), ComponentsOptions{Version: "v2.9.5", NetworkPolicy: true, ManifestsBase: "testdata/base"})
	if err != nil {
		t.Fatal(err)
	}
	files, err := SystemFiles(c, SyncOptions{
		URL: "https://git.example/fleet.git", Branch: "main",
		Path: "providers/docker/v1/mgmt", SecretName: Name,
	})
	if err != nil {
		t.Fatal(err)
	}
	fs := filesys.MakeFsInMemory()
	for _, f := range files {
		if err := fs.WriteFile(f.Path, f.Content); err != nil {
			t.Fatal(err)
		}
	}
	res, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "providers/docker/v1/mgmt/flux-system")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range res.Resources() {
		kinds[r.GetKind()]++
	}
	want := map[string]int{
		"Namespace": 1, "NetworkPolicy": 1, "ClusterRoleBinding": 1, "Deployment": 4,
		"GitRepository": 1, "Kustomization": 1,
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

// The tuning reaches the controllers of the management cluster, and what comes from it for workload clusters stays as it was released.
func TestSystemFilesTuned(t *testing.T) {
	c, err := GenerateComponents(t.Context(), ComponentsOptions{Version: "v2.9.5", ManifestsBase: "testdata/base", Tuning: []kube.Tuning{
		{Manager: "helm-controller", Flags: map[string]int{"concurrent": 10, "kube-api-qps": 100}, Limits: map[string]string{"memory": "2Gi"}},
		{Manager: "kustomize-controller", Flags: map[string]int{"concurrent": 40}},
		{Manager: "capi-controller-manager", Flags: map[string]int{"machine-concurrency": 1}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(c.Content, []byte("concurrent")) {
		t.Errorf("the components are tuned:\n%s", c.Content)
	}
	files, err := SystemFiles(c, SyncOptions{URL: "https://git.example/fleet.git", Branch: "main", Path: "mgmt", SecretName: Name})
	if err != nil {
		t.Fatal(err)
	}
	fs := filesys.MakeFsInMemory()
	for _, f := range files {
		if err := fs.WriteFile(f.Path, f.Content); err != nil {
			t.Fatal(err)
		}
		if path.Base(f.Path) == TuningFile {
			golden(t, "gotk-tuning.golden.yaml", f.Content)
		}
	}
	res, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, "mgmt/flux-system")
	if err != nil {
		t.Fatal(err)
	}
	built, err := res.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kube.ParseYAML(built)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := kube.ParseYAML(c.Content)
	if err == nil {
		_, err = tune(installed, c.Tuning)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range installed { // what Install applies is what Flux then finds in the repo
		i := slices.IndexFunc(objects, func(obj *unstructured.Unstructured) bool { return kube.RefOf(obj) == kube.RefOf(want) })
		if diff := cmp.Diff(want, objects[i]); diff != "" {
			t.Errorf("%s (-installed +in the repo):\n%s", kube.RefOf(want), diff)
		}
	}
}

func TestUsesTuning(t *testing.T) {
	for content, want := range map[string]bool{
		string(systemKustomization()):                true,
		"patches: [{path: ./gotk-tuning.yaml}]":      true,
		"resources: [gotk-tuning.yaml]":              false,
		"patches: [{patch: a, target: {kind: b}}]\n": false,
		"": false,
	} {
		if got, err := UsesTuning([]byte(content)); err != nil || got != want {
			t.Errorf("%s: got %v, %v", content, got, err)
		}
	}
	if _, err := UsesTuning([]byte("patches: {")); err == nil {
		t.Error("no error for what is no YAML")
	}
}

func TestSourceSecret(t *testing.T) {
	pem := []byte("-----BEGIN-----")
	for _, tt := range []struct {
		name string
		in   SourceCredentials
		keys map[string]string
		err  string
	}{
		{"token", SourceCredentials{Username: "git", Password: "tok"}, map[string]string{"username": "git", "password": "tok"}, ""},
		{
			"token and ca",
			SourceCredentials{Username: "git", Password: "tok", CA: pem},
			map[string]string{"username": "git", "password": "tok", "ca.crt": string(pem)},
			"",
		},
		{
			"ssh",
			SourceCredentials{Identity: pem, IdentityPub: []byte("pub"), KnownHosts: []byte("host key")},
			map[string]string{"identity": string(pem), "identity.pub": "pub", "known_hosts": "host key"},
			"",
		},
		{"only a ca", SourceCredentials{CA: pem}, map[string]string{"ca.crt": string(pem)}, ""},
		{"ssh without host keys", SourceCredentials{Identity: pem, IdentityPub: []byte("pub")}, nil, "host keys"},
		{"ssh without public half", SourceCredentials{Identity: pem, KnownHosts: []byte("k")}, nil, "public half"},
		{"ssh and password", SourceCredentials{Identity: pem, Password: "p"}, nil, "at once"},
		{"half", SourceCredentials{Username: "git"}, nil, "go together"},
		{"none", SourceCredentials{}, nil, "no credentials"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := SourceSecret(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for k, v := range s.Data {
				got[k] = string(v)
			}
			if diff := cmp.Diff(tt.keys, got); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentialsDoNotPrint(t *testing.T) {
	c := SourceCredentials{Username: "git", Password: "s3cret", Identity: []byte("s3cret")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if out := fmt.Sprintf(verb, c); strings.Contains(out, "s3cret") {
			t.Errorf("%s prints the secret: %s", verb, out)
		}
	}
}

func dirNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// releaseArchive packs dir as manifests.tar.gz of a Flux release.
func releaseArchive(t *testing.T, dir string) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, name := range dirNames(t, dir) {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
