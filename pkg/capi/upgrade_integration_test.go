//go:build integration

package capi

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// addRelease adds another version of a provider to a test repository: an edited copy of v1.14.2.
func addRelease(t *testing.T, root, label, version string, replace ...string) {
	t.Helper()
	from := filepath.Join(root, label, "v1.14.2")
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		releasestest.WriteFile(t, filepath.Join(root, label, version, e.Name()), strings.NewReplacer(replace...).Replace(string(content)))
	}
}

var labels = []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker"}

// withVersion returns providers, all in this version.
func withVersion(providers []releases.Provider, version string) []releases.Provider {
	all := slices.Clone(providers)
	for i := range all {
		all[i].Version = version
	}
	return all
}

// upgradeBed is a cluster with all providers in v1.14.1, a repository with v1.14.2 of them, and an object of a provider.
type upgradeBed struct {
	*Manager
	c        *kube.Client
	source   *releases.Source
	root     string // the folder of its repository
	old, new []releases.Provider
	machine  *unstructured.Unstructured
}

func newUpgradeBed(ctx context.Context, t *testing.T) *upgradeBed {
	t.Helper()
	root := newRepository(t)
	m, c, source := newManagementFrom(t, root)
	for _, label := range labels {
		addRelease(t, root, label, "v1.14.1", ":v1\"", ":v0\"", "--v=${LOG_LEVEL:=0}", "--gone-later")
	}
	wanted := resolve(t, source, allProviders)
	b := &upgradeBed{Manager: m, c: c, source: source, root: root, new: wanted, old: withVersion(wanted, "v1.14.1")}
	if _, err := m.Install(ctx, source, InstallOptions{Providers: b.old}); err != nil {
		t.Fatal(err)
	}
	b.machine = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "large"}}}
	b.machine.SetGroupVersionKind(schema.GroupVersionKind{Group: "test.cluster.x-k8s.io", Version: "v1", Kind: "infrastructuredocker"})
	b.machine.SetNamespace("default")
	b.machine.SetName("one")
	if err := c.Create(ctx, b.machine); err != nil {
		t.Fatal(err)
	}
	return b
}

// install is Install with upgrades. kept is the number of calls of BeforeUpgrade.
func (b *upgradeBed) install(
	ctx context.Context, source *releases.Source, providers []releases.Provider,
) (result *InstallResult, kept int, err error) {
	result, err = b.Install(ctx, source, InstallOptions{Providers: providers, BeforeUpgrade: func(context.Context, []releases.Upgrade) error {
		kept++
		return nil
	}})
	return result, kept, err
}

func (b *upgradeBed) versions(t *testing.T) map[string]string {
	t.Helper()
	installed, err := b.Installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, p := range installed {
		versions[p.Label()] = p.Version
		if !p.Ready {
			versions[p.Label()] += " " + p.Reason
		}
	}
	return versions
}

func (b *upgradeBed) allAt(t *testing.T, version string) {
	t.Helper()
	for label, got := range b.versions(t) {
		if got != version {
			t.Errorf("%s is at %s, want %s", label, got, version)
		}
	}
	same := b.machine.DeepCopy()
	if err := b.c.Get(t.Context(), kube.RefOf(b.machine).Key, same); err != nil ||
		same.GetResourceVersion() != b.machine.GetResourceVersion() {
		t.Errorf("a provider's object was touched: %v, %v", same, err)
	}
}

func (b *upgradeBed) manager(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := b.c.Get(t.Context(), kube.Key{Namespace: name + "-system", Name: name + "-manager"}, d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestUpgrade(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b := newUpgradeBed(ctx, t)
	upgrades, err := b.Upgrades(ctx, b.source, b.new)
	if err != nil || len(upgrades) != 4 {
		t.Fatalf("%v, %v", upgrades, err)
	}
	if got := upgrades[0].String(); got != "core provider cluster-api v1.14.1 to v1.14.2" {
		t.Errorf("got %q", got)
	}
	if _, err := b.Install(ctx, b.source, InstallOptions{Providers: b.new}); err == nil ||
		!strings.Contains(diag.Hint(err), "fleetctl upgrade plan") {
		t.Fatalf("an installation that may not upgrade: %v", err)
	}
	b.allAt(t, "v1.14.1")

	result, kept, err := b.install(ctx, b.source, b.new)
	if err != nil || kept != 1 || len(result.Upgraded) != 4 || len(result.Installed) != 0 {
		t.Fatalf("%+v, asked %d times, %v", result, kept, err)
	}
	b.allAt(t, "v1.14.2")
	if args := b.manager(t, "infrastructuredocker").Spec.Template.Spec.Containers[0].Args; !slices.Equal(args, []string{"--v=0"}) {
		t.Errorf("the new one is started with %v", args)
	}
	before := versions(t, b.c)
	if result, kept, err := b.install(ctx, b.source, b.new); err != nil || kept != 0 || len(result.Upgraded) != 0 ||
		!slices.Equal(before, versions(t, b.c)) {
		t.Errorf("again: %+v, asked %d times, %v", result, kept, err)
	}
	if _, kept, err := b.install(ctx, b.source, b.old); err == nil || kept != 0 || !strings.Contains(err.Error(), "a downgrade") {
		t.Errorf("back: asked %d times, %v", kept, err)
	}
}

// TestUpgradeKeepsTuning checks that upgraded managers are tuned from the start, and that a removed tuning leaves no changes.
func TestUpgradeKeepsTuning(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b := newUpgradeBed(ctx, t)
	tuned := newSource(t, releases.SourceOptions{Repository: b.root, Tuning: []kube.Tuning{
		{Manager: "infrastructuredocker-manager", Flags: map[string]int{"kube-api-qps": 5}, Limits: map[string]string{"memory": "1Gi"}},
	}})
	result, _, err := b.install(ctx, tuned, b.new)
	if err != nil || len(result.Upgraded) != 4 || len(result.Installed) != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	if c := b.manager(t, "infrastructuredocker").Spec.Template.Spec.Containers[0]; !slices.Contains(c.Args, "--kube-api-qps=5") ||
		c.Resources.Limits.Memory().IsZero() {
		t.Errorf("it is not tuned: %v", c)
	}
	if _, _, err := b.install(ctx, newSource(t, releases.SourceOptions{Repository: b.root}), b.new); err != nil {
		t.Fatal(err)
	}
	if c := b.manager(t, "infrastructuredocker").Spec.Template.Spec.Containers[0]; slices.Contains(c.Args, "--kube-api-qps=5") ||
		!c.Resources.Limits.Memory().IsZero() {
		t.Errorf("it is still tuned: %v", c)
	}
}

// TestUpgradeStops checks that an upgrade stops at a provider that does not become healthy, and does not change the providers after it. The
// upgrade to a version without the fault continues there.
func TestUpgradeStops(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b := newUpgradeBed(ctx, t)
	addRelease(t, b.root, "bootstrap-kubeadm", "v1.14.3", "example.com/bootstrapkubeadm:v1", brokenImage)
	addRelease(t, b.root, "bootstrap-kubeadm", "v1.14.4")
	broken := slices.Clone(b.new)
	broken[1].Version = "v1.14.3"
	short, stop := context.WithTimeout(ctx, 15*time.Second)
	_, _, err := b.install(short, b.source, broken)
	stop()
	if err == nil || !strings.Contains(err.Error(), "upgrade bootstrap provider kubeadm v1.14.1 to v1.14.3") ||
		!strings.Contains(diag.Hint(err), "fleetctl upgrade apply") {
		t.Fatalf("got %v, hint %q", err, diag.Hint(err))
	}
	got := b.versions(t)
	if got["cluster-api"] != "v1.14.2" || got["control-plane-kubeadm"] != "v1.14.1" || got["infrastructure-docker"] != "v1.14.1" {
		t.Errorf("after it stopped: %v", got)
	}
	short, stop = context.WithTimeout(ctx, 10*time.Second)
	_, _, err = b.install(short, b.source, broken)
	stop()
	if now := b.versions(t); err == nil || now["control-plane-kubeadm"] != "v1.14.1" {
		t.Errorf("run again it went on beside what is not healthy: %v, %v", now, err)
	}
	mended := slices.Clone(b.new)
	mended[1].Version = "v1.14.4"
	if _, _, err := b.install(ctx, b.source, mended); err != nil {
		t.Fatal(err)
	}
	if got := b.versions(t); got["bootstrap-kubeadm"] != "v1.14.4" || got["infrastructure-docker"] != "v1.14.2" {
		t.Errorf("in the end: %v", got)
	}
}

// TestUpgradeSurvivesKills cancels upgrades later and later, as a kill would, and expects the last one to converge. It also asks for the
// old version of providers that were not upgraded yet.
func TestUpgradeSurvivesKills(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b := newUpgradeBed(ctx, t)
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		short, stop := context.WithTimeout(ctx, wait)
		_, _, err := b.install(short, b.source, b.new)
		stop()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		as := slices.Clone(b.new)
		for i := range as {
			if v := b.versions(t)[as[i].Label()]; strings.HasPrefix(v, "v1.14.1") {
				as[i].Version = "v1.14.1"
			}
		}
		if _, _, err := b.install(ctx, b.source, as); err != nil {
			t.Fatalf("after %s, back to what is in the inventory: %v", wait, err)
		}
		for _, p := range as {
			if v := b.versions(t)[p.Label()]; v != p.Version {
				t.Errorf("after %s: %s is %s", wait, p, v)
			}
			if d := b.manager(t, strings.ReplaceAll(p.Label(), "-", "")); *d.Spec.Replicas != 1 {
				t.Errorf("after %s: %s has %d replicas", wait, p, *d.Spec.Replicas)
			}
		}
	}
	b.allAt(t, "v1.14.2")
}

// TestUpgradeFits checks that versions which do not fit together are refused before anything is changed.
func TestUpgradeFits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b := newUpgradeBed(ctx, t)
	addRelease(t, b.root, "infrastructure-docker", "v0.3.0")
	addRelease(t, b.root, "cluster-api", "v1.18.0")
	for label, content := range map[string]string{
		"infrastructure-docker/v1.15.0": "releaseSeries:\n- {major: 1, minor: 15, contract: v1alpha4}\n",
		"cluster-api/v1.18.0":           "releaseSeries:\n- {major: 1, minor: 18, contract: v1beta2}\n",
	} {
		addRelease(t, b.root, filepath.Dir(label), filepath.Base(label))
		releasestest.WriteFile(t, filepath.Join(b.root, filepath.FromSlash(label), "metadata.yaml"),
			"apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\n"+content)
	}
	for _, c := range []struct {
		at            int
		version, want string
	}{
		{3, "v1.15.0", "has the contract v1alpha4"},
		{3, "v0.3.0", "downgrade is not possible"},
		{0, "v1.18.0", "by 3 minor versions at most"},
	} {
		wanted := slices.Clone(b.new)
		wanted[c.at].Version = c.version
		if _, kept, err := b.install(ctx, b.source, wanted); err == nil || kept != 0 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: asked %d times, %v", wanted[c.at], kept, err)
		}
	}
	b.allAt(t, "v1.14.1")
}

// TestUpgradeBesideOthers checks that an installed provider which the fleet does not list stays, and does not prevent an upgrade if its
// contract fits.
func TestUpgradeBesideOthers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b := newUpgradeBed(ctx, t)
	aws := newSource(t, releases.SourceOptions{
		Repository: b.root,
		Variables:  map[string]string{"AWS_B64ENCODED_CREDENTIALS": "c2VjcmV0"},
	})
	with := append(slices.Clone(b.old), releases.Provider{Name: "aws", Type: releases.Infrastructure, Version: "v1.14.2"})
	if _, err := b.Install(ctx, aws, InstallOptions{Providers: with}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(b.root, "infrastructure-aws")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.install(ctx, b.source, b.new); err != nil {
		t.Fatal(err)
	}
	b.allAt(t, "v1.14.2")
}

// TestUpgradeCertManager checks that cert-manager is upgraded before the providers, that its Certificates stay, and that objects which only
// the old version had are removed.
func TestUpgradeCertManager(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	b := newUpgradeBed(ctx, t)
	newer := filepath.Join(b.root, "cert-manager", "v1.12.0", "cert-manager.yaml")
	releasestest.WriteFile(t, newer, strings.ReplaceAll(releasestest.CertManager, "webhook:v1.11.5", "webhook:v1.12.0"))
	leftover := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "cert-manager", Name: "of-old-only", Labels: map[string]string{
		"clusterctl.cluster.x-k8s.io": "", "clusterctl.cluster.x-k8s.io/core": "cert-manager",
	}}}
	if err := b.c.Create(ctx, leftover); err != nil {
		t.Fatal(err)
	}
	certificate := &unstructured.Unstructured{}
	certificate.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"})
	key := kube.Key{Namespace: "infrastructuredocker-system", Name: "infrastructuredocker-cert"}
	if err := b.c.Get(ctx, key, certificate); err != nil {
		t.Fatal(err)
	}
	uid := certificate.GetUID()
	source := newSource(t, releases.SourceOptions{Repository: b.root, CertManagerVersion: "v1.12.0"})
	result, kept, err := b.install(ctx, source, b.old)
	if err != nil || kept != 1 || len(result.Upgraded) != 1 || result.Upgraded[0].String() != "cert-manager v1.11.5 to v1.12.0" {
		t.Fatalf("%+v, %v", result, err)
	}
	if err := b.c.Get(ctx, key, certificate); err != nil || certificate.GetUID() != uid {
		t.Errorf("a Certificate was made anew: %v", err)
	}
	if err := b.c.Get(ctx, kube.Key{Namespace: "cert-manager", Name: leftover.Name}, leftover); !kube.IsAbsent(err) {
		t.Errorf("what only the old one had is there: %v", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := b.c.Get(ctx, kube.Key{Name: "certificates.cert-manager.io"}, crd); err != nil ||
		crd.Annotations["cert-manager.clusterctl.cluster.x-k8s.io/version"] != "v1.12.0" {
		t.Errorf("its CRD has the annotations %v, %v", crd.Annotations, err)
	}
	if result, kept, err := b.install(ctx, source, b.old); err != nil || kept != 0 || result.CertManager {
		t.Errorf("again: %+v, %v", result, err)
	}
}

// TestUpgradeHalted upgrades providers that were installed without replicas. They stay without replicas, and no webhook is waited for.
func TestUpgradeHalted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	root := newRepository(t)
	m, _, source := newManagementFrom(t, root)
	for _, label := range labels {
		addRelease(t, root, label, "v1.14.1", ":v1\"", ":v0\"")
	}
	wanted := resolve(t, source, allProviders)
	asked := 0
	for _, version := range []string{"v1.14.1", "v1.14.2", "v1.14.2"} {
		_, err := m.Install(ctx, source, InstallOptions{
			Providers: withVersion(wanted, version), Halted: true,
			BeforeUpgrade: func(context.Context, []releases.Upgrade) error { asked++; return nil },
		})
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		installed, err := m.Installed(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(installed) != len(labels) {
			t.Errorf("%s: installed are %v", version, installed)
		}
		for _, p := range installed {
			if p.Version != version {
				t.Errorf("%s: %s is at %s", version, p.Label(), p.Version)
			}
		}
		deployments, err := m.ProviderDeployments(ctx)
		if err != nil || len(deployments) != len(labels) {
			t.Fatalf("%s: %d Deployments, %v", version, len(deployments), err)
		}
		for i := range deployments {
			d := &deployments[i]
			if d.Spec.Replicas == nil || *d.Spec.Replicas != 0 || d.Annotations[ReplicasMark] != "1" {
				t.Errorf("%s: %s has %v replicas, and would have %q", version, d.Name, *d.Spec.Replicas, d.Annotations[ReplicasMark])
			}
		}
	}
	if asked != 1 {
		t.Errorf("it was asked %d times before an upgrade", asked)
	}
}
