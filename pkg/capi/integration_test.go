//go:build integration

package capi

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

var allProviders = []Provider{{Name: "docker"}}

// withClusterCRDs puts Cluster API's real CRDs into the core provider of a test repository.
func withClusterCRDs(t *testing.T, root string) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "cluster-api", "v1.14.2", "core-components.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"clusters", "machines", "machinesets", "machinedeployments", "machinepools", "clusterclasses"} {
		crd, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "core", "config", "crd", "bases", "cluster.x-k8s.io_"+name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		content = append(append(content, "\n---\n"...), bytes.Replace(crd, []byte("  annotations:\n"),
			[]byte("  labels: {cluster.x-k8s.io/v1beta1: v1beta1, cluster.x-k8s.io/v1beta2: v1beta2}\n  annotations:\n"), 1)...)
	}
	writeFile(t, file, string(content))
}

// newManagement is a management cluster whose controllers are played by the test, with a repository to install from.
func newManagement(t *testing.T) (*Manager, *kube.Client, *Source) {
	t.Helper()
	c, _ := kubetest.Start(t)
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	root := writeRepository(t)
	withClusterCRDs(t, root)
	playControllers(t, c)
	return m, c, newTestSource(t, SourceOptions{Repository: root})
}

// playControllers does what a cluster's controllers would: Deployments become available, Certificates get their Secrets.
func playControllers(t *testing.T, c *kube.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	t.Cleanup(func() { cancel(); <-done; <-done })
	play := func(gvk schema.GroupVersionKind, act func(*unstructured.Unstructured) error) {
		defer func() { done <- struct{}{} }()
		for ctx.Err() == nil {
			err := c.Watch(ctx, gvk, kube.Selection{}, func(objects kube.Objects) (bool, error) {
				for _, obj := range objects {
					if err := act(obj); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
						return false, err
					}
				}
				return false, nil
			})
			if ctx.Err() == nil && !kube.IsAbsent(err) {
				t.Errorf("play %s controller: %v", gvk.Kind, err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	go play(deploymentKind, func(obj *unstructured.Unstructured) error {
		if kube.DeploymentReady(obj) {
			return nil
		}
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, kube.RefOf(obj).Key, d); err != nil {
			return client.IgnoreNotFound(err)
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		}
		return c.Status().Update(ctx, d)
	})
	go play(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, func(obj *unstructured.Unstructured) error {
		name, _, _ := unstructured.NestedString(obj.Object, "spec", "secretName")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: name}}
		if err := c.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
}

func resolve(t *testing.T, source *Source, providers []Provider) []Provider {
	t.Helper()
	all, err := source.Resolve(t.Context(), providers)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestInstall(t *testing.T) {
	m, c, source := newManagement(t)
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
		for _, d := range []kube.Key{{Namespace: "cert-manager", Name: "cert-manager-webhook"}, {Namespace: "bootstrapkubeadm-system", Name: "bootstrapkubeadm-manager"}} {
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
		more := resolve(t, source, []Provider{{Name: "docker"}, {Name: "aws"}})
		var missing *MissingVariablesError
		if _, err := m.Install(ctx, source, InstallOptions{Providers: more}); !errors.As(err, &missing) {
			t.Fatalf("got %v without the variable", err)
		}
		source := newTestSource(t, SourceOptions{Repository: source.repository, Variables: map[string]string{"AWS_B64ENCODED_CREDENTIALS": "c2VjcmV0"}})
		result, err := m.Install(ctx, source, InstallOptions{Providers: more})
		if err != nil || len(result.Installed) != 1 || result.Installed[0].Name != "aws" || result.CertManager {
			t.Errorf("%+v, %v", result, err)
		}
	})
	t.Run("refuses another version", func(t *testing.T) {
		other := slices.Clone(providers)
		other[3].Version = "v1.14.3"
		dir := filepath.Join(source.repository, "infrastructure-docker")
		if err := os.CopyFS(filepath.Join(dir, "v1.14.3"), os.DirFS(filepath.Join(dir, "v1.14.2"))); err != nil {
			t.Fatal(err)
		}
		_, err := m.Install(ctx, source, InstallOptions{Providers: other})
		if err == nil || !strings.Contains(err.Error(), "version v1.14.2 is installed") || !strings.Contains(diag.Hint(err), "upgrade") {
			t.Errorf("got %v, hint %q", err, diag.Hint(err))
		}
	})
}

// versions are the resource versions of what Install makes.
func versions(t *testing.T, c *kube.Client) []string {
	t.Helper()
	var all []string
	for _, kind := range []schema.GroupVersionKind{
		deploymentKind.GroupVersion().WithKind("DeploymentList"),
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

// TestInstallSurvivesKills cancels installations ever later, as a kill would, and expects the last one to converge.
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

// TestInstallKeepsForeignCertManager installs next to a cert-manager that somebody else looks after.
func TestInstallKeepsForeignCertManager(t *testing.T) {
	m, c, source := newManagement(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.ApplyYAML(ctx, []byte(testCertManager), kube.ApplyOptions{FieldManager: "helm"}); err != nil {
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
}

// newCluster makes a Cluster with one Machine that look as Cluster API leaves them when all is well.
func newCluster(t *testing.T, c *kube.Client, namespace, name string) {
	t.Helper()
	ctx := t.Context()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	yes := true
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: name,
		}},
	}
	if err := c.Create(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	condition := func(name string) metav1.Condition {
		return metav1.Condition{Type: name, Status: "True", Reason: "Fine", LastTransitionTime: now, ObservedGeneration: cluster.Generation}
	}
	cluster.Status.Phase = "Provisioned"
	cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: &yes, ControlPlaneInitialized: &yes}
	cluster.Status.Conditions = []metav1.Condition{condition("Available"), condition("ControlPlaneInitialized")}
	if err := c.Status().Update(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + "-m0",
			Labels:          map[string]string{clusterv1.ClusterNameLabel: name, clusterv1.MachineControlPlaneLabel: ""},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterKind)},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: name, Version: "v1.36.3",
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: new(string)},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestMachine", Name: name},
		},
	}
	if err := c.Create(ctx, machine); err != nil {
		t.Fatal(err)
	}
	machine.Status.NodeRef.Name = name + "-node"
	machine.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "NotReady", Message: "* NodeHealthy: no kubelet", LastTransitionTime: now}}
	if err := c.Status().Update(ctx, machine); err != nil {
		t.Fatal(err)
	}
}

func TestClusters(t *testing.T) {
	m, c, source := newManagement(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, err := m.Install(ctx, source, InstallOptions{Providers: resolve(t, source, allProviders)}); err != nil {
		t.Fatal(err)
	}
	newCluster(t, c, "team-b", "beta")
	newCluster(t, c, "team-a", "alpha")
	clusters, err := m.Clusters(ctx)
	if err != nil || len(clusters) != 2 {
		t.Fatalf("%v, %v", clusters, err)
	}
	alpha := clusters[0]
	if alpha.Key().String() != "team-a/alpha" || !alpha.Available || alpha.Infrastructure != "TestCluster" || len(alpha.Machines) != 1 {
		t.Errorf("got %+v", alpha)
	}
	if got := alpha.Machines[0]; got.Node != "alpha-node" || !got.ControlPlane || got.Ready || got.Reason != "NotReady: NodeHealthy: no kubelet" {
		t.Errorf("got %+v", got)
	}
	if err := m.WaitAvailable(ctx, nil, nil); err != nil {
		t.Error(err)
	}
	short, cancelShort := context.WithTimeout(ctx, time.Second)
	defer cancelShort()
	err = m.WaitAvailable(short, []kube.Key{alpha.Key(), {Namespace: "team-a", Name: "absent"}}, nil)
	var unready kube.NotReadyError
	if !errors.As(err, &unready) || len(unready) != 1 || unready[0].Name != "absent" || diag.Code(err) != diag.ExitNotReady {
		t.Errorf("got %v", err)
	}
	t.Run("kubeconfig", func(t *testing.T) {
		if _, err := m.WorkloadKubeconfig(ctx, alpha.Key()); !kube.IsAbsent(err) || !strings.Contains(err.Error(), "team-a/alpha") {
			t.Errorf("got %v", err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "alpha-kubeconfig"}, Data: map[string][]byte{"value": []byte("config")}}
		if err := c.Create(ctx, secret); err != nil {
			t.Fatal(err)
		}
		if got, err := m.WorkloadKubeconfig(ctx, alpha.Key()); err != nil || string(got) != "config" {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("delete", func(t *testing.T) { deleteClusters(ctx, t, m, c) })
}

// deleteClusters deletes one Cluster that a finalizer holds and one that is free.
func deleteClusters(ctx context.Context, t *testing.T, m *Manager, c *kube.Client) {
	held := &clusterv1.Cluster{}
	if err := c.Get(ctx, kube.Key{Namespace: "team-a", Name: "alpha"}, held); err != nil {
		t.Fatal(err)
	}
	held.Finalizers = []string{"fleetctl.dev/test"}
	if err := c.Update(ctx, held); err != nil {
		t.Fatal(err)
	}
	keys := []kube.Key{{Namespace: "team-a", Name: "alpha"}, {Namespace: "team-b", Name: "beta"}, {Namespace: "team-b", Name: "absent"}}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := m.DeleteClusters(short, keys, nil)
	var left kube.NotReadyError
	if !errors.As(err, &left) || len(left) != 1 || left[0].Name != "alpha" {
		t.Fatalf("got %v; want only alpha to be left", err)
	}
	go func() {
		_ = c.Patch(ctx, held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	}()
	var details []string
	if err := m.DeleteClusters(ctx, keys, func(s string) { details = append(details, s) }); err != nil {
		t.Errorf("%v (%v)", err, details)
	}
}

func TestMove(t *testing.T) {
	from, source, repository := newManagement(t)
	to, _, _ := newManagement(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	providers := resolve(t, repository, allProviders)
	if _, err := from.Install(ctx, repository, InstallOptions{Providers: providers}); err != nil {
		t.Fatal(err)
	}
	newCluster(t, source, "team-a", "alpha")
	newCluster(t, source, "team-b", "beta")
	if _, err := MovePreflight(ctx, from, to); err == nil || !strings.Contains(err.Error(), "the target has no infrastructure provider docker") {
		t.Errorf("got %v for a target without providers", err)
	}
	if _, err := to.Install(ctx, repository, InstallOptions{Providers: providers}); err != nil {
		t.Fatal(err)
	}
	t.Run("refuses what cannot be moved", func(t *testing.T) {
		beta := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "beta"}}
		pause := func(value string) {
			t.Helper()
			if err := source.Patch(ctx, beta, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":`+value+`}}`))); err != nil {
				t.Fatal(err)
			}
		}
		pause("true")
		defer pause("null")
		if _, err := MovePreflight(ctx, from, to); err == nil || !strings.Contains(err.Error(), "Cluster team-b/beta is paused") {
			t.Errorf("got %v for a paused Cluster", err)
		}
	})
	plan, err := MovePreflight(ctx, from, to)
	if err != nil || !slices.Equal(plan.Namespaces, []string{"team-a", "team-b"}) || len(plan.Clusters) != 2 {
		t.Fatalf("%+v, %v", plan, err)
	}
	var details []string
	if err := Move(ctx, from, to, plan, func(s string) { details = append(details, s) }); err != nil {
		t.Fatal(err)
	}
	if len(details) == 0 || !strings.HasPrefix(details[0], "namespace team-a (1 of 2): ") {
		t.Errorf("details %v", details)
	}
	left, err := from.Clusters(ctx)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	arrived, err := to.Clusters(ctx)
	if err != nil || len(arrived) != 2 || arrived[0].Paused || len(arrived[0].Machines) != 1 {
		t.Errorf("arrived: %+v, %v", arrived, err)
	}
}
