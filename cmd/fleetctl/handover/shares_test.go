//go:build e2e

package handover

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// sharing makes clusters that share what Cluster API lets clusters share: alpha and omega a ClusterResourceSet and a template that both
// own, beta and psi a ClusterClass with its templates.
func sharing(t *testing.T) func(*seeder) {
	return func(s *seeder) {
		ctx := t.Context()
		s.stockFleet(ctx, t)
		s.file(ctx, t, "plain.yaml", "NAMESPACE", "team-a", "NAME", "omega")
		owner := func(name string) any {
			return map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": "set by create"}
		}
		s.create(ctx, t, object("infrastructure.cluster.x-k8s.io/v1beta2", "DockerMachineTemplate", "team-a", "shared", map[string]any{
			"metadata": map[string]any{"ownerReferences": []any{owner("alpha"), owner("omega")}},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{}}},
		}))
		s.create(ctx, t, object("cluster.x-k8s.io/v1beta2", "Cluster", "team-b", "psi", map[string]any{
			"spec": map[string]any{"topology": map[string]any{"classRef": map[string]any{"name": "quick"}, "version": "v1.36.3"}},
		}))
	}
}

// TestTransferOfWhatIsShared hands over one of the clusters that share objects. The other one keeps all that it uses, as it was, and
// nothing of it comes to the target. Afterwards the other one can go the same way.
func TestTransferOfWhatIsShared(t *testing.T) {
	ctx := t.Context()
	w := newWorld(t, sharing(t))
	shared := []id{
		{"addons.cluster.x-k8s.io", "ClusterResourceSet", "team-a", "cni"},
		{"", "ConfigMap", "team-a", "cni"},
		{"infrastructure.cluster.x-k8s.io", "DockerMachineTemplate", "team-a", "shared"},
		{"cluster.x-k8s.io", "ClusterClass", "team-b", "quick"},
		{"infrastructure.cluster.x-k8s.io", "DockerClusterTemplate", "team-b", "quick"},
		{"controlplane.cluster.x-k8s.io", "KubeadmControlPlaneTemplate", "team-b", "quick"},
		{"infrastructure.cluster.x-k8s.io", "DockerMachineTemplate", "team-b", "quick-control-plane"},
	}
	j := judge{world: w}
	hand := func(namespace, name string) {
		t.Helper()
		o := w.hands(t, nil)
		o.Select = []kube.Key{{Namespace: namespace, Name: name}}
		if _, err := handover.Run(ctx, o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	hand("team-a", "alpha")
	hand("team-b", "beta")
	source, target := j.sides(ctx, t)
	var faults []string
	for _, i := range shared {
		faults = append(faults, j.compare("at the source", withoutOwners(w.sourceBefore[i]), withoutOwners(source[i]), i)...)
		faults = append(faults, j.compare("at the target", withoutOwners(w.sourceBefore[i]), withoutOwners(withoutMarks(target[i])), i)...)
	}
	for i, before := range w.sourceBefore {
		if belongsTo(before, "omega") || belongsTo(before, "psi") {
			faults = append(faults, j.compare("at the source", before, source[i], i)...)
			if target[i] != nil {
				faults = append(faults, fmt.Sprintf("from nowhere: %s is at the target", i))
			}
		}
	}
	faults = append(faults, orphans("the target", target)...)
	faults = append(faults, fences("the source", source)...)
	for _, fault := range faults {
		t.Error(fault)
	}
	hand("team-a", "omega")
	source, target = w.source.read(ctx, t), w.target.read(ctx, t)
	for i, before := range w.sourceBefore {
		if !belongsTo(before, "omega") {
			continue
		}
		if source[i] != nil || target[i] == nil {
			t.Errorf("%s: at the source %t, at the target %t", i, source[i] != nil, target[i] != nil)
		}
	}
}

// belongsTo tells whether an object is the Cluster of that name, or of that Cluster alone.
func belongsTo(obj *unstructured.Unstructured, cluster string) bool {
	named, _, _ := unstructured.NestedString(obj.Object, "spec", "clusterName")
	return obj.GetKind() == "Cluster" && obj.GetName() == cluster || obj.GetLabels()["cluster.x-k8s.io/cluster-name"] == cluster ||
		named == cluster
}

// withoutOwners is an object without its owners, of which the target has only those that it got.
func withoutOwners(obj *unstructured.Unstructured) *unstructured.Unstructured {
	if obj == nil {
		return nil
	}
	o := obj.DeepCopy()
	o.SetOwnerReferences(nil)
	return o
}
