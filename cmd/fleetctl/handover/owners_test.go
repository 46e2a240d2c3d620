//go:build e2e

package handover

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type ownerReference = metav1.OwnerReference

const pausedAnnotation = "cluster.x-k8s.io/paused"

// orphans are the objects with an owner that is not there: the garbage collector deletes them.
func orphans(where string, s snapshot) []string {
	uids := s.byUID()
	var faults []string
	for i, obj := range s {
		for _, o := range obj.GetOwnerReferences() {
			owner, there := uids[o.UID]
			switch {
			case !there:
				faults = append(faults, fmt.Sprintf("orphaned: %s at %s, by %s %s", i, where, o.Kind, o.Name))
			case owner.kind != o.Kind || owner.name != o.Name || owner.namespace != "" && owner.namespace != i.namespace:
				faults = append(faults, fmt.Sprintf("orphaned: %s at %s has %s %s as its owner, with the UID of %s", i, where, o.Kind, o.Name, owner))
			}
		}
	}
	return faults
}

// fences are policies that deny writes.
func fences(where string, s snapshot) []string {
	var faults []string
	for i := range s {
		if i.kind == "ValidatingAdmissionPolicy" || i.kind == "ValidatingAdmissionPolicyBinding" {
			faults = append(faults, fmt.Sprintf("fenced: %s at %s", i, where))
		}
	}
	return faults
}

// twoOwners are Clusters that the controllers of both sides act on, and what Flux applies at both.
func twoOwners(source, target snapshot) []string {
	var faults []string
	for i, here := range source {
		there := target[i]
		if there == nil {
			continue
		}
		switch {
		case i.kind == "Cluster" && acts(source, "capi-controller-manager", here) && acts(target, "capi-controller-manager", there),
			i.kind == "HelmRelease" && acts(source, "helm-controller", here) && acts(target, "helm-controller", there),
			i.kind == "Kustomization" && acts(source, "kustomize-controller", here) && acts(target, "kustomize-controller", there):
			faults = append(faults, fmt.Sprintf("two owners: %s is acted on at both sides", i))
		}
	}
	return faults
}

// acts tells whether a side's controller changes what obj stands for.
func acts(s snapshot, controller string, obj *unstructured.Unstructured) bool {
	if isHeld(obj) {
		return false
	}
	for _, pod := range s.of("Pod") {
		if pod.GetLabels()["app"] == controller {
			return true
		}
	}
	return false
}

// held are the objects that are paused or suspended and were not before, or the other way round.
func held(where string, before, after snapshot) []string {
	var faults []string
	for i, obj := range before {
		now := after[i]
		if now == nil {
			continue
		}
		if was, is := isHeld(obj), isHeld(now); was != is {
			faults = append(faults, fmt.Sprintf("left paused or suspended: %s at %s: %t, and was %t", i, where, is, was))
		}
	}
	return faults
}

func isHeld(obj *unstructured.Unstructured) bool {
	for _, field := range []string{"paused", "suspend"} {
		if held, _, _ := unstructured.NestedBool(obj.Object, "spec", field); held {
			return true
		}
	}
	_, paused := obj.GetAnnotations()[pausedAnnotation]
	return paused
}
