//go:build integration

package capi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

func TestInstall(t *testing.T) {
	root := newRepository(t)
	m, c, source := newManagementFrom(t, root)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if installed, err := m.Installed(ctx); err != nil || len(installed) != 0 {
		t.Fatalf("an empty cluster has %v, %v", installed, err)
	}
	if clusters, err := m.Clusters(ctx); err != nil || len(clusters) != 0 {
		t.Fatalf("an empty cluster has Clusters %v, %v", clusters, err)
	}
	providers := resolve(t, source, allProviders)
	result, err := m.Install(ctx, source, InstallOptions{Providers: providers})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Installed) != 4 || !result.CertManager {
		t.Errorf("first run: %+v", result)
	}
	installed, err := m.Installed(ctx)
	if err != nil || len(installed) != 4 {
		t.Fatalf("installed %v, %v", installed, err)
	}
	for i, p := range installed {
		if p.Provider.Label() != providers[i].Label() || p.Version != "v1.14.2" || !p.Ready {
			t.Errorf("inventory entry %+v", p)
		}
	}
	t.Run("again changes nothing", func(t *testing.T) {
		before := versions(t, c)
		result, err := m.Install(ctx, source, InstallOptions{Providers: providers})
		if err != nil || len(result.Installed) != 0 || result.CertManager {
			t.Fatalf("second run: %+v, %v", result, err)
		}
		if after := versions(t, c); !slices.Equal(before, after) {
			t.Errorf("before %v\nafter %v", before, after)
		}
	})
	t.Run("completes what is half there", func(t *testing.T) {
		for _, d := range []kube.Key{
			{Namespace: "cert-manager", Name: "cert-manager-webhook"},
			{Namespace: "bootstrapkubeadm-system", Name: "bootstrapkubeadm-manager"},
		} {
			if err := c.WithWatch.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}); err != nil {
				t.Fatal(err)
			}
		}
		installed, err := m.Installed(ctx)
		if err != nil || installed[1].Ready || installed[1].Reason == "" {
			t.Errorf("a provider without its Deployment: %+v, %v", installed[1], err)
		}
		result, err := m.Install(ctx, source, InstallOptions{Providers: providers})
		if err != nil || len(result.Installed) != 1 || result.Installed[0].Label() != "bootstrap-kubeadm" || !result.CertManager {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("changes the tuning and takes it away", func(t *testing.T) { changesTuning(ctx, t, m, c, root, providers) })
	t.Run("completes cert-manager without its webhooks", func(t *testing.T) {
		hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cert-manager-webhook"}}
		if err := c.WithWatch.Delete(ctx, hook); err != nil {
			t.Fatal(err)
		}
		result, err := m.Install(ctx, source, InstallOptions{Providers: providers})
		if err != nil || len(result.Installed) != 0 || !result.CertManager {
			t.Errorf("%+v, %v", result, err)
		}
		if err := c.Get(ctx, kube.Key{Name: hook.Name}, hook); err != nil {
			t.Error(err)
		}
	})
	t.Run("adds a provider later, with its variables", func(t *testing.T) {
		more := resolve(t, source, []releases.Provider{{Name: "docker"}, {Name: "aws"}})
		var missing *releases.MissingVariablesError
		if _, err := m.Install(ctx, source, InstallOptions{Providers: more}); !errors.As(err, &missing) {
			t.Fatalf("got %v without the variable", err)
		}
		source := newSource(t, releases.SourceOptions{
			Repository: root,
			Variables:  map[string]string{"AWS_B64ENCODED_CREDENTIALS": "c2VjcmV0"},
		})
		result, err := m.Install(ctx, source, InstallOptions{Providers: more})
		if err != nil || len(result.Installed) != 1 || result.Installed[0].Name != "aws" || result.CertManager {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("refuses another version", func(t *testing.T) {
		other := slices.Clone(providers)
		other[3].Version = "v1.14.3"
		dir := filepath.Join(root, "infrastructure-docker")
		if err := os.CopyFS(filepath.Join(dir, "v1.14.3"), os.DirFS(filepath.Join(dir, "v1.14.2"))); err != nil {
			t.Fatal(err)
		}
		_, err := m.Install(ctx, source, InstallOptions{Providers: other})
		if err == nil || !strings.Contains(err.Error(), "version v1.14.2 is installed") || !strings.Contains(diag.Hint(err), "upgrade") {
			t.Errorf("got %v, hint %q", err, diag.Hint(err))
		}
	})
}

// changesTuning checks that another tuning is a change and the same tuning is none. Changes by hand stay until the tuning changes.
func changesTuning(ctx context.Context, t *testing.T, m *Manager, c *kube.Client, repository string, providers []releases.Provider) {
	key := kube.Key{Namespace: "infrastructuredocker-system", Name: "infrastructuredocker-manager"}
	install := func(changes int, tuning ...kube.Tuning) []string {
		t.Helper()
		result, err := m.Install(ctx, newSource(t, releases.SourceOptions{Repository: repository, Tuning: tuning}),
			InstallOptions{Providers: providers})
		if err != nil || len(result.Installed) != changes {
			t.Fatalf("%+v, %v, want %d changes", result, err, changes)
		}
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, key, d); err != nil {
			t.Fatal(err)
		}
		return d.Spec.Template.Spec.Containers[0].Args
	}
	slow := kube.Tuning{Manager: key.Name, Flags: map[string]int{"kube-api-qps": 5}, Limits: map[string]string{"memory": "1Gi"}}
	fast := kube.Tuning{Manager: key.Name, Flags: map[string]int{"kube-api-qps": 50}}
	for _, step := range []struct {
		tuning  []kube.Tuning
		changes int
		args    string
	}{
		{[]kube.Tuning{slow}, 1, "--v=0 --kube-api-qps=5"},
		{[]kube.Tuning{slow}, 0, "--v=0 --kube-api-qps=5"},
		{[]kube.Tuning{fast}, 1, "--v=0 --kube-api-qps=50"},
		{nil, 1, "--v=0"},
		{nil, 0, "--v=0"},
	} {
		if got := strings.Join(install(step.changes, step.tuning...), " "); got != step.args {
			t.Errorf("tuned with %v: it is started with %s, want %s", step.tuning, got, step.args)
		}
	}
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, key, d); err != nil {
		t.Fatal(err)
	}
	d.Spec.Template.Spec.Containers[0].Args = []string{"--v=9"}
	if err := c.WithWatch.Update(ctx, d); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitDeploymentsReady(ctx, []kube.Key{key}, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(install(0), " "); got != "--v=9" {
		t.Errorf("what was changed by hand has become %s", got)
	}
	if got := strings.Join(install(1, fast), " "); got != "--v=0 --kube-api-qps=50" {
		t.Errorf("tuned again: %s", got)
	}
	install(1)
}

// versions returns the resource versions of the objects that Install makes.
func versions(t *testing.T, c *kube.Client) []string {
	t.Helper()
	var all []string
	for _, kind := range []schema.GroupVersionKind{
		kube.DeploymentKind.GroupVersion().WithKind("DeploymentList"),
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"},
		{Version: "v1", Kind: "NamespaceList"},
		{Version: "v1", Kind: "ServiceAccountList"},
		{Group: "cert-manager.io", Version: "v1", Kind: "CertificateList"},
		{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "ProviderList"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			all = append(all, kind.Kind+"/"+list.Items[i].Name+"@"+list.Items[i].ResourceVersion)
		}
	}
	return all
}

// TestInstallSurvivesKills cancels installations later and later, as a kill would, and expects the last one to converge.
func TestInstallSurvivesKills(t *testing.T) {
	m, _, source := newManagement(t)
	providers := resolve(t, source, allProviders)
	for wait := 20 * time.Millisecond; wait < 3*time.Second; wait = wait * 3 / 2 {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		_, err := m.Install(ctx, source, InstallOptions{Providers: providers})
		cancel()
		if err == nil {
			break
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := m.Install(ctx, source, InstallOptions{Providers: providers}); err != nil {
		t.Fatal(err)
	}
	installed, err := m.Installed(ctx)
	if err != nil || len(installed) != 4 {
		t.Fatalf("installed %v, %v", installed, err)
	}
	for _, p := range installed {
		if !p.Ready {
			t.Errorf("%s is not ready: %s", p.Provider, p.Reason)
		}
	}
}

// TestInstallSurvivesAKillAtEachWrite kills installations before and after each of their writes: the n-th one comes n writes further than
// the first. The last one has nothing left to do, and once more it writes nothing.
func TestInstallSurvivesAKillAtEachWrite(t *testing.T) {
	c, kubeconfig := kubetest.Start(t)
	m, source := managementOf(t, c, newRepository(t))
	providers := resolve(t, source, allProviders)
	cut := kubetest.NewCut(t, kubeconfig)
	install := func(n int, applied bool) (ended bool) {
		t.Helper()
		ctx, client := cut.Begin(t.Context(), t, n, applied)
		killed, err := New(client)
		if err != nil {
			t.Fatal(err)
		}
		_, err = killed.Install(ctx, source, InstallOptions{Providers: providers})
		if _, ended = cut.Writes(); ended == (err == nil) {
			t.Fatalf("write %d, applied %t: ended %t: %v", n, applied, ended, err)
		}
		return ended
	}
	kills := 0
	for n := 1; install(n, false) && install(n, true); n++ {
		kills = n
	}
	if install(0, false); kills == 0 {
		t.Error("nothing was killed")
	}
	if n, _ := cut.Writes(); n != 0 {
		t.Errorf("once more, it writes %d times", n)
	}
	t.Logf("killed at %d writes", kills)
	installed, err := m.Installed(t.Context())
	if err != nil || len(installed) != 4 {
		t.Fatalf("installed %v, %v", installed, err)
	}
	for _, p := range installed {
		if !p.Ready {
			t.Errorf("%s is not ready: %s", p.Provider, p.Reason)
		}
	}
}

// TestInstallKeepsForeignCertManager installs providers beside a cert-manager that somebody else manages.
func TestInstallKeepsForeignCertManager(t *testing.T) {
	m, c, source := newManagement(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := kubetest.ApplyYAML(ctx, c, []byte(releasestest.CertManager), kube.ApplyOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}
	result, err := m.Install(ctx, source, InstallOptions{Providers: resolve(t, source, allProviders)})
	if err != nil || result.CertManager {
		t.Fatalf("%+v, %v", result, err)
	}
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, kube.Key{Namespace: "cert-manager", Name: "cert-manager-webhook"}, d); err != nil || len(d.Labels) != 0 {
		t.Errorf("it was changed: labels %v, %v", d.Labels, err)
	}
	// Its owner may have rules about who issues which certificate.
	secret := &corev1.Secret{}
	err = c.Get(ctx, kube.Key{Namespace: "infrastructuredocker-system", Name: "infrastructuredocker-tls"}, secret)
	if err != nil || len(secret.Data) != 0 {
		t.Errorf("a certificate was made beside it: %d keys in its Secret, %v", len(secret.Data), err)
	}
}
