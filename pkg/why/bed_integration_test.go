//go:build integration

package why

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// bed is an API server with the kinds of Flux, Cluster API and a provider, and without controllers: the test says what they would have
// written.
type bed struct {
	t *testing.T
	*kube.Client
}

func newBed(t *testing.T) *bed {
	c, _ := kubetest.Start(t)
	b := &bed{t, c}
	var crds []*unstructured.Unstructured
	for _, k := range []schema.GroupVersionKind{
		{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
		{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
		{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineHealthCheck"},
		{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "AWSCluster"},
		{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "AWSMachine"},
		{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane"},
		{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfig"},
		{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	} {
		crds = append(crds, crdOf(k))
	}
	if _, err := c.Apply(t.Context(), crds, kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"flux-system", "capa-system"} {
		if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	b.provider(true)
	return b
}

// crdOf takes whatever it is given, and so does its status without a subresource of its own.
func crdOf(k schema.GroupVersionKind) *unstructured.Unstructured {
	plural := strings.ToLower(k.Kind) + "s"
	if strings.HasSuffix(k.Kind, "Repository") {
		plural = "gitrepositories"
	}
	return object(fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[2]s.%[1]s},
 spec: {group: %[1]s, scope: Namespaced, names: {kind: %[3]s, plural: %[2]s, singular: %[4]s, listKind: %[3]sList},
  versions: [{name: %[5]s, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
		k.Group, plural, k.Kind, strings.ToLower(k.Kind), k.Version))
}

func object(text string) *unstructured.Unstructured {
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		panic(err.Error() + "\n" + text)
	}
	return &unstructured.Unstructured{Object: content}
}

// provider is the AWS provider, whose Deployment is there.
func (b *bed) provider(ready bool) {
	b.t.Helper()
	b.make(`{apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3, kind: Provider, metadata: {namespace: capa-system, name: infrastructure-aws},
 providerName: aws, type: InfrastructureProvider, version: v2.13.0}`)
	labels := map[string]string{"cluster.x-k8s.io/provider": "infrastructure-aws", "clusterctl.cluster.x-k8s.io": ""}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capa-system", Name: "capa-controller-manager", Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "example.com/capa:v2"}}},
		}},
	}
	if err := b.Create(b.t.Context(), d); err != nil {
		b.t.Fatal(err)
	}
	b.deployment(ready)
}

func (b *bed) deployment(ready bool) {
	b.t.Helper()
	d := &appsv1.Deployment{}
	if err := b.Get(b.t.Context(), kube.Key{Namespace: "capa-system", Name: "capa-controller-manager"}, d); err != nil {
		b.t.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{{
			Type: "Available", Status: "False", Reason: "CrashLoopBackOff",
			Message: "manager: ended with exit code 1",
		}},
	}
	if ready {
		d.Status.UnavailableReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 1, 1
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Available", Status: "True"}}
	}
	if err := b.Status().Update(b.t.Context(), d); err != nil {
		b.t.Fatal(err)
	}
}

// make creates objects.
func (b *bed) make(texts ...string) []*unstructured.Unstructured {
	b.t.Helper()
	var made []*unstructured.Unstructured
	for _, text := range texts {
		obj := object(text)
		if err := b.Create(b.t.Context(), obj); err != nil {
			b.t.Fatalf("%v\n%s", err, text)
		}
		made = append(made, obj)
	}
	return made
}

const fine = `conditions: [{type: Ready, status: "True", reason: Succeeded, message: ok, observedGeneration: 1}], observedGeneration: 1`

// fluxOf is the way of a commit to the release of a cluster, with the status of each.
func (b *bed) fluxOf(name, source, kustomization, release string) {
	b.t.Helper()
	for _, text := range []string{
		`{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {namespace: flux-system, name: ` + name + `}, status: {` +
			source + `, artifact: {revision: "main@sha1:0123456789abcdef", digest: "x:y", path: p, url: u, lastUpdateTime: "2026-01-01T00:00:00Z"}}}`,
		`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {namespace: flux-system, name: clusters-` + name +
			`}, spec: {interval: 1m, prune: true, path: p, sourceRef: {kind: GitRepository, name: ` + name + `}},
 status: {` + kustomization + `, lastAppliedRevision: "main@sha1:0123456789abcdef"}}`,
	} {
		b.make(text)
	}
	if release != "" {
		b.make(`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: ` + name + `, name: ` + name +
			`, labels: {kustomize.toolkit.fluxcd.io/namespace: flux-system, kustomize.toolkit.fluxcd.io/name: clusters-` + name + `}},
 spec: {interval: 1m, chart: {spec: {chart: c, sourceRef: {kind: GitRepository, namespace: flux-system, name: ` + name + `}}}}, status: {` +
			release + `}}`)
	}
}

func (b *bed) namespace(name string) {
	b.t.Helper()
	if err := b.Create(b.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		b.t.Fatal(err)
	}
}

// cluster is a Cluster with its AWSCluster, its control plane, and a machine with its AWSMachine.
func (b *bed) cluster(name, cluster, infrastructure, controlPlane, machine, infraMachine string) {
	b.t.Helper()
	root := b.make(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {namespace: ` + name + `, name: ` + name +
		`, labels: {helm.toolkit.fluxcd.io/namespace: ` + name + `, helm.toolkit.fluxcd.io/name: ` + name + `}},
 spec: {infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: ` + name +
		`}, controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: ` + name +
		`}}, status: {phase: Provisioning, ` + cluster + `}}`)[0]
	b.below(`{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSCluster, metadata: {namespace: `+name+`, name: `+name+
		`}, status: {`+infrastructure+`}}`, root)
	cp := b.below(`{apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: KubeadmControlPlane, metadata: {namespace: `+name+`, name: `+name+
		`}, status: {`+controlPlane+`}}`, root)
	m := b.below(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {namespace: `+name+`, name: `+name+
		`-m0, labels: {cluster.x-k8s.io/cluster-name: `+name+`}}, spec: {clusterName: `+name+`}, status: {`+machine+`}}`, cp)
	b.below(`{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachine, metadata: {namespace: `+name+`, name: `+name+
		`-m0}, status: {`+infraMachine+`}}`, m)
}

// below creates an object of an owner.
func (b *bed) below(text string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	b.t.Helper()
	obj := object(text)
	yes := true
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(),
		UID: owner.GetUID(), Controller: &yes,
	}})
	if err := b.Create(b.t.Context(), obj); err != nil {
		b.t.Fatalf("%v\n%s", err, text)
	}
	return obj
}

// owner gives a Cluster the record of a hand-over.
func (b *bed) owner(name string, owner capi.Owner) {
	b.t.Helper()
	root := object(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster}`)
	if err := b.Get(b.t.Context(), kube.Key{Namespace: name, Name: name}, root); err != nil {
		b.t.Fatal(err)
	}
	root.SetAnnotations(map[string]string{"fleetctl.dev/owner": owner.String()})
	if err := b.Update(b.t.Context(), root); err != nil {
		b.t.Fatal(err)
	}
}

// worker is one more Machine of a Cluster, with its configuration.
func (b *bed) worker(name, machine, config string) {
	b.t.Helper()
	root := object(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster}`)
	if err := b.Get(b.t.Context(), kube.Key{Namespace: name, Name: name}, root); err != nil {
		b.t.Fatal(err)
	}
	m := b.below(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {namespace: `+name+`, name: `+name+
		`-w0, labels: {cluster.x-k8s.io/cluster-name: `+name+`}}, spec: {clusterName: `+name+`}, status: {`+machine+`}}`, root)
	b.below(`{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, metadata: {namespace: `+name+`, name: `+name+
		`-w0}, status: {`+config+`}}`, m)
}

// healthCheck is a MachineHealthCheck of a Cluster that replaces no machine any more.
func (b *bed) healthCheck(name string, unhealthy int) {
	b.t.Helper()
	root := object(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster}`)
	if err := b.Get(b.t.Context(), kube.Key{Namespace: name, Name: name}, root); err != nil {
		b.t.Fatal(err)
	}
	b.below(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineHealthCheck, metadata: {namespace: `+name+`, name: `+name+
		`-pools}, spec: {clusterName: `+name+`}, status: {`+conditions(condition("RemediationAllowed", "False", "TooManyUnhealthy", fmt.Sprintf(
		"Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: 3, unhealthy: %d, "+
			"maxUnhealthy: 40%%)", unhealthy)))+`}}`, root)
}

func condition(name, status, reason, message string) string {
	return fmt.Sprintf(`{type: %s, status: "%s", reason: %s, message: %q, observedGeneration: 1, lastTransitionTime: "2026-01-01T00:00:00Z"}`,
		name, status, reason, message)
}

func conditions(all ...string) string { return "conditions: [" + strings.Join(all, ", ") + "]" }

// notAvailable is what a Cluster says that is not.
func notAvailable(more ...string) string {
	return conditions(append([]string{condition("Available", "False", "NotAvailable", "* InfrastructureReady: 6 of 8 completed")}, more...)...)
}

func available() string { return conditions(condition("Available", "True", "Available", "")) }

func (b *bed) why(name string, declared bool) *Report {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	from := Sources{Client: b.Client, Management: "mgmt", Cluster: name}
	if declared {
		from.Declared = &Declared{
			Key: kube.Key{Namespace: name, Name: name}, File: "clusters/" + name + "/cluster.yaml", Environment: name,
			AppliedBy: "clusters-" + name,
		}
	}
	r, err := Collect(ctx, from)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bed) warn(namespace, kind, name, reason, message string) {
	b.t.Helper()
	err := b.Create(b.t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ToLower(kind) + "-1"}, Type: corev1.EventTypeWarning,
		Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}, LastTimestamp: metav1.Now(),
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) clearStatus(kind, name string) error {
	obj := object(`{apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: ` + kind + `, metadata: {namespace: ` + name + `, name: ` +
		name + `}}`)
	if err := b.Get(b.t.Context(), kube.RefOf(obj).Key, obj); err != nil {
		return err
	}
	unstructured.RemoveNestedField(obj.Object, "status")
	return b.Update(b.t.Context(), obj)
}
