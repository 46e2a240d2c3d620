package scaffold

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// built returns the kinds and names of the objects that kustomize builds from a folder.
func built(t *testing.T, dir string, files ...manifest.File) []string {
	t.Helper()
	fs := filesys.MakeFsInMemory()
	for _, f := range files {
		if err := fs.WriteFile(f.Path, f.Content); err != nil {
			t.Fatal(err)
		}
	}
	res, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range res.Resources() {
		ids = append(ids, r.GetKind()+" "+path.Join(r.GetNamespace(), r.GetName()))
	}
	return ids
}

func TestTenantFiles(t *testing.T) {
	opts := TenantOptions{Name: "shop", Layout: docker, Environment: "prod", Production: true}
	files, err := TenantFiles(opts)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tenant.txtar", files)
	want := []string{
		"Namespace shop", "ResourceQuota shop/tenant", "LimitRange shop/tenant", "NetworkPolicy shop/default-deny",
		"NetworkPolicy shop/allow-dns",
		"ServiceAccount shop/shop", "RoleBinding shop/flux", "RoleBinding shop/team",
	}
	if diff := cmp.Diff(want, built(t, "tenants/docker/prod/shop", files...)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, tc := range []struct {
		change func(*TenantOptions)
		want   string
	}{
		{func(o *TenantOptions) { o.Production = false }, "name: admin"},
		{func(o *TenantOptions) { o.Role = "edit" }, "name: edit"},
		{func(o *TenantOptions) { o.Group = "shop-developers" }, "name: shop-developers"},
	} {
		o := opts
		tc.change(&o)
		files, err := TenantFiles(o)
		if err != nil {
			t.Fatal(err)
		}
		i := len(files) - 1
		for path.Base(files[i].Path) != "role-binding.yaml" {
			i--
		}
		if !strings.Contains(string(files[i].Content), tc.want) {
			t.Errorf("want %s:\n%s", tc.want, files[i].Content)
		}
	}
	for name, change := range map[string]func(*TenantOptions){
		"tenant": func(o *TenantOptions) { o.Name = "../x" }, "namespace": func(o *TenantOptions) { o.Name = "kube-system" },
		"environment": func(o *TenantOptions) { o.Environment = "" }, "role": func(o *TenantOptions) { o.Role = "root" },
		"cloud": func(o *TenantOptions) { o.Layout.Cloud = "" },
	} {
		o := opts
		change(&o)
		if _, err := TenantFiles(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("bad %s: got %v", name, err)
		}
	}
}

func TestFeatureFiles(t *testing.T) {
	files, err := FeatureFiles("ingress")
	if err != nil {
		t.Fatal(err)
	}
	all, err := EnableFeature("ingress", FeatureTarget{Layout: docker, Environment: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	one, err := EnableFeature("ingress", FeatureTarget{Layout: docker, Environment: "dev", Cluster: "edge"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "feature.txtar", append(files, all, one))
	if diff := cmp.Diff([]string{"Namespace ingress"}, built(t, "features/ingress/non-namespaced", files...)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := built(t, "features/ingress/namespaced", files...); len(got) != 0 {
		t.Error(got)
	}
	list := manifest.File{Path: "kustomization.yaml", Content: []byte("resources: [" + all.Path + ", " + one.Path + "]\n")}
	want := []string{
		"Kustomization flux-system/feature-ingress-non-namespaced", "Kustomization flux-system/feature-ingress",
		"Kustomization edge/feature-ingress-non-namespaced", "Kustomization edge/feature-ingress",
	}
	if diff := cmp.Diff(want, built(t, ".", list, all, one)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := FeatureFiles("In_gress"); err == nil {
		t.Error("a bad name: want an error")
	}
}
