//go:build e2e

package handover

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/ownrepo"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/state"
	fleettransfer "github.com/fleetctl/fleetctl/pkg/transfer"
)

const ownMasters = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: masters}
spec:
  git: {url: "ABOVE", username: git, caFile: ca.pem}
  environments: [{name: regions}, {name: prod}]
  managementClusters:
  - name: root
    cloud: root
    host: {type: embedded}
    providers: [{name: docker, version: v1.14.2}]
  - name: eu
    parent: root
    cloud: eu
    repository: {fleet: acme-eu, git: {url: "OWN", username: git, caFile: eu-ca.pem}, environments: [prod]}
    providers: [{name: docker, version: v1.14.2}]
`

// masterRepos are the repo above, which declares the management cluster eu, and eu's own repo. Each is on a separate Git server.
type masterRepos struct {
	above, own *gittest.HTTPS
	dir        string
	deps       management.Deps
	repo       *ownrepo.Repo
}

func newMasterRepos(t *testing.T) *masterRepos {
	t.Helper()
	t.Setenv("CI", "true") // nobody has told git a name
	m := &masterRepos{
		above: gittest.NewHTTPS(t, gittest.Options{}), own: gittest.NewHTTPS(t, gittest.Options{}),
		dir: filepath.Join(t.TempDir(), "masters"),
	}
	m.deps = management.Deps{
		Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
		LookupEnv: func(string) (string, bool) { return "", false },
	}
	m.above.Seed(t, "main", map[string]string{
		"fleet.yaml": strings.NewReplacer("ABOVE", m.above.URL, "OWN", m.own.URL).Replace(ownMasters), "ca.pem": string(m.above.CA),
		"eu-ca.pem":            string(m.own.CA),
		fleetrepo.IdentityFile: string(fleetrepo.IdentityContent("7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11")),
	})
	if _, err := gitrepo.Clone(t.Context(), m.above.URL, gitrepo.Auth{Username: m.above.Username, Token: m.above.Token, CA: m.above.CA},
		"main", m.dir); err != nil {
		t.Fatal(err)
	}
	for _, o := range []fleetrepo.AddOptions{
		{Name: "eu", Environment: "regions", ManagementCluster: "root", Flavour: "docker", KubernetesVersion: "v1.36.3"},
		{Name: "early", Environment: "prod", ManagementCluster: "root", Flavour: "docker", KubernetesVersion: "v1.36.3"},
	} {
		_, err := change.Make(t.Context(), change.Options{
			Dir: m.dir, Git: change.Credentials{Token: m.above.Token}, Push: true, CacheDir: m.deps.CacheDir,
			Edit: func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) { return r.Add(o) },
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	m.repo, err = ownrepo.Open(t.Context(), m.deps,
		ownrepo.Options{Dir: m.dir, Cluster: "eu", Git: change.Credentials{Token: m.own.Token}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// know makes a side a management cluster of the fleet in dir that this machine is connected to.
func know(t *testing.T, deps management.Deps, name, dir string, s *side, kubeconfig []byte) {
	t.Helper()
	id, err := fleetrepo.ReadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	url := repo.Fleet.Spec.Git.URL
	if err := (&ownership.Claim{Fleet: id, Name: repo.Fleet.Metadata.Name, Cluster: name, URL: url, Branch: "main", Confirmed: true}).Create(
		t.Context(), clientOf(t, s)); err != nil {
		t.Fatal(err)
	}
	cluster := deps.Store.Cluster(name)
	way := cluster.Path("way")
	for _, file := range []string{way, cluster.Path(management.KubeconfigFile)} {
		if err := kube.WriteKubeconfig(file, kubeconfig); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Save(state.Record{
		Name: name, Fleet: repo.Fleet.Metadata.Name, FleetID: id, Repo: dir, GitURL: url, HostType: "existing",
		Connected: true, KubeconfigSource: way,
		Context: kube.CurrentContext(kubeconfig),
	}); err != nil {
		t.Fatal(err)
	}
}

// release creates the objects that a side's Flux would create for a cluster of the fleet repo. The test plays Flux.
func release(ctx context.Context, t *testing.T, s *seeder, name string) {
	t.Helper()
	s.namespace(ctx, t, name)
	s.create(ctx, t, object("helm.toolkit.fluxcd.io/v2", "HelmRelease", name, name, map[string]any{
		"spec": map[string]any{"interval": "10m", "chartRef": map[string]any{
			"kind": "HelmChart", "name": "prod-docker",
			"namespace": "flux-system",
		}},
		"status": map[string]any{"observedGeneration": int64(1), "conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "InstallSucceeded", "message": "installed", "lastTransitionTime": "2026-01-02T03:04:05Z",
			"observedGeneration": int64(1),
		}}},
	}))
}

// TestTransferIntoOwnRepo hands a Cluster to a management cluster with a repository of its own: two API servers, two Git servers. The
// command pushes to each repo with its own token, first to the target's repo. If it is cut off between the two pushes, the same command
// goes on.
func TestTransferIntoOwnRepo(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	m := newMasterRepos(t)
	w := newWorld(t, func(s *seeder) {
		s.file(ctx, t, "shared.yaml", "NAMESPACE", "early")
		s.file(ctx, t, "plain.yaml", "NAMESPACE", "early", "NAME", "early")
		release(ctx, t, s, "early")
		follow(ctx, t, s, m.above.URL)
	}, func(s *seeder) {
		release(ctx, t, s, "early")
		follow(ctx, t, s, m.own.URL)
	})
	source, target := clientOf(t, w.source), clientOf(t, w.target)
	madeByFlux(ctx, t, source)
	know(t, m.deps, "root", m.dir, w.source, w.source.kubeconfig)
	know(t, m.deps, "eu", m.repo.Dir, w.target, w.target.kubeconfig)
	observing(t, target)
	run := func(token string) (*fleettransfer.Result, error) {
		return fleettransfer.Run(ctx, m.deps, fleettransfer.Options{
			Cluster: "prod/early", To: "eu", Change: change.Options{
				Dir: m.dir, Git: change.Credentials{Token: token}, Push: true,
				CacheDir: m.deps.CacheDir,
			},
			Into: &fleettransfer.Into{Dir: m.repo.Dir, Git: change.Credentials{Token: m.own.Token}, From: "root", Reseal: m.repo.Reseal},
		})
	}
	// A remote that takes no push is found out first, of either repository.
	before := w.source.read(ctx, t)
	for _, at := range []*gittest.HTTPS{m.above, m.own} {
		at.Protect(t, "main")
		if r, err := run(m.above.Token); !errors.Is(err, gitrepo.ErrProtectedBranch) ||
			!strings.Contains(diag.Hint(err), "nothing has been handed over") {
			t.Fatalf("%s: %+v, %v: %s", at.URL, r, err, diag.Hint(err))
		}
		at.Hook(t, "pre-receive", "")
	}
	for _, fault := range held("the source", before, w.source.read(ctx, t)) {
		t.Error(fault)
	}
	// The masters' remote refuses the commit: the Cluster has changed hands, and arrived in the other repository, by then.
	m.above.Hook(t, "pre-receive", refusesContent)
	if r, err := run(m.above.Token); !errors.Is(err, gitrepo.ErrProtectedBranch) {
		t.Fatalf("pushed what the remote refuses: %+v, %v", r, err)
	}
	m.above.Hook(t, "pre-receive", "")
	m.own.File(t, "main", "providers/eu/v1/clusters/prod/early/cluster.yaml")
	m.above.File(t, "main", "providers/root/v1/clusters/prod/early/cluster.yaml")
	r, err := run(m.above.Token)
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome != "transferred" || r.Arrival != nil || r.Change == nil || !r.Change.Pushed {
		t.Errorf("%+v", r)
	}
	files := gittest.Git(t, m.dir, "ls-files", "providers/root/v1/clusters/prod/early")
	if record := m.above.File(t, "main", "providers/root/v1/handed-over/eu.yaml"); files != "" ||
		!strings.Contains(record, "cluster: prod/early") {
		t.Errorf("the masters' repository has %q, and says:\n%s", files, record)
	}
	for i := range w.sourceBefore {
		if i.namespace != "early" || i.kind != "Cluster" && i.kind != "Machine" && i.kind != "HelmRelease" {
			continue
		}
		here, there := object(apiVersionOf(i), i.kind, i.namespace, i.name, map[string]any{}),
			object(apiVersionOf(i), i.kind, i.namespace, i.name, map[string]any{})
		if err := source.Get(ctx, kube.Key{Namespace: i.namespace, Name: i.name}, here); !kube.IsAbsent(err) {
			t.Errorf("%s is at the source: %v", i, err)
		}
		if err := target.Get(ctx, kube.Key{Namespace: i.namespace, Name: i.name}, there); err != nil {
			t.Errorf("%s is not at the target: %v", i, err)
		}
	}
	if j, err := handover.ReadJournal(ctx, target); err != nil || j.Active() || j.Source.Name != "root" || j.Target.Name != "eu" {
		t.Errorf("the journal says %+v, %v", j, err)
	}
	if _, err := os.Stat(filepath.Join(m.repo.Dir, "providers", "root")); err == nil {
		t.Error("the repository of eu has a folder of the root's")
	}
}

// madeByFlux says on the Cluster early which HelmRelease makes it.
func madeByFlux(ctx context.Context, t *testing.T, c *kube.Client) {
	t.Helper()
	made := object("cluster.x-k8s.io/v1beta2", "Cluster", "early", "early", map[string]any{})
	patch := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"helm.toolkit.fluxcd.io/name":"early","helm.toolkit.fluxcd.io/namespace":"early"}}}`))
	if err := c.WithWatch.Patch(ctx, made, patch); err != nil {
		t.Fatal(err)
	}
}

func apiVersionOf(i id) string {
	if i.kind == "HelmRelease" {
		return "helm.toolkit.fluxcd.io/v2"
	}
	return "cluster.x-k8s.io/v1beta2"
}

// follow is what Flux follows.
func follow(ctx context.Context, t *testing.T, s *seeder, url string) {
	t.Helper()
	s.create(ctx, t, object("source.toolkit.fluxcd.io/v1", "GitRepository", "flux-system", "flux-system", map[string]any{
		"spec": map[string]any{"url": url, "interval": "1m", "ref": map[string]any{"branch": "main"}},
	}))
}

// observing plays the Cluster controller of a side until t ends: an Available Cluster is so in its newest generation, as soon as anybody
// may say so.
func observing(t *testing.T, c *kube.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	kind := object("cluster.x-k8s.io/v1beta2", "Cluster", "", "", map[string]any{}).GroupVersionKind()
	observe := func(objects kube.Objects) (bool, error) {
		for _, obj := range objects {
			if seen, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); seen == obj.GetGeneration() {
				continue
			}
			conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
			for _, condition := range conditions {
				if fields, ok := condition.(map[string]any); ok {
					fields["observedGeneration"] = obj.GetGeneration()
				}
			}
			observed := map[string]any{"status": map[string]any{"observedGeneration": obj.GetGeneration(), "conditions": conditions}}
			patch, err := json.Marshal(observed)
			if err != nil {
				return false, err
			}
			if err := c.WithWatch.Status().Patch(ctx, obj.DeepCopy(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = c.Watch(ctx, kind, kube.Selection{}, observe) // the hand-over denies it, while it is at work
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}
