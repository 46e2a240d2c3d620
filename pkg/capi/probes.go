package capi

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// eager returns copies of objects whose Deployments have readiness probes every second from the start. Releases probe every five or ten
// seconds, so a manager that just misses a probe counts as not ready for that time. The time after which a failing manager counts as not
// ready stays the same.
func eager(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		if obj.GroupVersionKind() == kube.DeploymentKind {
			obj = obj.DeepCopy()
			containers, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "template", "spec", "containers")
			for _, each := range asSlice(containers) {
				probe, found, err := unstructured.NestedFieldNoCopy(asMap(each), "readinessProbe")
				if found && err == nil {
					hasten(asMap(probe))
				}
			}
		}
		all = append(all, obj)
	}
	return all
}

// hasten changes a readiness probe in place. The API's defaults are a period of 10 seconds and a threshold of 3.
func hasten(probe map[string]any) {
	if probe == nil {
		return
	}
	period, _, _ := unstructured.NestedInt64(probe, "periodSeconds")
	threshold, _, _ := unstructured.NestedInt64(probe, "failureThreshold")
	probe["failureThreshold"] = cmp.Or(period, 10) * cmp.Or(threshold, 3)
	probe["periodSeconds"] = int64(1)
	delete(probe, "initialDelaySeconds")
}

func asSlice(value any) []any {
	slice, _ := value.([]any)
	return slice
}

func asMap(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}
