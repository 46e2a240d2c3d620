package transfer

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownrepo"
	"github.com/fleetctl/fleetctl/pkg/ownrepo/ownrepotest"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/secret"
)

// heard is a reporter that keeps the warnings.
type heard struct {
	progress.Reporter

	warnings []string
}

func (h *heard) Warn(text string) { h.warnings = append(h.warnings, text) }

// server is an API server with only quotas and Secrets. It refuses the value -7, and its error quotes the value. Its only object is the
// Secret with the keys of Flux.
type server struct {
	keys []byte

	mu      sync.Mutex
	changes []string // requests that would have changed something
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	switch {
	case r.URL.Path == "/api":
		answer(http.StatusOK, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
		return
	case r.URL.Path == "/apis":
		answer(http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}})
		return
	case r.URL.Path == "/api/v1":
		answer(http.StatusOK, map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "resourcequotas", "namespaced": true, "kind": "ResourceQuota", "verbs": []string{"get", "patch"}},
			map[string]any{"name": "secrets", "namespaced": true, "kind": "Secret", "verbs": []string{"get", "patch"}},
		}})
		return
	case r.URL.Path == "/api/v1/namespaces/flux-system/secrets/sops-age" && s.keys != nil:
		answer(http.StatusOK, map[string]any{
			"kind": "Secret", "apiVersion": "v1", "metadata": map[string]any{"name": "sops-age", "namespace": "flux-system"},
			"data": map[string]any{"age.agekey": s.keys},
		})
		return
	}
	if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") != "All" {
		s.mu.Lock()
		s.changes = append(s.changes, r.Method+" "+r.URL.String())
		s.mu.Unlock()
	}
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodPatch && !strings.Contains(string(body), "-7"):
		answer(http.StatusOK, json.RawMessage(body))
	case r.Method == http.MethodPatch:
		answer(http.StatusUnprocessableEntity, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422, "message": "not -7",
		})
	default:
		answer(http.StatusNotFound, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "it is not there",
		})
	}
}

// clientOf returns a client of a new server.
func clientOf(t *testing.T) (*kube.Client, *server) {
	t.Helper()
	s := &server{}
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	client, err := kube.New([]byte("{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: '"+listening.URL+
		"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client, s
}

const twoFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://127.0.0.1:1/fleet.git"}
  environments: [{name: prod}]
  managementClusters:
  - {name: first, cloud: first, host: {type: embedded}, providers: [{name: docker, version: v1.14.2}]}
  - {name: second, cloud: second, host: {type: embedded}, providers: [{name: docker, version: v1.14.2}]}
`

// transferOf returns a transfer in a new fleet repo, whose first management cluster has the cluster shop.
func transferOf(t *testing.T, h *heard) *transfer {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, v1alpha1.FileName), []byte(twoFleet), 0o600); err != nil {
		t.Fatal(err)
	}
	add := fleetrepo.AddOptions{
		Name: "shop", Environment: "prod", ManagementCluster: "first", Flavour: "docker", KubernetesVersion: "v1.36.3",
	}
	_, err := change.Make(t.Context(), change.Options{
		Dir: dir, Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.Add(add) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &transfer{
		Deps: management.Deps{Report: h}, opts: Options{Cluster: "shop", To: "second", Change: change.Options{Dir: dir}},
		name: "shop", key: kube.Key{Namespace: "shop", Name: "shop"}, warned: map[string]bool{}, result: &Result{},
		from: &side{target: &management.Target{Name: "first"}}, to: &side{target: &management.Target{Name: "second"}},
	}
}

// sealedSecret returns an encrypted Secret with a value that the server refuses.
func sealedSecret(t *testing.T, metadata string, keys secret.Keys) string {
	t.Helper()
	sealed, err := secret.Encrypt([]byte("{apiVersion: v1, kind: Secret, metadata: "+metadata+", stringData: {a: '-7'}}\n"),
		secret.Rule{EncryptedRegex: "^(data|stringData)$", Recipients: keys.Recipients()})
	if err != nil {
		t.Fatal(err)
	}
	return string(sealed)
}

// A transfer into the target's own fleet repo rehearses too. It uses the files that arrive there, encrypted for the keys of that repo.
func TestRehearseIntoOwnRepo(t *testing.T) {
	forge, dir, deps, key := ownrepotest.New(t)
	h := &heard{Reporter: progress.Discard}
	deps.Report = h
	add := fleetrepo.AddOptions{
		Name: "early", Environment: "prod", ManagementCluster: "root", Flavour: "docker", KubernetesVersion: "v1.36.3",
	}
	_, err := change.Make(t.Context(), change.Options{
		Dir: dir, Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.Add(add) },
	})
	if err != nil {
		t.Fatal(err)
	}
	sealed := sealedSecret(t, "{name: token, namespace: early}", secret.Keys{key})
	folder := filepath.Join(dir, "providers", "root", "v1", "clusters", "prod", "early")
	for name, content := range map[string]string{
		"token.sops.yaml": sealed, "kustomization.yaml": "resources: [cluster.yaml, token.sops.yaml]\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "providers", "eu")); err != nil { // it has a file that is no object
		t.Fatal(err)
	}
	git := change.Credentials{Token: forge.Token}
	own, err := ownrepo.Open(t.Context(), deps, ownrepo.Options{Dir: dir, Cluster: "eu", Git: git})
	if err != nil {
		t.Fatal(err)
	}
	target, server := clientOf(t)
	x := &transfer{
		Deps: deps, name: "early", key: kube.Key{Namespace: "early", Name: "early"}, warned: map[string]bool{}, result: &Result{},
		opts: Options{
			Cluster: "prod/early", To: "eu", Change: change.Options{Dir: dir, Push: true},
			Into: &Into{Dir: own.Dir, Git: git, From: "root", Reseal: own.Reseal},
		},
		from: &side{target: &management.Target{Name: "root"}}, to: &side{target: &management.Target{Name: "eu"}},
	}
	if err := x.rehearse(t.Context(), target, nil); err != nil {
		t.Errorf("without the key of eu: %v", err)
	}
	const sealedFor = "Secret early/token, which is encrypted for a key that eu will not have"
	if said := strings.Join(h.warnings, "\n"); !strings.Contains(said, sealedFor) {
		t.Errorf("warnings: %q", said)
	}
	server.keys = secret.Keys{key}.File() // the repo of eu is not encrypted for the masters' key
	if err := x.rehearse(t.Context(), target, nil); err != nil {
		t.Errorf("with the key of the masters: %v", err)
	}
	if len(server.changes) > 0 {
		t.Errorf("it has changed something: %q", server.changes)
	}
	if head := forge.Head(t, "main"); head != "" {
		if files := gittest.Git(t, own.Dir, "ls-tree", "-r", "--name-only", head); strings.Contains(files, "early") {
			t.Errorf("it has pushed:\n%s", files)
		}
	}
}

// A transfer rehearses encrypted objects too, with the keys of the target, and its error quotes no decrypted value.
func TestRehearseEncrypted(t *testing.T) {
	target, server := clientOf(t)
	h := &heard{Reporter: progress.Discard}
	x := transferOf(t, h)
	folder := filepath.Join(x.opts.Change.Dir, "providers", "first", "v1", "clusters", "prod", "shop")
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	keys := secret.Keys{key}
	sealed := sealedSecret(t, "{name: password, namespace: shop}", keys)
	for name, content := range map[string]string{
		"password.sops.yaml": sealed, "kustomization.yaml": "resources: [cluster.yaml, password.sops.yaml]\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.rehearse(t.Context(), target, nil); err != nil {
		t.Errorf("without the key: %v", err)
	}
	const sealedFor = "Secret shop/password, which is encrypted for a key that second will not have"
	if said := strings.Join(h.warnings, "\n"); !strings.Contains(said, sealedFor) {
		t.Errorf("warnings: %q", said)
	}
	server.keys = keys.File()
	err = x.rehearse(t.Context(), target, nil)
	if err == nil || !strings.Contains(err.Error(), "Secret shop/password, which Kustomization") || strings.Contains(err.Error(), "-7") {
		t.Errorf("what the target refuses: %v", err)
	}
	if len(server.changes) > 0 {
		t.Errorf("it has changed something: %q", server.changes)
	}
}

// A transfer rehearses the Flux of its target twice: before it changes anything, and when the target has the objects.
func TestRehearse(t *testing.T) {
	ctx := t.Context()
	source, ofSource := clientOf(t)
	target, ofTarget := clientOf(t)
	h := &heard{Reporter: progress.Discard}
	x := transferOf(t, h)
	folder := filepath.Join(x.opts.Change.Dir, "providers", "first", "v1", "clusters", "prod", "shop")
	write := func(size string) {
		t.Helper()
		const quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: all, namespace: shop}, spec: {hard: {pods: '"
		for name, content := range map[string]string{
			"extra.yaml": quota + size + "'}}}\n", "kustomization.yaml": "resources: [cluster.yaml, extra.yaml]\n",
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("7")
	if err := x.rehearse(ctx, target, source); err != nil {
		t.Fatalf("what the target takes: %v", err)
	}
	said := strings.Join(h.warnings, "\n")
	if !strings.Contains(said, "the charts that the Flux of second installs would make") || !strings.Contains(said, "Cluster shop/shop") {
		t.Errorf("warnings: %q", said)
	}
	write("-7")
	for name, where := range map[string]*kube.Client{"before": source, "behind the fence": nil} {
		err := x.rehearse(ctx, target, where)
		if err == nil || !strings.Contains(err.Error(), "ResourceQuota shop/all") || diag.Hint(err) == "" {
			t.Errorf("what the target refuses, tried %s: %v (%s)", name, err, diag.Hint(err))
		}
	}
	if again := strings.Join(h.warnings, "\n"); again != said {
		t.Errorf("said again: %q", again)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("it has changed the fleet repo: %v", err)
	}
	// If the fleet repo already declares the cluster at the target, the objects in its namespace are tried too.
	if _, err := change.Make(ctx, change.Options{Dir: x.opts.Change.Dir, Edit: x.edit}); err != nil {
		t.Fatal(err)
	}
	x.declared = true
	if err := x.rehearse(ctx, target, source); err == nil || !strings.Contains(err.Error(), "ResourceQuota shop/all") {
		t.Errorf("what is declared at the target: %v", err)
	}
	if changed := slices.Concat(ofSource.changes, ofTarget.changes); len(changed) > 0 {
		t.Errorf("it has changed something: %q", changed)
	}
}

// The rehearsal uses the content of the remote, which Flux reads. It warns of a clone that is behind and of commits that are not pushed.
func TestRehearseWhatTheRemoteHas(t *testing.T) {
	ctx := t.Context()
	forge := gittest.NewHTTPS(t, gittest.Options{})
	target, _ := clientOf(t)
	h := &heard{Reporter: progress.Discard}
	x := transferOf(t, h)
	const quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: all, namespace: shop}, spec: {hard: {pods: 'SIZE'}}}\n"
	const folder, file = "providers/first/v1/clusters/prod/shop/", "providers/first/v1/clusters/prod/shop/extra.yaml"
	files := map[string]string{"ca.pem": string(forge.CA)}
	err := filepath.WalkDir(x.opts.Change.Dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		rel, _ := filepath.Rel(x.opts.Change.Dir, name)
		files[filepath.ToSlash(rel)] = strings.Replace(string(content), `{url: "https://127.0.0.1:1/fleet.git"}`,
			`{url: "`+forge.URL+`", username: git, caFile: ca.pem}`, 1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files[folder+"kustomization.yaml"] = "resources: [cluster.yaml, extra.yaml]\n"
	files[file] = strings.ReplaceAll(quota, "SIZE", "7")
	forge.Seed(t, "main", files)
	auth := gitrepo.Auth{Username: forge.Username, Token: forge.Token, CA: forge.CA}
	clone := func() string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "fleet")
		if _, err := gitrepo.Clone(ctx, forge.URL, auth, "main", dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	commit := func(dir, size string) *gitrepo.Repo {
		t.Helper()
		repo, err := gitrepo.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		changes := []gitrepo.Change{{Path: file, Content: []byte(strings.ReplaceAll(quota, "SIZE", size))}}
		base, err := repo.Head()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := repo.CommitOnto(ctx, base, changes, "Size", gitrepo.Author{Name: "a", Email: "a@example.com"}); err != nil {
			t.Fatal(err)
		}
		return repo
	}
	push := func(repo *gitrepo.Repo) {
		t.Helper()
		nothing := func(string) ([]gitrepo.Change, error) { return nil, nil }
		if _, err := repo.Sync(ctx, auth, nothing, "Size", gitrepo.Author{}); err != nil {
			t.Fatal(err)
		}
	}
	x.opts.Change = change.Options{Dir: clone(), Git: change.Credentials{Token: forge.Token}}
	if err := x.rehearse(ctx, target, nil); err != nil {
		t.Fatalf("as the remote has it: %v", err)
	}
	if said := strings.Join(h.warnings, "\n"); strings.Contains(said, "the clone of the fleet repo") {
		t.Errorf("of a clone that is up to date: %q", said)
	}
	mine := commit(x.opts.Change.Dir, "-7")
	if err := x.rehearse(ctx, target, nil); err != nil {
		t.Errorf("what is not pushed: %v", err)
	}
	if said := strings.Join(h.warnings, "\n"); !strings.Contains(said, "commits that the remote does not have") {
		t.Errorf("of what is not pushed: %q", said)
	}
	push(mine)
	x.opts.Change.Dir = clone()
	push(commit(x.opts.Change.Dir, "8"))
	behind := clone()
	head := gittest.Git(t, behind, "rev-parse", "HEAD")
	push(commit(x.opts.Change.Dir, "-7"))
	x.opts.Change.Dir = behind
	if err := x.rehearse(ctx, target, nil); err == nil || !strings.Contains(err.Error(), "ResourceQuota shop/all") {
		t.Errorf("what the remote alone has: %v", err)
	}
	if said := strings.Join(h.warnings, "\n"); !strings.Contains(said, "the remote has newer ones") {
		t.Errorf("of a clone that is behind: %q", said)
	}
	if now := gittest.Git(t, behind, "rev-parse", "HEAD"); now != head {
		t.Errorf("the clone has moved from %s to %s", head, now)
	}
	x.opts.Change.Git.Token = "stale"
	if err := x.rehearse(ctx, target, nil); err != nil {
		t.Errorf("where the remote does not answer: %v", err)
	}
	if said := strings.Join(h.warnings, "\n"); !strings.Contains(said, "what the remote has is not known") {
		t.Errorf("of a remote that does not answer: %q", said)
	}
}
