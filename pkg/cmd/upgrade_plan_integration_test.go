//go:build integration

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
)

// planBed is a cluster with everything of a management cluster in older versions, and a fleet repo that declares newer ones.
type planBed struct {
	*testing.T
	client           *kube.Client
	manager          *capi.Manager
	releases         string // the folder of the releases
	repo, kubeconfig string
	state, cache     string
}

// docker is the provider's Deployment.
var docker = kube.Key{Namespace: "infrastructuredocker-system", Name: "infrastructuredocker-manager"}

func newPlanBed(t *testing.T) *planBed {
	t.Helper()
	isolate(t)
	client, kubeconfig := kubetest.Start(t)
	manager, err := capi.New(client)
	if err != nil {
		t.Fatal(err)
	}
	b := &planBed{
		T: t, client: client, manager: manager, releases: releasestest.Repository(t), repo: t.TempDir(), state: t.TempDir(), cache: t.TempDir(),
		kubeconfig: filepath.Join(t.TempDir(), "admin"),
	}
	releasestest.WriteFile(t, b.kubeconfig, string(kubeconfig))
	for _, label := range []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker"} {
		b.release(label, "v1.14.1")
	}
	// What docker v1.14.2 and v1.14.3 have is stored in another version. v2.0.0 has a contract that nobody here knows.
	b.release("infrastructure-docker", "v1.14.2", "  - name: v1\n    served: true\n    storage: true",
		"  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n"+
			"  - name: v2\n    served: true\n    storage: true")
	b.release("infrastructure-docker", "v1.14.3")
	b.release("infrastructure-docker", "v2.0.0", "minor: 14, contract: v1beta2", "minor: 14, contract: v1beta2}\n- {major: 2, minor: 0, contract: v9")
	releasestest.WriteFile(t, filepath.Join(b.releases, "cert-manager", "v1.12.0", "cert-manager.yaml"),
		strings.ReplaceAll(releasestest.CertManager, "v1.11.5", "v1.12.0"))
	return b
}

// release adds an edited copy of v1.14.2 of a provider to the releases.
func (b *planBed) release(label, version string, replace ...string) {
	b.Helper()
	from := filepath.Join(b.releases, label, "v1.14.2")
	entries, err := os.ReadDir(from)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			b.Fatal(err)
		}
		releasestest.WriteFile(b.T, filepath.Join(b.releases, label, version, e.Name()), strings.NewReplacer(replace...).Replace(string(content)))
	}
}

// apply applies manifests.
func (b *planBed) apply(ctx context.Context, manifest string) {
	b.Helper()
	as := kube.ApplyOptions{FieldManager: "test", ForceConflicts: true}
	if _, err := kubetest.ApplyYAML(ctx, b.client, []byte(manifest), as); err != nil {
		b.Fatal(err)
	}
}

// install brings v1.14.1 of these providers onto the cluster, and cert-manager v1.11.5, as fleetctl does, with clusterctl's inventory. No
// program runs there, so the test makes the Secrets that cert-manager would make, and calls the Deployments available.
func (b *planBed) install(ctx context.Context, version string, names ...releases.Provider) {
	b.Helper()
	source, err := releases.NewSource(releases.SourceOptions{
		Repository: b.releases, CertManagerVersion: "v1.11.5", Variables: map[string]string{"AWS_B64ENCODED_CREDENTIALS": "c2VjcmV0"},
	})
	if err != nil {
		b.Fatal(err)
	}
	for i := range names {
		names[i].Version = version
		name := strings.ReplaceAll(names[i].Label(), "-", "")
		b.apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"-system}}")
		b.apply(ctx, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"-tls, namespace: "+name+"-system}}")
	}
	if _, err := b.manager.Install(ctx, source, capi.InstallOptions{Providers: names, Halted: true}); err != nil {
		b.Fatal(err)
	}
	list := &appsv1.DeploymentList{}
	if err := b.client.List(ctx, list); err != nil {
		b.Fatal(err)
	}
	for i := range list.Items {
		b.becomes(ctx, kube.Key{Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}, 1)
	}
}

// becomes makes a Deployment have so many available replicas, of one.
func (b *planBed) becomes(ctx context.Context, key kube.Key, available int32) {
	b.Helper()
	d := &appsv1.Deployment{}
	if err := b.client.Get(ctx, key, d); err != nil {
		b.Fatal(err)
	}
	one := int32(1)
	d.Spec.Replicas = &one
	delete(d.Annotations, capi.ReplicasMark)
	if err := b.client.Update(ctx, d); err != nil {
		b.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: available, AvailableReplicas: available,
		UnavailableReplicas: 1 - available,
	}
	if available > 0 {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}
	}
	if err := b.client.Status().Update(ctx, d); err != nil {
		b.Fatal(err)
	}
}

// declare writes the fleet.yaml, with this version of each part of Cluster API, of docker, cert-manager and Flux.
func (b *planBed) declare(core, docker, certs, flux string) {
	b.Helper()
	url := func(label, file string) string { return "file://" + filepath.Join(b.releases, label, "latest", file) }
	releasestest.WriteFile(b.T, filepath.Join(b.repo, "fleet.yaml"), `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  flux: {version: `+flux+`}
  managementClusters:
  - name: mgmt
    host: {type: kind}
    kubernetesVersion: v1.36.3
    certManager: {version: `+certs+`, url: "file://`+filepath.Join(b.releases, "cert-manager", certs, "cert-manager.yaml")+`"}
    providers:
    - {name: docker, version: `+docker+`, url: "`+url("infrastructure-docker", "infrastructure-components-development.yaml")+`"}
    - {name: cluster-api, type: core, version: `+core+`, url: "`+url("cluster-api", "core-components.yaml")+`"}
    - {name: kubeadm, type: bootstrap, version: `+core+`, url: "`+url("bootstrap-kubeadm", "bootstrap-components.yaml")+`"}
    - {name: kubeadm, type: control-plane, version: `+core+`, url: "`+url("control-plane-kubeadm", "control-plane-components.yaml")+`"}
`)
}

// run is `fleetctl upgrade plan`.
func (b *planBed) run(args ...string) (code int, stdout, stderr string) {
	b.Helper()
	var out, errs bytes.Buffer
	args = append([]string{
		"upgrade", "plan", "-C", b.repo, "--kubeconfig", b.kubeconfig, "--state-dir", b.state, "--cache-dir", b.cache, "--no-color",
	}, args...)
	code = Main(b.Context(), ui.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
	return code, out.String(), errs.String()
}

// plan is the plan as a program gets it, and its exit code is expected.
func (b *planBed) plan(code int) *upgrade.Plan {
	b.Helper()
	got, stdout, stderr := b.run("-o", "json")
	if got != code {
		b.Fatalf("exit code %d, want %d\n%s%s", got, code, stdout, stderr)
	}
	p := &upgrade.Plan{}
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil {
		b.Fatalf("%v\n%s", err, stdout)
	}
	return p
}

// same fails unless the plan is what is wanted; what it does not hold is not compared.
func (b *planBed) same(what string, got *upgrade.Plan, want []upgrade.Component) {
	b.Helper()
	for i := range want {
		for _, list := range []*[]string{&want[i].Against, &want[i].Restarts, &want[i].Converts, &want[i].Replaces} {
			if *list == nil {
				*list = []string{}
			}
		}
	}
	if diff := cmp.Diff(want, got.Components); diff != "" {
		b.Errorf("%s: (-want +got)\n%s", what, diff)
	}
}

// olderFlux is one of Flux's kinds, and one of its Deployments.
const olderFlux = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kustomizations.kustomize.toolkit.fluxcd.io}
spec:
  group: kustomize.toolkit.fluxcd.io
  scope: Namespaced
  names: {plural: kustomizations, kind: Kustomization}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: source-controller
  namespace: flux-system
  labels: {app.kubernetes.io/part-of: flux, app.kubernetes.io/version: v2.8.0}
spec:
  selector: {matchLabels: {app: source}}
  template:
    metadata: {labels: {app: source}}
    spec: {containers: [{name: manager, image: "example.com/source:v1"}]}
`

// all are the providers of the fleet.
func all() []releases.Provider {
	return []releases.Provider{
		{Name: "cluster-api", Type: releases.Core},
		{Name: "kubeadm", Type: releases.Bootstrap},
		{Name: "kubeadm", Type: releases.ControlPlane},
		{Name: "docker", Type: releases.Infrastructure},
	}
}

// TestUpgradePlanOfACluster plans the upgrade of a cluster on a real API server, which has everything of a management cluster in an older
// version. Each field of the plan follows from the objects there.
func TestUpgradePlanOfACluster(t *testing.T) {
	b := newPlanBed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	b.install(ctx, "v1.14.1", all()...)
	b.apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	b.apply(ctx, strings.ReplaceAll(olderFlux, "v2.8.0", "v2.7.0"))
	b.becomes(ctx, kube.Key{Namespace: "flux-system", Name: "source-controller"}, 1)
	kubernetes, err := b.client.ServerVersion(ctx)
	if err != nil {
		t.Fatal(err)
	}
	part := func(name string, of releases.ProviderType, installed, declared string, restarts ...string) upgrade.Component {
		return upgrade.Component{
			Name: name, Type: string(of), Installed: installed, Declared: declared, Newest: "v1.14.2", Contract: "v1beta2", Restarts: restarts,
		}
	}
	const strange = "v2.0.0 is available, and has the contract v9 of Cluster API: another fleetctl may work with it"

	b.declare("v1.14.2", "v1.14.2", "v1.12.0", "v2.8.0")
	plan := b.plan(3)
	want := []upgrade.Component{
		{
			Name: "cert-manager", Type: "cert-manager", Installed: "v1.11.5", Declared: "v1.12.0", Newest: "v1.12.0",
			Restarts: []string{"cert-manager", "cert-manager-cainjector", "cert-manager-webhook"},
		},
		part("cluster-api", releases.Core, "v1.14.1", "v1.14.2", "clusterapi-manager"),
		part("kubeadm", releases.Bootstrap, "v1.14.1", "v1.14.2", "bootstrapkubeadm-manager"),
		part("kubeadm", releases.ControlPlane, "v1.14.1", "v1.14.2", "controlplanekubeadm-manager"),
		part("docker", releases.Infrastructure, "v1.14.1", "v1.14.2", "infrastructuredocker-manager"),
		{
			// The program of a test does not know which Flux it was built with, so there is no newest one.
			Name: "flux", Type: "flux", Installed: "v2.7.0", Declared: "v2.8.0",
			Restarts: []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller"},
			Note:     "its manifests in the repo change with it",
		},
		{
			Name: "kubernetes", Type: "kubernetes", Installed: kubernetes, Declared: "v1.36.3",
			Newest: hosts.TraitsOf(v1alpha1.Host{Type: v1alpha1.HostKind}, "").KubernetesVersion,
			Note:   "it stays for the host's life: hand the clusters over to a new management cluster",
		},
	}
	want[4].Newest, want[4].Note = "v1.14.3", strange
	want[4].Converts = []string{"infrastructuredockers.test.cluster.x-k8s.io: v1 to v2"}
	b.same("older", plan, want)
	if plan.FormatVersion != "1" || plan.Fleet != "acme" || plan.ManagementCluster != "mgmt" || !plan.ToApply || !plan.ToDeclare ||
		len(plan.Unknown) != 0 {
		t.Errorf("%+v", plan)
	}
	code, stdout, stderr := b.run()
	if code != 3 || !strings.Contains(stdout, "infrastructure docker stores anew: infrastructuredockers.test.cluster.x-k8s.io: v1 to v2\n") ||
		!strings.Contains(stdout, "`fleetctl upgrade apply` brings the cluster to fleet.yaml.") || strings.Contains(stderr, "warning") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}

	// Nothing is to be done where the cluster runs what fleet.yaml says, and nothing newer fits.
	b.declare("v1.14.1", "v1.14.1", "v1.11.5", "v2.7.0")
	for _, label := range []string{"cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "infrastructure-docker"} {
		for _, version := range []string{"v1.14.2", "v1.14.3"} {
			if err := os.Rename(filepath.Join(b.releases, label, version), filepath.Join(b.releases, label+"-"+version)); err != nil &&
				!os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}
	for i := range want {
		c := &want[i]
		c.Restarts, c.Converts = nil, nil
		switch c.Type {
		case "kubernetes":
		case "flux":
			c.Declared, c.Note = c.Installed, ""
		default:
			c.Declared, c.Newest = c.Installed, c.Installed
		}
	}
	plan = b.plan(0)
	b.same("as declared", plan, want)
	if plan.ToApply || plan.ToDeclare || len(plan.Unknown) != 0 {
		t.Errorf("%+v", plan)
	}
}

// TestUpgradePlanOfAFaultyCluster: whatever stops an upgrade, or is beside what fleet.yaml says, is in the plan.
func TestUpgradePlanOfAFaultyCluster(t *testing.T) {
	b := newPlanBed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	b.declare("v1.14.2", "v1.14.2", "v1.11.5", "v2.8.0")
	find := func(p *upgrade.Plan, name, of string) *upgrade.Component {
		t.Helper()
		i := slices.IndexFunc(p.Components, func(c upgrade.Component) bool { return c.Name == name && c.Type == of })
		if i < 0 {
			t.Fatalf("the plan has no %s %s: %+v", of, name, p.Components)
		}
		return &p.Components[i]
	}

	p := b.plan(3)
	for _, c := range p.Components[:len(p.Components)-1] {
		if c.Installed != "" || !strings.Contains(c.Note, "it is not installed") || len(c.Restarts) > 0 || len(c.Against) > 0 {
			t.Errorf("on an empty cluster: %+v", c)
		}
	}
	if !p.ToApply {
		t.Error("on an empty cluster nothing is to be applied")
	}

	b.install(ctx, "v1.14.2", append(all(), releases.Provider{Name: "aws", Type: releases.Infrastructure})...)
	b.apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	b.apply(ctx, olderFlux)
	b.becomes(ctx, kube.Key{Namespace: "flux-system", Name: "source-controller"}, 1)
	p = b.plan(3) // docker has a newer version
	if c := find(p, "aws", "infrastructure"); c.Installed != "v1.14.2" || c.Declared != "" || c.Newest != "" ||
		c.Note != "fleet.yaml does not list it: it stays as it is" {
		t.Errorf("a provider of which fleet.yaml does not know: %+v", c)
	}
	if p.ToApply {
		t.Errorf("%+v", p)
	}

	b.becomes(ctx, docker, 0)
	if c := find(b.plan(3), "docker", "infrastructure"); !strings.Contains(c.Note, "it is not healthy") ||
		!strings.Contains(c.Note, "infrastructuredocker-manager") {
		t.Errorf("not healthy: %+v", c)
	}
	b.becomes(ctx, docker, 1)
	b.becomes(ctx, kube.Key{Namespace: "flux-system", Name: "source-controller"}, 0)
	if c := find(b.plan(3), "flux", "flux"); !strings.Contains(c.Note, "it is not healthy") || !strings.Contains(c.Note, "source-controller") {
		t.Errorf("Flux is not healthy: %+v", c)
	}

	b.declare("v1.14.2", "v1.14.1", "v1.11.5", "v2.8.0")
	older := find(b.plan(3), "docker", "infrastructure")
	if len(older.Against) != 1 || !strings.Contains(older.Against[0], "a downgrade is not possible") {
		t.Errorf("an older one: %+v", older)
	}
	b.declare("v1.14.2", "v2.0.0", "v1.11.5", "v2.8.0")
	if c := find(b.plan(3), "docker", "infrastructure"); c.Contract != "v9" || len(c.Against) != 1 ||
		!strings.Contains(c.Against[0], "contract v9, which this fleetctl does not support") {
		t.Errorf("of another contract: %+v", c)
	}

	// Without the inventory nobody knows which version runs.
	b.declare("v1.14.2", "v1.14.2", "v1.11.5", "v2.8.0")
	entry := &unstructured.Unstructured{}
	entry.SetGroupVersionKind(schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"})
	entry.SetNamespace(docker.Namespace)
	entry.SetName("infrastructure-docker")
	if err := b.client.WithWatch.Delete(ctx, entry); err != nil {
		t.Fatal(err)
	}
	p = b.plan(3)
	if c := find(p, "docker", "infrastructure"); c.Installed != "" || !p.ToApply || !strings.Contains(c.Note,
		"clusterctl's inventory does not have it, but the Deployment infrastructuredocker-manager runs example.com/infrastructuredocker:v1") {
		t.Errorf("not in the inventory: %+v", c)
	}
}
