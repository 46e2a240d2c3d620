//go:build e2e

package conformance

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// snapshot is what exists: by kind, namespace and name, the conditions of each object, as TYPE=STATUS. Objects whose names differ in
// what was chosen at random share an entry.
type snapshot map[string][]string

// lines are one for each object, sorted.
func (s snapshot) lines() []string {
	out := make([]string, 0, len(s))
	for object, each := range s {
		for _, conditions := range each {
			out = append(out, strings.TrimSpace(object+" "+conditions))
		}
	}
	slices.Sort(out)
	return out
}

// without leaves out what a bare host has.
func (s snapshot) without(before snapshot) snapshot {
	out := snapshot{}
	for object, conditions := range s {
		if _, there := before[object]; !there {
			out[object] = conditions
		}
	}
	return out
}

// notCompared are kinds that the embedded host has not, because it has no nodes, or that are notes and not state.
var notCompared = []string{
	"Pod", "ReplicaSet", "Endpoints", "EndpointSlice", "Node", "CSINode", "ControllerRevision", // of nodes and their pods
	"IPAddress",          // of Services: chosen at random, and the name
	"Lease",              // one process needs no leader
	"Event",              // notes
	"CertificateRequest", // of cert-manager: one for each time that it asked
}

// look lists all objects of all kinds. The system's own namespaces are each host's own business.
func (s *side) look(ctx context.Context) (snapshot, error) {
	lists, err := s.discovery.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	found := snapshot{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(notCompared, r.Kind) || r.Kind == "ComponentStatus" {
				continue
			}
			objects, err := s.dynamic.Resource(gv.WithResource(r.Name)).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", gv.WithResource(r.Name), err)
			}
			for i := range objects.Items {
				o := &objects.Items[i]
				if ns := o.GetNamespace(); ns == "default" || strings.HasPrefix(ns, "kube-") || ns == "local-path-storage" {
					continue
				}
				found[nameOf(o)] = append(found[nameOf(o)], conditionsOf(o))
			}
		}
	}
	return found, nil
}

// random is the ending that the API server or a controller gives to a name.
var random = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

func nameOf(o *unstructured.Unstructured) string {
	name := random.ReplaceAllString(o.GetName(), "-*")
	text := o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + name
	if version, ok, _ := unstructured.NestedString(o.Object, "version"); ok && o.GetKind() == "Provider" {
		text += " " + version
	}
	return text
}

func conditionsOf(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var out []string
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok {
			out = append(out, fmt.Sprintf("%v=%v", c["type"], c["status"]))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
