//go:build integration

package why

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/status"
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
		Conditions: []appsv1.DeploymentCondition{{Type: "Available", Status: "False", Reason: "CrashLoopBackOff",
			Message: "manager: ended with exit code 1"}},
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
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(),
		UID: owner.GetUID(), Controller: &yes}})
	if err := b.Create(b.t.Context(), obj); err != nil {
		b.t.Fatalf("%v\n%s", err, text)
	}
	return obj
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
		from.Declared = &Declared{Key: kube.Key{Namespace: name, Name: name}, File: "clusters/" + name + "/cluster.yaml", Environment: name}
	}
	r, err := Collect(ctx, from)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func TestWhy(t *testing.T) {
	b := newBed(t)
	waits := conditions(condition("Ready", "False", "WaitingForClusterInfrastructureReady", ""))
	denied := "failed to create vpc: UnauthorizedOperation: You are not authorized\x1b[2J to perform: ec2:CreateVpc"
	for _, c := range []struct {
		name string
		make func(name string)
		// gone: only the fleet repo has it.
		gone, ready bool
		// first cause: its object, a part of what it says, and its remedy.
		object, says, remedy string
		// another cause, or "".
		another string
	}{
		{
			name: "well", ready: true,
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, available(), fine, fine, fine, fine)
			},
		},
		{
			name: "denied", object: "AWSCluster denied/denied", says: "UnauthorizedOperation", remedy: "cloud-permissions",
			make: func(n string) {
				b.fluxOf(n, fine, `conditions: [`+condition("Ready", "False", "HealthCheckFailed",
					"timeout waiting for: [Cluster/denied/denied status: 'InProgress']")+`], observedGeneration: 1`, fine)
				b.cluster(n, notAvailable(condition("InfrastructureReady", "False", "NotReady", "6 of 8 completed")),
					conditions(condition("Ready", "False", "VpcReconciliationFailed", denied),
						condition("VpcReady", "False", "VpcReconciliationFailed", denied)), waits, waits, waits)
			},
		},
		{
			name: "words", object: "AWSMachine words/words-m0", says: "not provisioned", remedy: "cloud-capacity",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, conditions(condition("Initialized", "False", "NotInitialized", "Control plane not yet initialized")),
					conditions(condition("InfrastructureReady", "False", "NotReady", "AWSMachine is not ready")),
					conditions(condition("InstanceReady", "False", "InstanceProvisionFailed", "not provisioned")))
				b.warn(n, "AWSMachine", n+"-m0", "FailedCreate", "InsufficientInstanceCapacity: We currently do not have sufficient m5.large capacity")
			},
		},
		{
			name: "boots", object: "Machine boots/boots-m0", says: "Waiting for Cluster control plane to be initialized", remedy: "bootstrap-failed",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, conditions(condition("Initialized", "False", "NotInitialized", "")),
					conditions(condition("Available", "False", "NotReady", ""),
						condition("NodeHealthy", "Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")), fine)
			},
		},
		{
			// Seconds after the machine of its control plane was made: a worker's configuration waits for that, and says nothing of the certificates
			// yet.
			name: "young", object: "Machine young/young-m0", says: "Waiting for Cluster control plane to be initialized", remedy: "bootstrap-failed",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), fine, conditions(condition("Initialized", "False", "NotInitialized", "")),
					conditions(condition("Available", "False", "NotReady", ""),
						condition("NodeHealthy", "Unknown", "InspectionFailed", "Waiting for Cluster control plane to be initialized")), fine)
				const list = "* DataSecretAvailable: Waiting for Cluster control plane to be initialized\n* CertificatesAvailable: Condition not " +
					"yet reported"
				b.worker(n, conditions(condition("BootstrapConfigReady", "False", "NotReady", list)),
					conditions(condition("Ready", "False", "NotReady", list),
						condition("DataSecretAvailable", "False", "NotAvailable", "Waiting for Cluster control plane to be initialized")))
			},
		},
		{
			name: "unread", gone: true, object: "GitRepository flux-system/unread", says: "authentication required", remedy: "git-authentication",
			make: func(n string) {
				b.fluxOf(n, conditions(condition("Ready", "False", "GitOperationFailed",
					"unable to list remote: authentication required: Unauthorized")),
					conditions(condition("Ready", "False", "ArtifactFailed", "Source artifact not found, retrying in 30s")), "")
			},
		},
		{
			name: "unmade", gone: true, object: "HelmRelease unmade/unmade", says: "clusters/unmade/cluster.yaml declares it", remedy: "not-made",
			make: func(n string) { b.fluxOf(n, fine, fine, "") },
		},
		{
			name: "hooked", object: "HelmRelease hooked/hooked", says: "failed calling webhook", remedy: "webhook",
			make: func(n string) {
				b.fluxOf(n, fine, fine, conditions(condition("Ready", "False", "UpgradeFailed",
					"Helm upgrade failed: failed calling webhook \"x\": connect: connection refused")))
				b.cluster(n, available(), fine, fine, fine, fine)
			},
		},
		{
			name: "both", object: "AWSCluster both/both", says: "VpcLimitExceeded", remedy: "cloud-quota",
			another: "Kustomization flux-system/clusters-both",
			make: func(n string) {
				b.fluxOf(n, fine, conditions(condition("Ready", "False", "BuildFailed", "kustomize build failed: accumulating resources")), fine)
				b.cluster(n, notAvailable(), conditions(condition("VpcReady", "False", "VpcReconciliationFailed",
					"VpcLimitExceeded: The maximum number of VPCs has been reached.")), waits, waits, waits)
			},
		},
		{
			name: "held", object: "HelmRelease held/held", says: "it is suspended", remedy: "suspended",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				release := object(`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {namespace: held, name: held}}`)
				if err := b.Get(t.Context(), kube.RefOf(release).Key, release); err != nil {
					t.Fatal(err)
				}
				if err := unstructured.SetNestedField(release.Object, true, "spec", "suspend"); err != nil {
					t.Fatal(err)
				}
				if err := b.Update(t.Context(), release); err != nil {
					t.Fatal(err)
				}
				b.cluster(n, available(), fine, fine, fine, fine)
			},
		},
		{
			name: "waiting", object: "AWSCluster waiting/waiting", says: "no controller has looked at it yet",
			make: func(n string) {
				b.fluxOf(n, fine, fine, fine)
				b.cluster(n, notAvailable(), "", waits, waits, waits)
				if err := b.clearStatus("AWSCluster", n); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.namespace(c.name)
			c.make(c.name)
			r := b.why(c.name, c.gone)
			var shown bytes.Buffer
			if err := View(&shown, r, status.Style{}); err != nil {
				t.Fatal(err)
			}
			t.Log("\n" + shown.String())
			if r.Ready != c.ready || len(r.Unknown) > 0 {
				t.Errorf("ready %v, unknown %v", r.Ready, r.Unknown)
			}
			if c.object == "" {
				if len(r.Causes) > 0 {
					t.Errorf("causes of nothing: %+v", r.Causes)
				}
				return
			}
			if len(r.Causes) == 0 {
				t.Fatal("no cause")
			}
			first := r.Causes[0]
			id := ""
			if first.Remedy != nil {
				id = first.Remedy.ID
			}
			if first.Object != c.object || !strings.Contains(first.Reason, c.says) || id != c.remedy {
				t.Errorf("the first cause is %s: %s (%s)", first.Object, first.Reason, id)
			}
			if c.another == "" && len(r.Causes) > 1 || c.another != "" &&
				!slices.ContainsFunc(r.Causes, func(o Cause) bool { return o.Object == c.another }) {
				t.Errorf("causes: %+v", r.Causes)
			}
			lines := strings.Split(shown.String(), "\n")
			if at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, c.object) }); at != 2 {
				t.Errorf("the first cause stands on line %d", at+1)
			}
		})
	}

	t.Run("a provider that does not run comes first", func(t *testing.T) {
		b.deployment(false)
		r := b.why("waiting", false)
		if len(r.Causes) == 0 || r.Causes[0].Object != "infrastructure provider aws" || r.Causes[0].Remedy == nil ||
			r.Causes[0].Remedy.ID != "controller-down" {
			t.Errorf("got %+v", r.Causes)
		}
		b.deployment(true)
	})
	t.Run("nobody knows it", func(t *testing.T) {
		_, err := Collect(t.Context(), Sources{Client: b.Client, Management: "mgmt", Cluster: "nobody"})
		if diag.Code(err) != diag.ExitUsage || !strings.Contains(diag.Hint(err), "denied/denied") {
			t.Errorf("got %v, hint %q", err, diag.Hint(err))
		}
	})
	t.Run("in depth", func(t *testing.T) { inDepth(t, b) })
}

// inDepth: the provider's own objects, below what owns them, what their conditions say, and the last events.
func inDepth(t *testing.T, b *bed) {
	d, err := CollectDepth(t.Context(), Sources{Client: b.Client, Management: "mgmt", Cluster: "words"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range d.Objects {
		got = append(got, strings.Repeat(" ", o.Depth)+o.Kind+" "+o.Name+" "+string(o.State))
	}
	want := []string{"Cluster words wrong", " AWSCluster words ok", " KubeadmControlPlane words wrong", "  Machine words-m0 wrong",
		"   AWSMachine words-m0 wrong"}
	if !slices.Equal(got, want) || d.Ready {
		t.Errorf("ready %v:\n%s", d.Ready, strings.Join(got, "\n"))
	}
	if len(d.Events) != 1 || d.Events[0].Object != "AWSMachine words-m0" ||
		!strings.Contains(d.Events[0].Message, "InsufficientInstanceCapacity") {
		t.Errorf("events: %+v", d.Events)
	}
	var shown bytes.Buffer
	if err := DepthView(&shown, d, status.Style{}); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + shown.String())
	rows := 0
	for line := range strings.Lines(shown.String()) {
		if strings.Contains(line, "InstanceReady") && strings.Contains(line, "InstanceProvisionFailed: not provisioned") {
			rows++
		}
	}
	if rows != 1 || !strings.Contains(shown.String(), "WHAT") || !strings.Contains(shown.String(), "last events") {
		t.Errorf("got\n%s", shown.String())
	}
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
