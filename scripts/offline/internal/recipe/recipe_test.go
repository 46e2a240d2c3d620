package recipe

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestImagesHoldKnownPrograms finds a program that was renamed in one place only before a long build does.
func TestImagesHoldKnownPrograms(t *testing.T) {
	programs := map[string]bool{}
	all := slices.Concat(Controllers, ImageAutomation, ControlPlane, Node, Peers, Forge)
	images := append(slices.Concat(ControllerImages, ImageAutomationImages, ControlPlaneImages, NodeImages), ProxyImage, ServiceOperator)
	for _, cloud := range Clouds {
		all = append(all, CloudProviders[cloud]...)
		images = append(images, CloudProviderImages[cloud])
	}
	for _, p := range all {
		if programs[p.Name] {
			t.Errorf("two programs are called %s", p.Name)
		}
		programs[p.Name] = true
	}
	refs := map[string]bool{}
	for _, i := range images {
		if !programs[i.Program] {
			t.Errorf("%s: no program is called %s", i.Ref, i.Program)
		}
		if refs[i.Ref] {
			t.Errorf("two images are called %s", i.Ref)
		}
		refs[i.Ref] = true
	}
}

// TestModulesHoldTheirPrograms finds a program that was moved to another module in one place only. Azure Service Operator, for one,
// needs an older controller-runtime than the provider that brings it along, and does not compile in its module.
func TestModulesHoldTheirPrograms(t *testing.T) {
	programs := slices.Concat(Controllers, ImageAutomation, ControlPlane, Node, Peers, Forge)
	for _, cloud := range Clouds {
		programs = append(programs, CloudProviders[cloud]...)
	}
	for _, p := range programs {
		module, err := os.ReadFile(filepath.Join("..", "..", "modules", p.Module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(module), "\n")
		if p.Package != "." && !slices.Contains(lines, "tool "+p.Package) && !slices.Contains(lines, "\t"+p.Package) {
			t.Errorf("%s: the module %s has no tool line for %s", p.Name, p.Module, p.Package)
		}
	}
	azure, err := os.ReadFile(filepath.Join("..", "..", "modules", "capz", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(azure), "github.com/Azure/azure-service-operator/v2 "+AzureServiceOperator+" ") {
		t.Errorf("the Azure provider does not bring Azure Service Operator %s along", AzureServiceOperator)
	}
}

// TestControlPlaneImagesShareALayer keeps the bundle from holding the largest program twice.
func TestControlPlaneImagesShareALayer(t *testing.T) {
	byProgram := map[string]Image{}
	for _, i := range append(slices.Clone(ControlPlaneImages), NodeImages...) {
		same, seen := byProgram[i.Program]
		if seen && (same.Path != i.Path || !slices.Equal(same.Links, i.Links)) {
			t.Errorf("%s and %s hold the same program in different layers", i.Ref, same.Ref)
		}
		byProgram[i.Program] = i
	}
	for _, i := range ControlPlaneImages {
		if i.Program == "kubernetes" && !slices.Contains(i.Links, "/usr/local/bin/"+nameOf(i.Ref)) {
			t.Errorf("%s has no program where the embedded host looks for it", i.Ref)
		}
	}
}

// nameOf is the last part of a reference, without its tag.
func nameOf(ref string) string {
	name, _, _ := strings.Cut(path.Base(ref), ":")
	return name
}
