package flux

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// OtherSync is an object by which a tool other than Flux applies a repository to this cluster.
type OtherSync struct {
	// Tool is the name of the tool: Argo CD.
	Tool string
	Ref  kube.Ref
	// URL of the repository; "" where the object has none.
	URL string
}

// String describes the object in words.
func (o OtherSync) String() string {
	if o.URL == "" {
		return fmt.Sprintf("%s of %s", o.Ref, o.Tool)
	}
	return fmt.Sprintf("%s of %s (%s)", o.Ref, o.Tool, o.URL)
}

// otherTool is a kind of object by which a tool applies a repository.
type otherTool struct {
	name string
	kind schema.GroupVersionKind
	// here tells whether an object of the kind applies the repository to its own cluster.
	here func(*unstructured.Unstructured) bool
	// urls are the paths of fields with the URL of the repository; the first one that is set counts.
	urls [][]string
}

// otherTools are the tools whose objects name the repository that they apply.
func otherTools() []otherTool {
	always := func(*unstructured.Unstructured) bool { return true }
	return []otherTool{
		{
			"Argo CD",
			schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"},
			ofThisArgo,
			[][]string{{"spec", "source", "repoURL"}},
		},
		{
			"Rancher Fleet",
			schema.GroupVersionKind{Group: "fleet.cattle.io", Version: "v1alpha1", Kind: "GitRepo"},
			// Rancher Fleet names the cluster that it runs on by this namespace.
			func(o *unstructured.Unstructured) bool { return o.GetNamespace() == "fleet-local" },
			[][]string{{"spec", "repo"}},
		},
		{
			"Config Sync",
			schema.GroupVersionKind{Group: "configsync.gke.io", Version: "v1beta1", Kind: "RootSync"},
			always,
			[][]string{{"spec", "git", "repo"}, {"spec", "oci", "image"}, {"spec", "helm", "repo"}},
		},
		{
			"kapp-controller",
			schema.GroupVersionKind{Group: "kappctrl.k14s.io", Version: "v1alpha1", Kind: "App"},
			func(o *unstructured.Unstructured) bool {
				return textAt(o, "spec", "cluster", "kubeconfigSecretRef", "name") == ""
			}, nil,
		},
	}
}

// ofThisArgo tells whether an Application applies to the cluster on which Argo CD runs.
func ofThisArgo(o *unstructured.Unstructured) bool {
	server, name := textAt(o, "spec", "destination", "server"), textAt(o, "spec", "destination", "name")
	return server == "https://kubernetes.default.svc" || name == "in-cluster" || server == "" && name == ""
}

// textAt is the text in a field; "" where the object has no such field, or no text in it.
func textAt(o *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(o.Object, path...)
	return text
}

// OtherSyncs returns the objects by which other tools apply repositories to this cluster, in order.
func (s *System) OtherSyncs(ctx context.Context) ([]OtherSync, error) {
	tools := otherTools()
	found := make([][]OtherSync, len(tools))
	group, ctx := errgroup.WithContext(ctx)
	for i, tool := range tools {
		group.Go(func() error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(tool.kind.GroupVersion().WithKind(tool.kind.Kind + "List"))
			if err := s.client.List(ctx, list); err != nil {
				if kube.IsAbsent(err) {
					return nil
				}
				return fmt.Errorf("look whether %s applies to the cluster: list %s: %w", tool.name, tool.kind.GroupKind(), err)
			}
			for j := range list.Items {
				if obj := &list.Items[j]; tool.here(obj) {
					found[i] = append(found[i], OtherSync{Tool: tool.name, Ref: kube.RefOf(obj), URL: tool.url(obj)})
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(found...)
	slices.SortStableFunc(all, func(a, b OtherSync) int { return cmp.Compare(a.String(), b.String()) })
	return all, nil
}

func (t otherTool) url(o *unstructured.Unstructured) string {
	for _, path := range t.urls {
		if url := textAt(o, path...); url != "" {
			return url
		}
	}
	if sources, _, _ := unstructured.NestedSlice(o.Object, "spec", "sources"); len(sources) > 0 { // an Application may have several
		if first, ok := sources[0].(map[string]any); ok {
			url, _ := first["repoURL"].(string)
			return url
		}
	}
	return ""
}
