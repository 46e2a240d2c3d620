//go:build e2e && upgrade

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// The releases in the bundle of these tests: see scripts/offline/internal/recipe.
const (
	capiBefore, capiNow     = "v1.13.0", "v1.14.2"
	dockerBefore, dockerNow = "v1.13.0", "v1.14.0"
	certsBefore, certsNow   = "v1.11.4", "v1.11.5"
	fluxBefore, fluxNow     = "v2.9.4", "v2.9.5"
)

// upgradeFleet is a fleet.yaml with everything pinned to an older release.
const upgradeFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: upgrades
spec:
  flux: {version: v2.9.4}
  environments:
  - name: dev
  managementClusters:
  - name: upgrades
    host: {type: embedded}
    certManager: {version: v1.11.4}
    providers:
    - {name: cluster-api, type: core, version: v1.13.0}
    - {name: kubeadm, type: bootstrap, version: v1.13.0}
    - {name: kubeadm, type: control-plane, version: v1.13.0}
    - {name: docker, version: v1.13.0}
`

// TestUpgrade brings real controllers from an older release to the pinned one, with a cluster alive across it: its machines are the same
// objects afterwards, with the same providers' machines behind them, and it was never not Available but for the time in which nobody
// looked.
func TestUpgrade(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "upgrades")
	if err := os.WriteFile(filepath.Join(f.dir, "fleet.yaml"), []byte(upgradeFleet), 0o644); err != nil {
		t.Fatal(err)
	}
	bundle := os.Getenv(envBundle)
	made := decode[initResult](t, f.ok("init", "--bundle", bundle, "-o", "json").stdout)
	f.commit("add demo", map[string]string{
		clusterPath("demo"): example(t, "laptop/"+clusterPath("demo")), chartPath("in-memory"): example(t, "laptop/"+chartPath("in-memory")),
	})
	f.available("demo", 5*time.Minute)
	f.ready(3 * time.Minute)
	config, err := os.ReadFile(made.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.New(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := alive(t, client, devMachine)
	if len(before) == 0 {
		t.Fatal("there is nothing alive to look at")
	}
	controllersRun(t, client, controllersBefore)

	f.edit()
	f.step("the plan names every controller", func(t *testing.T) {
		r := f.run("upgrade", "plan", "--bundle", bundle, "-o", "json")
		if r.code != 3 {
			t.Errorf("exit %d, want 3: %s", r.code, r.stderr)
		}
		steps := plannedSteps(t, r.stdout)
		capi := capiBefore + " to " + capiNow
		if want := map[string]string{
			"core cluster-api": capi, "bootstrap kubeadm": capi, "control-plane kubeadm": capi,
			"infrastructure docker":     dockerBefore + " to " + dockerNow,
			"cert-manager cert-manager": certsBefore + " to " + certsNow, //nolint:dupword // the type, and the name
			"flux " + "flux":            fluxBefore + " to " + fluxNow,
		}; !maps.Equal(steps, want) {
			t.Errorf("it plans %v, want %v", steps, want)
		}
	})
	f.step("a dry run says what it would do and changes nothing", func(t *testing.T) {
		plan := decode[struct{ Upgrades []upgraded }](t,
			f.ok("upgrade", "apply", "--dry-run", "--manifest-dir", filepath.Join(f.base, "manifests"), "--bundle", bundle, "-o", "json").stdout)
		order := make([]string, 0, len(plan.Upgrades))
		for _, u := range plan.Upgrades {
			order = append(order, cmp.Or(u.Type, u.Name)+" "+u.To)
		}
		if want := []string{
			"cert-manager " + certsNow, "core " + capiNow, "bootstrap " + capiNow, "control-plane " + capiNow,
			"infrastructure " + dockerNow, "flux " + fluxNow,
		}; !slices.Equal(order, want) {
			t.Errorf("it would upgrade %v, want %v", order, want)
		}
		f.providersRun(t, capiBefore, dockerBefore)
		controllersRun(t, client, controllersBefore)
	})
	f.step("killed on the way", func(t *testing.T) {
		f.killedUpgrading(t, client, kube.Key{Namespace: "capi-system", Name: "capi-controller-manager"}, capiBefore)
	})
	f.step("run again it comes to its end", func(t *testing.T) {
		result := decode[struct {
			Upgraded []upgraded
			Snapshot string
		}](t, f.ok("upgrade", "apply", "--bundle", bundle, "-o", "json").stdout)
		if len(result.Upgraded) == 0 {
			t.Error("it upgraded nothing")
		}
		info, err := os.Stat(result.Snapshot)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
			t.Errorf("the snapshot %s: %v, %v", result.Snapshot, info, err)
		}
		f.providersRun(t, capiNow, dockerNow)
		controllersRun(t, client, controllersNow)
	})
	f.step("the cluster has lived on", func(t *testing.T) {
		f.ready(3 * time.Minute)
		sameObjects(t, before, alive(t, client, devMachine))
	})
	f.step("it still does as it is told", func(t *testing.T) {
		f.ok("pool", "scale", "demo", "md-0", "--replicas", "3", "--commit")
		eventually(t, "a machine more", 3*time.Minute, func() string {
			st, _ := f.status()
			if n := len(st.Clusters[0].Machines); n != countMachines(before)+1 {
				return fmt.Sprintf("%d machines", n)
			}
			return ""
		})
	})
	f.step("again there is nothing to do", func(t *testing.T) {
		result := f.ok("upgrade", "apply", "--bundle", bundle, "-o", "json").stdout
		if got := decode[initResult](t, result); got.Changed || strings.Contains(result, `"upgraded"`) {
			t.Errorf("it says %s", result)
		}
	})
}

// upgraded is what init says of a provider that it brought to another version.
type upgraded struct{ Name, Type, From, To string }

// planned is what the plan says of a component.
type planned struct{ Name, Type, Installed, Declared string }

// plannedSteps are the upgrades of a plan, by the type and the name of what is upgraded.
func plannedSteps(t *testing.T, plan string) map[string]string {
	t.Helper()
	steps := map[string]string{}
	for _, c := range decode[struct{ Components []planned }](t, plan).Components {
		if c.Installed != "" && c.Declared != "" && c.Installed != c.Declared {
			steps[c.Type+" "+c.Name] = c.Installed + " to " + c.Declared
		}
	}
	return steps
}

// killedUpgrading kills an upgrade as soon as the Deployment of a provider does not run in its old version any more.
func (f *fleet) killedUpgrading(t *testing.T, client *kube.Client, deployment kube.Key, version string) {
	t.Helper()
	r := f.begin("upgrade", "apply", "--bundle", os.Getenv(envBundle))
	eventually(t, deployment.Name+" is being replaced", 2*time.Minute, func() string {
		d := &unstructured.Unstructured{}
		d.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		err := client.Get(t.Context(), deployment, d)
		if replicas, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas"); err == nil && replicas == 1 &&
			strings.Contains(fmt.Sprint(d.Object), version) {
			return "the old one runs"
		}
		return ""
	})
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-r.ended; err == nil || r.cmd.ProcessState.Exited() {
		t.Fatalf("it had ended by itself: %v", err)
	}
}

// edit puts the new versions of everything into fleet.yaml, and commits it.
func (f *fleet) edit() {
	f.t.Helper()
	content, err := os.ReadFile(filepath.Join(f.dir, "fleet.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	text := strings.ReplaceAll(string(content), "docker, version: "+dockerBefore, "docker, version: "+dockerNow)
	for before, now := range map[string]string{capiBefore: capiNow, certsBefore: certsNow, fluxBefore: fluxNow} {
		text = strings.ReplaceAll(text, "version: "+before+"}", "version: "+now+"}")
	}
	f.commit("upgrade everything", map[string]string{"fleet.yaml": text})
}

// The tags of the images of cert-manager and Flux, by namespace and Deployment. notification-controller is the same in both releases of
// Flux.
var (
	controllersBefore = map[string]string{
		"cert-manager/cert-manager": certsBefore, "cert-manager/cert-manager-cainjector": certsBefore,
		"cert-manager/cert-manager-webhook": certsBefore, "flux-system/source-controller": "v1.9.4",
		"flux-system/kustomize-controller": "v1.9.4", "flux-system/helm-controller": "v1.6.3", "flux-system/notification-controller": "v1.9.3",
	}
	controllersNow = map[string]string{
		"cert-manager/cert-manager": certsNow, "cert-manager/cert-manager-cainjector": certsNow,
		"cert-manager/cert-manager-webhook": certsNow, "flux-system/source-controller": "v1.9.5",
		"flux-system/kustomize-controller": "v1.9.5", "flux-system/helm-controller": "v1.6.4", "flux-system/notification-controller": "v1.9.3",
	}
)

// controllersRun expects the Deployments of cert-manager and Flux, and no others in their namespaces, to be available with these tags.
func controllersRun(t *testing.T, client *kube.Client, want map[string]string) {
	t.Helper()
	found := map[string]string{}
	for _, namespace := range []string{"cert-manager", "flux-system"} {
		list := &appsv1.DeploymentList{}
		if err := client.List(t.Context(), list, crclient.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, d := range list.Items {
			_, tag, _ := strings.Cut(d.Spec.Template.Spec.Containers[0].Image, ":")
			tag, _, _ = strings.Cut(tag, "@")
			if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != 1 || d.Status.UpdatedReplicas != 1 {
				tag += ", not available"
			}
			found[d.Namespace+"/"+d.Name] = tag
		}
	}
	if !maps.Equal(found, want) {
		t.Errorf("there run %v, want %v", found, want)
	}
}

// providersRun expects Cluster API's own providers and the one of the infrastructure to run in these versions.
func (f *fleet) providersRun(t *testing.T, capi, infrastructure string) {
	t.Helper()
	st := decode[struct {
		Providers []struct {
			Name, Type, Version string
			Ready               bool
		}
	}](t, f.run("status", "-o", "json").stdout)
	if len(st.Providers) != 4 {
		t.Errorf("status shows %+v", st.Providers)
	}
	for _, p := range st.Providers {
		want := capi
		if p.Type == "infrastructure" {
			want = infrastructure
		}
		if p.Version != want || !p.Ready {
			t.Errorf("%+v, want version %s", p, want)
		}
	}
}

var devMachine = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Kind: "DevMachine"}

// alive is what must not change of the objects that make a cluster, with those of the kinds of its infrastructure: by kind and name who
// they are, when they were made, what they are to be, and which machine is behind them.
func alive(t *testing.T, client *kube.Client, infrastructure ...schema.GroupVersionKind) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, gvk := range append([]schema.GroupVersionKind{
		{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
		{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"},
		{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "MachineDeployment"},
		{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmControlPlane"},
		{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta2", Kind: "KubeadmConfig"},
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
		{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
	}, infrastructure...) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			obj := &list.Items[i]
			spec, err := json.Marshal(obj.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			conditions := []string{}
			for _, c := range kube.Conditions(obj) {
				if c.Type == "Available" || c.Type == "Ready" {
					conditions = append(conditions, c.Type+"="+string(c.Status))
				}
			}
			found[gvk.Kind+" "+obj.GetNamespace()+"/"+obj.GetName()] = fmt.Sprintf("%s %s %v %s",
				obj.GetUID(), obj.GetCreationTimestamp().UTC().Format(metav1.RFC3339Micro), conditions, spec)
		}
	}
	return found
}

// sameObjects requires that two answers of alive are the same.
func sameObjects(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, was := range before {
		if now, ok := after[name]; !ok || now != was {
			t.Errorf("%s\nbefore %s\nafter  %s", name, was, now)
		}
	}
	if len(after) != len(before) {
		t.Errorf("before %v\nafter  %v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
}

func countMachines(objects map[string]string) int {
	n := 0
	for name := range objects {
		if strings.HasPrefix(name, "Machine ") {
			n++
		}
	}
	return n
}
