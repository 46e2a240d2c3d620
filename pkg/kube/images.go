package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podKinds are those that make pods, or are one.
var podKinds = []string{"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"}

// EditImages calls edit with each image that an object of a kind which makes pods names, and puts what it returns in its place. Objects of other kinds have
// none.
func EditImages(obj *unstructured.Unstructured, edit func(image string) string) {
	if slices.Contains(podKinds, obj.GetKind()) {
		editImages(obj.Object, edit)
	}
}

func editImages(value any, edit func(string) string) {
	switch value := value.(type) {
	case []any:
		for _, inner := range value {
			editImages(inner, edit)
		}
	case map[string]any:
		for name, inner := range value {
			containers, ok := inner.([]any)
			if !ok || name != "containers" && name != "initContainers" {
				editImages(inner, edit)
				continue
			}
			for _, each := range containers {
				container, _ := each.(map[string]any)
				if image, ok := container["image"].(string); ok && image != "" {
					container["image"] = edit(image)
				}
			}
		}
	}
}

// Images are those that objects name, sorted and once each.
func Images(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, obj := range objects {
		EditImages(obj, func(image string) string {
			all = append(all, image)
			return image
		})
	}
	slices.Sort(all)
	return slices.Compact(all)
}
