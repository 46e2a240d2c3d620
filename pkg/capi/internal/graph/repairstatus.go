package graph

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// count returns a number of Machines as text.
func count(machines int64) string { return plain.Count(int(machines), "Machine") }

// statuses records the status fields without which a controller would make something a second time. Controllers determine all other status
// fields again, as after clusterctl's move. Each recorded field follows from fields that Cluster API writes only later, so none is a guess.
func (f *family) statuses() {
	for _, machine := range f.byKind["Machine"] {
		if machine.kind.Group != clusterGroupKind.Group {
			continue
		}
		// Cluster API copies both fields from the provider's object after that object reports that it is complete.
		f.say(machine, "infrastructureProvisioned", textOf(machine, "spec", "providerID") != "")
		f.say(machine, "bootstrapDataSecretCreated", textOf(machine, "spec", "bootstrap", "dataSecretName") != "")
	}
	for _, pool := range f.byKind["MachinePool"] {
		if pool.kind.Group != clusterGroupKind.Group {
			continue
		}
		ids, _, _ := unstructured.NestedSlice(pool.Object, "spec", "providerIDList")
		f.say(pool, "infrastructureProvisioned", len(ids) > 0)
		f.say(pool, "bootstrapDataSecretCreated", textOf(pool, "spec", "template", "spec", "bootstrap", "dataSecretName") != "")
	}
	for _, cluster := range f.byKind["Cluster"] {
		if cluster.kind.GroupKind() != clusterGroupKind {
			continue
		}
		// Cluster API makes a kubeconfig only for existing infrastructure, with its address.
		kubeconfig := f.secret(cluster.GetNamespace(), cluster.GetName()+"-kubeconfig")
		f.say(cluster, "infrastructureProvisioned", kubeconfig != nil && textOf(cluster, "spec", "controlPlaneEndpoint", "host") != "")
		joined := f.joined(cluster)
		f.say(cluster, "controlPlaneInitialized", joined)
		if plane := f.named(cluster, "spec", "controlPlaneRef"); plane != nil {
			f.say(plane, "controlPlaneInitialized", joined)
		}
	}
}

// joined tells whether a Machine has bootstrap data for joining the cluster. Its provider makes such data only if the cluster exists. The
// first Machine of the control plane does not join.
func (f *family) joined(cluster *Item) bool {
	planes := 0
	for _, machine := range f.byKind["Machine"] {
		data, config := textOf(machine, "spec", "bootstrap", "dataSecretName"), textOf(machine, "spec", "bootstrap", "configRef", "name")
		if f.clusterOf(machine) != cluster || data == "" || config == "" {
			continue
		}
		if _, plane := machine.GetLabels()[clusterv1.MachineControlPlaneLabel]; !plane {
			return true
		}
		planes++
	}
	return planes > 1
}

// before are the fields of the contract v1beta1 for the fields of status.initialization.
var before = map[string]map[string]string{
	"Cluster":     {"infrastructureProvisioned": "infrastructureReady"},
	"Machine":     {"infrastructureProvisioned": "infrastructureReady", "bootstrapDataSecretCreated": "bootstrapReady"},
	"MachinePool": {"infrastructureProvisioned": "infrastructureReady", "bootstrapDataSecretCreated": "bootstrapReady"},
	"":            {"controlPlaneInitialized": "initialized"}, // for the control plane of any provider
}

// say records a field of status.initialization, and the v1beta1 field for it, if the value of is holds and the status has neither field.
func (f *family) say(item *Item, field string, is bool) {
	if !is || !item.kind.status {
		return
	}
	kind := item.GetKind()
	if item.kind.Group != clusterGroupKind.Group {
		kind = ""
	}
	old := before[kind][field]
	if nestedBool(item, "status", "initialization", field) || old != "" && nestedBool(item, "status", old) {
		return
	}
	l := f.lack(item)
	if l.status == nil {
		l.status = map[string]any{}
	}
	// Of the two fields, the API server drops the one that the kind does not have.
	initialization, _ := l.status["initialization"].(map[string]any)
	if initialization == nil {
		initialization = map[string]any{}
		l.status["initialization"] = initialization
	}
	initialization[field] = true
	if old != "" {
		l.status[old] = true
	}
}

// Unrepaired describes what a graph still lacks after its repair. It returns "" if it lacks nothing.
func (r *Repairs) Unrepaired() string {
	for _, i := range r.items {
		switch {
		case len(i.owners) > 0:
			return fmt.Sprintf("%s is not owned by %s %s", i.Ref(), i.owners[0].Kind, i.owners[0].Name)
		case len(i.status) > 0 && i.kind.Group == clusterGroupKind.Group:
			return fmt.Sprintf("the status of %s is incomplete", i.Ref())
		}
	}
	return ""
}
