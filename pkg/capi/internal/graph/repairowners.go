package graph

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// family finds the owners of a graph's objects by the rules of Cluster API's contracts: references in fields, names, labels and selectors.
type family struct {
	items  []*Item
	byRef  map[refKey]*Item
	byKind map[string][]*Item
	lacks  map[*Item]*repair
	absent []string
}

// Repairs returns what the graph's objects lack. It changes nothing.
func (g *Graph) Repairs() *Repairs {
	f := &family{items: g.Items, byRef: map[refKey]*Item{}, byKind: map[string][]*Item{}, lacks: map[*Item]*repair{}}
	for _, item := range g.Items {
		f.byRef[keyOfItem(item)] = item
		f.byKind[item.GetKind()] = append(f.byKind[item.GetKind()], item)
	}
	// A ClusterClass comes first, because no Cluster owns the objects of a class.
	for _, claims := range []struct {
		kind  string
		claim func(*Item)
	}{
		{"ClusterClass", f.ofClass},
		{"Cluster", f.ofCluster},
		{"MachineDeployment", f.ofDeployment},
		{"MachineSet", f.ofSet},
		{"MachinePool", f.ofPool},
		{"MachineHealthCheck", func(i *Item) { f.claim(i, f.clusterOf(i), false) }},
		{"Machine", f.ofMachine},
		{"ClusterResourceSet", f.ofResourceSet},
		{"ClusterResourceSetBinding", f.ofBinding},
		{"IPAddress", f.ofAddress},
	} {
		for _, item := range f.byKind[claims.kind] {
			if isClusterAPI(item.kind.Group) {
				claims.claim(item)
			}
		}
	}
	f.statuses()
	result := &Repairs{Unknown: []string{}, Absent: append([]string{}, f.absent...)}
	for _, item := range g.Items {
		lacks := f.lacks[item]
		if lacks != nil {
			result.items = append(result.items, lacks)
		}
		switch {
		case !orphan(item) || lacks != nil && len(lacks.owners) > 0:
		case item.kind.Group == clusterGroupKind.Group &&
			item.GetKind() == "Machine": // no provider restores a Machine's owner, and the owner would make a new Machine
			result.Absent = append(result.Absent, item.Ref().String()+
				" came without its MachineSet or control plane, and another Machine may be made in its place")
		default:
			result.Unknown = append(result.Unknown, item.Ref().String())
		}
	}
	slices.Sort(result.Absent)
	result.Absent = slices.Compact(result.Absent)
	return result
}

// isClusterAPI tells whether the group is one of Cluster API's own. Providers have no kinds in these groups.
func isClusterAPI(group string) bool {
	return slices.Contains([]string{clusterGroupKind.Group, setGroupKind.Group, ipamGroup}, group)
}

// orphan tells whether an object has the label of a Cluster but no owner. Only Clusters have no owner.
func orphan(item *Item) bool {
	return item.kind.custom && !OfFlux(item.kind.Group) && len(item.GetOwnerReferences()) == 0 && item.kind.GroupKind() != clusterGroupKind &&
		item.GetLabels()[clusterv1.ClusterNameLabel] != ""
}

func (f *family) lack(item *Item) *repair {
	if f.lacks[item] == nil {
		f.lacks[item] = &repair{Item: item}
	}
	return f.lacks[item]
}

// claim records that owner owns child. A child with a controller gets no second one.
func (f *family) claim(child, owner *Item, controller bool) {
	if child == nil || owner == nil || child == owner {
		return
	}
	for _, o := range f.ownersOf(child) {
		if o.UID == owner.GetUID() || controller && o.Controller != nil && *o.Controller {
			return
		}
	}
	reference := metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}
	if controller {
		yes := true
		reference.Controller = &yes
		reference.BlockOwnerDeletion = &yes
	}
	l := f.lack(child)
	l.owners = append(l.owners, reference)
}

// claimData records that a bootstrap object owns the Secret with its data, as Cluster API's bootstrap provider does.
func (f *family) claimData(data, config *Item) {
	f.claim(data, config, true)
	if l := f.lacks[data]; l != nil && config != nil {
		for i := range l.owners {
			if l.owners[i].UID == config.GetUID() {
				l.owners[i].BlockOwnerDeletion = nil
			}
		}
	}
}

func (f *family) ownersOf(item *Item) []metav1.OwnerReference {
	owners := item.GetOwnerReferences()
	if l := f.lacks[item]; l != nil {
		owners = slices.Concat(owners, l.owners)
	}
	return owners
}

func (f *family) ownedByClass(item *Item) bool {
	return item != nil && slices.ContainsFunc(f.ownersOf(item), func(o metav1.OwnerReference) bool { return o.Kind == classGroupKind.Kind })
}

// clusterOf returns the Cluster of an object of Cluster API's own kinds, or nil.
func (f *family) clusterOf(item *Item) *Item {
	name := cmp.Or(textOf(item, "spec", "clusterName"), item.GetLabels()[clusterv1.ClusterNameLabel])
	return f.byRef[refKey{clusterGroupKind, kube.Key{Namespace: item.GetNamespace(), Name: name}}]
}

// named returns the object to which a reference in item's fields leads, or nil if there is no reference. It records a referenced object
// that is missing.
func (f *family) named(item *Item, fields ...string) *Item {
	reference, _, _ := unstructured.NestedMap(item.Object, fields...)
	return f.resolve(item, reference)
}

// resolve returns the object to which a reference of item leads, as named does.
func (f *family) resolve(item *Item, reference map[string]any) *Item {
	kind, _ := reference["kind"].(string)
	name, _ := reference["name"].(string)
	if kind == "" || name == "" {
		return nil
	}
	namespace, _ := reference["namespace"].(string)
	group, _ := reference["apiGroup"].(string)
	if version, _ := reference["apiVersion"].(string); group == "" {
		if parsed, err := schema.ParseGroupVersion(version); err == nil {
			group = parsed.Group
		}
	}
	for _, found := range f.byKind[kind] {
		if found.GetName() == name && found.GetNamespace() == cmp.Or(namespace, item.GetNamespace()) &&
			(group == "" || group == found.kind.Group) {
			return found
		}
	}
	f.absent = append(f.absent, item.Ref().String()+" names "+kind+" "+name+", which did not arrive")
	return nil
}

func (f *family) secret(namespace, name string) *Item {
	return f.byRef[refKey{secretKind.GroupKind(), kube.Key{Namespace: namespace, Name: name}}]
}

// ofClass records that a ClusterClass owns the templates that it names.
func (f *family) ofClass(class *Item) {
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if template := f.resolve(class, value); template != nil {
				f.claim(template, class, false)
				return
			}
			for _, field := range value {
				walk(field)
			}
		case []any:
			for _, field := range value {
				walk(field)
			}
		}
	}
	fields, _, _ := unstructured.NestedMap(class.Object, "spec")
	for field, value := range fields {
		if field != "patches" && field != "variables" { // these fields name no objects
			walk(value)
		}
	}
}

// ofCluster records that a Cluster owns its infrastructure and its control plane, and that the control plane owns its Machines and the
// kubeconfig.
func (f *family) ofCluster(cluster *Item) {
	plane := f.named(cluster, "spec", "controlPlaneRef")
	f.claim(f.named(cluster, "spec", "infrastructureRef"), cluster, true)
	f.claim(plane, cluster, true)
	kubeconfig := f.secret(cluster.GetNamespace(), cluster.GetName()+"-kubeconfig")
	if kubeconfig != nil && textOf(kubeconfig, "type") == string(clusterv1.ClusterSecretType) {
		if plane != nil {
			f.claim(kubeconfig, plane, true)
		} else {
			f.claim(kubeconfig, cluster, false)
		}
	}
	if plane == nil {
		return
	}
	for _, path := range [][]string{
		{"spec", "machineTemplate", "spec", "infrastructureRef"},
		{"spec", "machineTemplate", "infrastructureRef"},
	} {
		f.ofTemplate(f.named(plane, path...), cluster)
	}
	machines := int64(0)
	for _, machine := range f.byKind["Machine"] {
		if _, is := machine.GetLabels()[clusterv1.MachineControlPlaneLabel]; is && f.clusterOf(machine) == cluster {
			f.claim(machine, plane, true)
			machines++
		}
	}
	if machines > 0 || ofMachines(plane) {
		f.enough(plane, machines)
	}
	if plane.GetKind() != "KubeadmControlPlane" || machines == 0 {
		return
	}
	needed := []string{"ca", "sa", "proxy"}
	if _, external, _ := unstructured.NestedMap(plane.Object, "spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd",
		"external"); !external {
		needed = append(needed, "etcd")
	}
	for _, purpose := range needed {
		if name := cluster.GetName() + "-" + purpose; f.secret(cluster.GetNamespace(), name) == nil {
			f.absent = append(f.absent, fmt.Sprintf("Secret %s/%s did not arrive: %s would create another one, which does not fit the machines",
				cluster.GetNamespace(), name, plane.Ref()))
		}
	}
}

// ofMachines tells whether a control plane consists of Machines, because its spec has a template for them. The replicas of a hosted control
// plane are Pods.
func ofMachines(plane *Item) bool {
	return plane.GetKind() == "KubeadmControlPlane" ||
		slices.ContainsFunc([]string{"machineTemplate", "infrastructureTemplate", "infrastructureRef"}, func(field string) bool {
			_, found, _ := unstructured.NestedMap(plane.Object, "spec", field)
			return found
		})
}

// enough records that fewer Machines came than owner wants, because owner would make the others.
func (f *family) enough(owner *Item, machines int64) {
	wanted, found, _ := unstructured.NestedInt64(owner.Object, "spec", "replicas")
	if found && machines < wanted {
		f.absent = append(f.absent, owner.Ref().String()+" wants "+count(wanted)+", and "+count(machines)+" came: it would make the others")
	}
}

// ofTemplate records that a Cluster owns a template that no ClusterClass owns.
func (f *family) ofTemplate(template, cluster *Item) {
	if !f.ownedByClass(template) {
		f.claim(template, cluster, false)
	}
}

// templates records that the Cluster owns the templates in the Machine template of a MachineSet or MachineDeployment.
func (f *family) templates(item *Item) {
	cluster := f.clusterOf(item)
	f.ofTemplate(f.named(item, "spec", "template", "spec", "infrastructureRef"), cluster)
	f.ofTemplate(f.named(item, "spec", "template", "spec", "bootstrap", "configRef"), cluster)
}

func (f *family) ofDeployment(deployment *Item) {
	f.claim(deployment, f.clusterOf(deployment), false)
	f.templates(deployment)
	machines := int64(0) // the Machines that its MachineSets account for; ofSet checks those of each set
	for _, set := range f.selected("MachineSet", deployment) {
		f.claim(set, deployment, true)
		replicas, _, _ := unstructured.NestedInt64(set.Object, "spec", "replicas")
		machines += replicas
	}
	f.enough(deployment, machines)
}

func (f *family) ofSet(set *Item) {
	f.templates(set)
	machines := f.selected("Machine", set)
	for _, machine := range machines {
		f.claim(machine, set, true)
	}
	f.enough(set, int64(len(machines)))
}

// selected returns the objects of one kind that an owner's selector matches. Its controller would adopt them.
func (f *family) selected(kind string, owner *Item) []*Item {
	fields, _, _ := unstructured.NestedMap(owner.Object, "spec", "selector")
	selector := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, selector) != nil {
		return nil
	}
	matches, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || matches.Empty() {
		return nil
	}
	var found []*Item
	for _, item := range f.byKind[kind] {
		if item.GetNamespace() == owner.GetNamespace() && f.clusterOf(item) == f.clusterOf(owner) &&
			matches.Matches(apilabels.Set(item.GetLabels())) {
			found = append(found, item)
		}
	}
	return found
}

// ofPool records that a MachinePool owns its bootstrap object, its infrastructure and its Machines.
func (f *family) ofPool(pool *Item) {
	f.claim(pool, f.clusterOf(pool), false)
	f.claim(f.named(pool, "spec", "template", "spec", "infrastructureRef"), pool, true)
	config := f.named(pool, "spec", "template", "spec", "bootstrap", "configRef")
	f.claim(config, pool, true)
	f.claimData(f.secret(pool.GetNamespace(), textOf(pool, "spec", "template", "spec", "bootstrap", "dataSecretName")), config)
	for _, machine := range f.byKind["Machine"] {
		if machine.GetNamespace() == pool.GetNamespace() && machine.GetLabels()[clusterv1.MachinePoolNameLabel] == pool.GetName() {
			f.claim(machine, pool, true)
		}
	}
}

// ofMachine records that a Machine owns its infrastructure and its bootstrap object, and that the bootstrap object owns the Secret with its
// data.
func (f *family) ofMachine(machine *Item) {
	f.claim(f.named(machine, "spec", "infrastructureRef"), machine, true)
	config := f.named(machine, "spec", "bootstrap", "configRef")
	f.claim(config, machine, true)
	f.claimData(f.secret(machine.GetNamespace(), textOf(machine, "spec", "bootstrap", "dataSecretName")), config)
}

// ofResourceSet records that a ClusterResourceSet owns the objects that it distributes.
func (f *family) ofResourceSet(set *Item) {
	resources, _, _ := unstructured.NestedSlice(set.Object, "spec", "resources")
	for _, r := range resources {
		fields, _ := r.(map[string]any)
		kind, _ := fields["kind"].(string)
		name, _ := fields["name"].(string)
		f.claim(f.byRef[refKey{schema.GroupKind{Kind: kind}, kube.Key{Namespace: set.GetNamespace(), Name: name}}], set, false)
	}
}

func (f *family) ofBinding(binding *Item) {
	bindings, _, _ := unstructured.NestedSlice(binding.Object, "spec", "bindings")
	for _, b := range bindings {
		fields, _ := b.(map[string]any)
		name, _ := fields["clusterResourceSetName"].(string)
		f.claim(binding, f.byRef[refKey{setGroupKind, kube.Key{Namespace: binding.GetNamespace(), Name: name}}], false)
	}
}

func (f *family) ofAddress(address *Item) {
	key := kube.Key{Namespace: address.GetNamespace(), Name: textOf(address, "spec", "claimRef", "name")}
	f.claim(address, f.byRef[refKey{schema.GroupKind{Group: address.kind.Group, Kind: "IPAddressClaim"}, key}], true)
}

func textOf(item *Item, fields ...string) string {
	s, _, _ := unstructured.NestedString(item.Object, fields...)
	return s
}

func nestedBool(item *Item, fields ...string) bool {
	b, _, _ := unstructured.NestedBool(item.Object, fields...)
	return b
}
