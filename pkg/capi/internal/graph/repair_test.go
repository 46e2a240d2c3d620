package graph

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// restored returns the graph of objects that a tool has restored without owners and status.
func restored(t *testing.T, manifests string) *Graph {
	t.Helper()
	h, kinds := holding{}, map[string]*heldKind{}
	for document := range bytes.SplitSeq([]byte(manifests), []byte("\n---\n")) {
		obj := unstructured.Unstructured{}
		content, err := yaml.YAMLToJSON(document)
		if err == nil {
			err = obj.UnmarshalJSON(content)
		}
		if err != nil {
			t.Fatal(err)
		}
		gvk := obj.GroupVersionKind()
		if kinds[gvk.String()] == nil {
			kinds[gvk.String()] = &heldKind{GroupVersionKind: gvk, custom: gvk.Group != "", status: gvk.Group != "", root: gvk.Kind == "Cluster"}
		}
		obj.SetNamespace("team")
		obj.SetUID(types.UID(gvk.Kind + "/" + obj.GetName()))
		h[kinds[gvk.String()]] = append(h[kinds[gvk.String()]], obj)
	}
	return h.graph(GraphOptions{})
}

// owned returns the owner references to add as "KIND NAME <- KIND NAME", with a star if the owner is the controller.
func (r *Repairs) owned() []string {
	var all []string
	for _, i := range r.items {
		for _, o := range i.owners {
			line := i.GetKind() + " " + i.GetName() + " <- " + o.Kind + " " + o.Name
			if metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{o}}) != nil {
				line += " *"
			}
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

func (r *Repairs) said() map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, i := range r.items {
		if len(i.status) > 0 {
			all[i.GetKind()+" "+i.GetName()] = i.status
		}
	}
	return all
}

const planeOfOne = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: shop}
spec:
  controlPlaneEndpoint: {host: 10.0.0.1, port: 6443}
  controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: KubeadmControlPlane, name: shop}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerCluster, name: shop}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerCluster
metadata: {name: shop, labels: {cluster.x-k8s.io/cluster-name: shop}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: KubeadmControlPlane
metadata: {name: shop, labels: {cluster.x-k8s.io/cluster-name: shop}}
spec: {replicas: 1}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: shop-0, labels: {cluster.x-k8s.io/cluster-name: shop, cluster.x-k8s.io/control-plane: ""}}
spec:
  clusterName: shop
  providerID: docker:////shop-0
  bootstrap: {dataSecretName: shop-0, configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: shop-0}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerMachine, name: shop-0}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfig
metadata: {name: shop-0, labels: {cluster.x-k8s.io/cluster-name: shop}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerMachine
metadata: {name: shop-0, labels: {cluster.x-k8s.io/cluster-name: shop}}
---
apiVersion: v1
kind: Secret
metadata: {name: shop-0, labels: {cluster.x-k8s.io/cluster-name: shop}}
type: cluster.x-k8s.io/secret
---
apiVersion: v1
kind: Secret
metadata: {name: shop-kubeconfig, labels: {cluster.x-k8s.io/cluster-name: shop}}
type: cluster.x-k8s.io/secret`

const certificates = `
---
apiVersion: v1
kind: Secret
metadata: {name: shop-ca, labels: {cluster.x-k8s.io/cluster-name: shop}}
---
apiVersion: v1
kind: Secret
metadata: {name: shop-sa, labels: {cluster.x-k8s.io/cluster-name: shop}}
---
apiVersion: v1
kind: Secret
metadata: {name: shop-proxy, labels: {cluster.x-k8s.io/cluster-name: shop}}
---
apiVersion: v1
kind: Secret
metadata: {name: shop-etcd, labels: {cluster.x-k8s.io/cluster-name: shop}}`

// One Machine of a control plane does not prove that the control plane was initialized, so its status does not say so. Objects that a
// person made get no owner.
func TestRepairsOfOneMachine(t *testing.T) {
	r := restored(t, planeOfOne+certificates).Repairs()
	want := []string{
		"DockerCluster shop <- Cluster shop *", "DockerMachine shop-0 <- Machine shop-0 *", "KubeadmConfig shop-0 <- Machine shop-0 *",
		"KubeadmControlPlane shop <- Cluster shop *", "Machine shop-0 <- KubeadmControlPlane shop *", "Secret shop-0 <- KubeadmConfig shop-0 *",
		"Secret shop-kubeconfig <- KubeadmControlPlane shop *",
	}
	if d := cmp.Diff(want, r.owned()); d != "" {
		t.Errorf("owners (-want +got):\n%s", d)
	}
	status := map[string]map[string]any{
		"Cluster shop": {"initialization": map[string]any{"infrastructureProvisioned": true}, "infrastructureReady": true},
		"Machine shop-0": {
			"initialization":      map[string]any{"infrastructureProvisioned": true, "bootstrapDataSecretCreated": true},
			"infrastructureReady": true, "bootstrapReady": true,
		},
	}
	if d := cmp.Diff(status, r.said()); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
	if len(r.Absent) > 0 || len(r.Unknown) > 0 {
		t.Errorf("absent %q, unknown %q", r.Absent, r.Unknown)
	}
	if r.Unrepaired() == "" {
		t.Error("it does not say that something is lacking")
	}
}

// A worker with bootstrap data for joining proves that the cluster existed.
func TestRepairsOfAWorker(t *testing.T) {
	r := restored(t, planeOfOne+certificates+`
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: md, labels: {cluster.x-k8s.io/cluster-name: shop}}
spec: {clusterName: shop, selector: {matchLabels: {cluster.x-k8s.io/deployment-name: md}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineSet
metadata: {name: md-x, labels: {cluster.x-k8s.io/cluster-name: shop, cluster.x-k8s.io/deployment-name: md}}
spec: {clusterName: shop, replicas: 1, selector: {matchLabels: {cluster.x-k8s.io/set-name: md-x}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineSet
metadata: {name: other, labels: {cluster.x-k8s.io/cluster-name: shop, cluster.x-k8s.io/deployment-name: md}}
spec: {clusterName: shop, replicas: 0, selector: {matchLabels: {cluster.x-k8s.io/set-name: md-x}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: md-x-0, labels: {cluster.x-k8s.io/cluster-name: shop, cluster.x-k8s.io/set-name: md-x, cluster.x-k8s.io/deployment-name: md}}
spec:
  clusterName: shop
  bootstrap: {dataSecretName: md-x-0, configRef: {apiGroup: bootstrap.cluster.x-k8s.io, kind: KubeadmConfig, name: gone}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: VSphereVM
metadata: {name: md-x-0, labels: {cluster.x-k8s.io/cluster-name: shop}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: pool, labels: {cluster.x-k8s.io/cluster-name: shop}}
spec:
  clusterName: shop
  providerIDList: ["docker:////pool-0"]
  template: {spec: {bootstrap: {dataSecretName: pool}, infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: DockerMachinePool, name: pool}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: DockerMachinePool
metadata: {name: pool, labels: {cluster.x-k8s.io/cluster-name: shop}}`).Repairs()
	for _, want := range []string{
		"MachineDeployment md <- Cluster shop", "MachineSet md-x <- MachineDeployment md *", "Machine md-x-0 <- MachineSet md-x *",
		"MachinePool pool <- Cluster shop", "DockerMachinePool pool <- MachinePool pool *",
	} {
		if !slices.Contains(r.owned(), want) {
			t.Errorf("%s is not among the owners:\n%s", want, strings.Join(r.owned(), "\n"))
		}
	}
	if got := slices.DeleteFunc(r.owned(), func(s string) bool { return !strings.HasPrefix(s, "Machine md-x-0 ") }); len(got) != 1 {
		t.Errorf("two controllers: %q", got)
	}
	for of, field := range map[string]string{
		"Cluster shop": "controlPlaneInitialized", "KubeadmControlPlane shop": "controlPlaneInitialized",
		"MachinePool pool": "infrastructureProvisioned",
		"Machine md-x-0":   "bootstrapDataSecretCreated",
	} {
		if said, _ := r.said()[of]["initialization"].(map[string]any); said[field] != true {
			t.Errorf("the status of %s does not say %s: %v", of, field, r.said()[of])
		}
	}
	if said, _ := r.said()["Machine md-x-0"]["initialization"].(map[string]any); said["infrastructureProvisioned"] != nil {
		t.Error("a Machine without a provider id is said to be there")
	}
	if len(r.Unknown) != 1 || r.Unknown[0] != "VSphereVM team/md-x-0" {
		t.Errorf("without known owners: %q", r.Unknown)
	}
	if len(r.Absent) != 1 || !strings.Contains(r.Absent[0], "names KubeadmConfig gone") {
		t.Errorf("absent: %q", r.Absent)
	}
}

// Repairs names the missing objects that a controller would make a second time.
func TestRepairsNameWhatIsAbsent(t *testing.T) {
	whole := planeOfOne + certificates
	for _, c := range []struct{ name, from, to, want string }{
		{"a certificate", "name: shop-ca,", "name: another-ca,", "shop-ca did not arrive"},
		{"etcd's", "name: shop-etcd,", "name: another-etcd,", "shop-etcd did not arrive"},
		{"machines", "spec: {replicas: 1}", "spec: {replicas: 3}", "wants 3 Machines, and 1 Machine came"},
		{
			"a machine's infrastructure", "kind: DockerMachine\nmetadata: {name: shop-0,", "kind: DockerMachine\nmetadata: {name: shop-1,",
			"names DockerMachine shop-0",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifests := strings.Replace(whole, c.from, c.to, 1)
			if manifests == whole {
				t.Fatal("nothing was taken away")
			}
			r := restored(t, manifests).Repairs()
			if !slices.ContainsFunc(r.Absent, func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("%q is not in %q", c.want, r.Absent)
			}
		})
	}
}

// A MachineDeployment without its MachineSet would make a new one and all Machines again. The copied Machines would belong to no
// MachineSet.
func TestRepairsMissASet(t *testing.T) {
	deployment := `
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: md, labels: {cluster.x-k8s.io/cluster-name: shop}}
spec: {clusterName: shop, replicas: 3, selector: {matchLabels: {cluster.x-k8s.io/deployment-name: md}}}`
	set := `
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineSet
metadata: {name: md-x, labels: {cluster.x-k8s.io/cluster-name: shop, cluster.x-k8s.io/deployment-name: md}}
spec: {clusterName: shop, replicas: 3, selector: {matchLabels: {cluster.x-k8s.io/deployment-name: md}}}`
	machines := ""
	for _, n := range []string{"0", "1", "2"} {
		machines += `
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: md-x-` + n + `, labels: {cluster.x-k8s.io/cluster-name: shop, cluster.x-k8s.io/deployment-name: md}}
spec: {clusterName: shop, bootstrap: {dataSecretName: md}}`
	}
	r := restored(t, planeOfOne+certificates+deployment+machines).Repairs()
	want := []string{
		"Machine team/md-x-0 came without", "Machine team/md-x-1 came without", "Machine team/md-x-2 came without",
		"MachineDeployment team/md wants 3 Machines, and 0 Machines came",
	}
	if len(r.Absent) != len(want) || len(r.Unknown) > 0 {
		t.Fatalf("absent %q, unknown %q", r.Absent, r.Unknown)
	}
	for i, w := range want {
		if !strings.HasPrefix(r.Absent[i], w) {
			t.Errorf("absent: %q, want %q", r.Absent[i], w)
		}
	}
	if r := restored(t, planeOfOne+certificates+deployment+set+machines).Repairs(); len(r.Absent) > 0 {
		t.Errorf("with its set: absent %q", r.Absent)
	}
}

// Every control plane that consists of Machines makes missing Machines. The replicas of a hosted control plane are not Machines.
func TestRepairsOfOtherControlPlanes(t *testing.T) {
	other := strings.NewReplacer("KubeadmControlPlane", "RKE2ControlPlane", "spec: {replicas: 1}",
		"spec: {replicas: 3, machineTemplate: {metadata: {}}}")
	none := strings.NewReplacer(`, cluster.x-k8s.io/control-plane: ""`, "", "KubeadmControlPlane", "HostedControlPlane",
		"spec: {replicas: 1}", "spec: {replicas: 3}")
	const lacks = "ControlPlane team/shop wants 3 Machines"
	if r := restored(t, other.Replace(planeOfOne)).Repairs(); len(r.Absent) != 1 ||
		!strings.Contains(r.Absent[0], lacks+", and 1 Machine came") {
		t.Errorf("one of three: %q", r.Absent)
	}
	gone := strings.Replace(other.Replace(planeOfOne), `cluster.x-k8s.io/control-plane: ""`, "other: label", 1)
	if r := restored(t, gone).Repairs(); !slices.ContainsFunc(r.Absent, func(s string) bool { return strings.Contains(s, lacks) }) {
		t.Errorf("none of three: %q", r.Absent)
	}
	if r := restored(t, none.Replace(planeOfOne)).Repairs(); slices.ContainsFunc(r.Absent,
		func(s string) bool { return strings.Contains(s, lacks) }) {
		t.Errorf("hosted: %q", r.Absent)
	}
}

// Existing owner references are not written again, and an existing controller stays.
func TestRepairsLeaveWhatIsThere(t *testing.T) {
	graph := restored(t, planeOfOne+certificates)
	yes := true
	for _, item := range graph.Items {
		if item.GetKind() == "DockerMachine" {
			item.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Other", Name: "other", UID: "other", Controller: &yes}})
		}
		if item.GetKind() == "Machine" {
			item.Object["status"] = map[string]any{"initialization": map[string]any{
				"infrastructureProvisioned":  true,
				"bootstrapDataSecretCreated": true,
			}}
		}
	}
	r := graph.Repairs()
	if slices.ContainsFunc(r.owned(), func(s string) bool { return strings.HasPrefix(s, "DockerMachine ") }) {
		t.Errorf("a second controller: %q", r.owned())
	}
	if r.said()["Machine shop-0"] != nil {
		t.Errorf("it says again %v", r.said()["Machine shop-0"])
	}
}
