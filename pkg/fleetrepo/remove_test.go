package fleetrepo

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// The post-renderer of a removal, run as helm-controller runs it, removes Helm's keep policy from the Cluster and from no other object.
func TestUnkeep(t *testing.T) {
	item, err := unkeep()
	if err != nil {
		t.Fatal(err)
	}
	var renderer struct {
		Kustomize struct{ Patches []any }
	}
	if err := item.Decode(&renderer); err != nil {
		t.Fatal(err)
	}
	kustomization, err := yaml.Marshal(map[string]any{"resources": []string{"release.yaml"}, "patches": renderer.Kustomize.Patches})
	if err != nil {
		t.Fatal(err)
	}
	object := func(apiVersion, kind string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind +
			"\nmetadata:\n  name: demo\n  annotations:\n    helm.sh/resource-policy: keep\n    other: stays\n---\n"
	}
	files := filesys.MakeFsInMemory()
	for name, content := range map[string]string{
		"kustomization.yaml": string(kustomization),
		"release.yaml": object("cluster.x-k8s.io/v1beta2", "Cluster") + object("infrastructure.cluster.x-k8s.io/v1beta2", "DevCluster") +
			object("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane"),
	} {
		if err := files.WriteFile(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range built.Resources() {
		annotations := r.GetAnnotations()
		_, kept := annotations["helm.sh/resource-policy"]
		if kept == strings.EqualFold(r.GetKind(), "Cluster") || annotations["other"] != "stays" {
			t.Errorf("%s: %v", r.GetKind(), annotations)
		}
	}
}
