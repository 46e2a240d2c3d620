package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// openFields are fields whose type has some names, although an API server takes other values too.
var openFields = []fieldOf{
	in[corev1.Capabilities]("add"), in[corev1.Capabilities]("drop"), // the container runtime knows them
	in[corev1.EmptyDirVolumeSource]("medium"),                                                            // HugePages- and a size
	in[corev1.Lifecycle]("stopSignal"),                                                                   // those of the operating system
	in[corev1.LimitRangeItem]("type"), in[corev1.Secret]("type"), in[corev1.NamespaceSpec]("finalizers"), // names with a group, too
	in[corev1.PodReadinessGate]("conditionType"), in[batchv1.PodFailurePolicyOnPodConditionsPattern]("type"), // of any controller
	in[autoscalingv2.ResourceMetricSource]("name"), in[autoscalingv2.ContainerResourceMetricSource]("name"), // any resource
	in[corev1.ObjectReference]("uid"), in[metav1.OwnerReference]("uid"), in[metav1.ObjectMeta]("uid"), // an identifier
	in[metav1.ManagedFieldsEntry]("operation"), in[resource.Quantity](""), in[admissionv1.Validation]("reason"), // nobody writes it
}

// unwritten are kinds and types that stand in no repo, because a program makes them.
var unwritten = []string{
	"Binding", "ComponentStatus", "Endpoints", "EphemeralContainerCommon", "Event", "Eviction", "Node", "RangeAllocation",
}

// Every field of the kinds that people write, for whose values Kubernetes has a type with names, has its choices.
func TestEveryChoiceIsKnown(t *testing.T) {
	known, err := types()
	if err != nil {
		t.Fatal(err)
	}
	groups := []string{
		"", "apps", "batch", "autoscaling", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "storage.k8s.io",
		"scheduling.k8s.io", "admissionregistration.k8s.io",
	}
	seen := map[reflect.Type]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, of.Kind()) {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] || strings.HasSuffix(of.Name(), "Status") || slices.Contains(unwritten, of.Name()) {
			return
		}
		seen[of] = true
		for f := range of.Fields() {
			held := f.Type
			for held.Kind() == reflect.Pointer || held.Kind() == reflect.Slice {
				held = held.Elem()
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if held.Kind() == reflect.String && held.PkgPath() != "" && choices()[fieldOf{of, name}] == nil &&
				!slices.Contains(openFields, fieldOf{of, name}) {
				t.Errorf("%s.%s is a %s, and choices does not have its values", of, name, held)
			}
			walk(f.Type)
		}
	}
	n := 0
	for gvk, of := range known.AllKnownTypes() {
		written := gvk.Version == "v1" || gvk.Version == "v2"
		if !written || !slices.Contains(groups, gvk.Group) || strings.HasSuffix(gvk.Kind, "Options") || gvk.Kind == "WatchEvent" {
			continue
		}
		n++
		walk(of)
	}
	if n < 40 {
		t.Errorf("only %d kinds were looked at", n)
	}
}
