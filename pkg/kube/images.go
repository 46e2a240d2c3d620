package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podKinds are Pod and the built-in kinds that make pods.
var podKinds = []string{"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"}

// EditImages replaces each image in obj by the result of edit. It changes only objects of podKinds.
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

// Images returns the images in objects, sorted, each once.
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
