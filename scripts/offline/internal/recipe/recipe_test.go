package recipe

import (
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestImagesHoldKnownPrograms finds a program that was renamed in one place only before a long build does.
func TestImagesHoldKnownPrograms(t *testing.T) {
	programs := map[string]Program{}
	all := slices.Concat(Controllers, Before, ImageAutomation, ControlPlane, Node, Peers, Forge)
	bundle := append(slices.Concat(ControllerImages, BeforeImages, ImageAutomationImages, ControlPlaneImages), ServiceOperator)
	for _, cloud := range Clouds {
		all = slices.Concat(all, CloudProviders[cloud], CloudProvidersBefore[cloud])
		bundle = append(bundle, CloudProviderImages[cloud])
		if before, ok := CloudProviderImagesBefore[cloud]; ok {
			bundle = append(bundle, before)
		}
	}
	for _, p := range all {
		if other, twice := programs[p.Name]; twice && !reflect.DeepEqual(p, other) { // etcd is the embedded host's and a node's
			t.Errorf("two programs are called %s", p.Name)
		}
		programs[p.Name] = p
	}
	made := map[string]Image{}
	for _, i := range append(slices.Concat(bundle, NodeImages), ProxyImage) {
		if other, twice := made[i.Name()]; twice && !reflect.DeepEqual(i, other) { // what is kept of one would be removed for the other
			t.Errorf("%s and %s are both made as %s", i.Ref, other.Ref, i.Name())
		}
		made[i.Name()] = i
	}
	for where, images := range map[string][]Image{
		"the bundle": bundle, "a node": append(slices.Concat(ControllerImages, ImageAutomationImages, NodeImages), ProxyImage),
	} {
		refs := map[string]bool{}
		for _, i := range images {
			if _, known := programs[i.Program]; !known {
				t.Errorf("%s: no program is called %s", i.Ref, i.Program)
			}
			if refs[i.Ref] {
				t.Errorf("two images of %s are called %s", where, i.Ref)
			}
			refs[i.Ref] = true
		}
	}
}

// TestModulesHoldTheirPrograms finds a program that was moved to another module in one place only. Azure Service Operator, for one,
// needs an older controller-runtime than the provider that brings it along, and does not compile in its module.
func TestModulesHoldTheirPrograms(t *testing.T) {
	programs := slices.Concat(Controllers, Before, ImageAutomation, ControlPlane, Node, Peers, Forge)
	for _, cloud := range Clouds {
		programs = slices.Concat(programs, CloudProviders[cloud], CloudProvidersBefore[cloud])
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

// TestImagesShareALayer keeps the bundle and a node from holding their largest program twice.
func TestImagesShareALayer(t *testing.T) {
	byProgram := map[string]Image{}
	for _, i := range append(slices.Clone(ControlPlaneImages), NodeImages...) {
		same, seen := byProgram[i.Program]
		if seen && (same.Path != i.Path || !slices.Equal(same.Links, i.Links)) {
			t.Errorf("%s and %s hold the same program in different layers", i.Ref, same.Ref)
		}
		byProgram[i.Program] = i
	}
	for _, i := range slices.Concat(ControlPlaneImages, NodeImages) {
		if strings.Contains(i.Ref, "/kube-") && !slices.Contains(i.Links, "/usr/local/bin/"+nameOf(i.Ref)) {
			t.Errorf("%s has no program where it is looked for", i.Ref)
		}
	}
}

// nameOf is the last part of a reference, without its tag.
func nameOf(ref string) string {
	name, _, _ := strings.Cut(path.Base(ref), ":")
	return name
}

// TestNamesLeadToOneProgram: what is linked under a name does not depend on what was built last.
func TestNamesLeadToOneProgram(t *testing.T) {
	owner := map[string]string{}
	for _, p := range slices.Concat(Controllers, Before, ImageAutomation, ControlPlane, Node, Peers, Forge) {
		for _, name := range append([]string{p.Name}, p.Names...) {
			if other, taken := owner[name]; taken && other != p.Name {
				t.Errorf("%s leads to %s and to %s", name, other, p.Name)
			}
			owner[name] = p.Name
		}
	}
}

// TestModulesAgree keeps what two modules have in common at one version, so that Go compiles it once for both: otherwise the control plane
// takes twice as long to build. Raise the version in the module kube-control-plane, or in its replace directives.
func TestModulesAgree(t *testing.T) {
	controllers, controlPlane := versions(t, "controllers"), versions(t, "kube-control-plane")
	for module, version := range controlPlane {
		if other, both := controllers[module]; both && other != version {
			t.Errorf("%s: %s in controllers, %s in kube-control-plane", module, other, version)
		}
	}
	capa, before := versions(t, "capa"), versions(t, "capa-before")
	agreesWithFleetctl(t, capa, controllers)
	for module, version := range before {
		if strings.HasPrefix(module, "github.com/aws/") && capa[module] != version {
			t.Errorf("%s: %s in capa-before, and %s in capa", module, version, capa[module])
		}
	}
	const aws = "sigs.k8s.io/cluster-api-provider-aws/v2"
	if capa[aws] != AWSProvider || before[aws] != AWSProviderBefore {
		t.Errorf("capa has %s and capa-before %s, and images are called %s and %s", capa[aws], before[aws], AWSProvider, AWSProviderBefore)
	}
	const kubernetes = "k8s.io/kubernetes"
	if node := versions(t, "kubernetes")[kubernetes]; node != controlPlane[kubernetes] || node != Kubernetes {
		t.Errorf("%s: %s on a node, %s on the embedded host, and images are called %s", kubernetes, node, controlPlane[kubernetes], Kubernetes)
	}
}

// agreesWithFleetctl does the same for AWS's provider, which shares AWS's SDK and Kubernetes' libraries with fleetctl itself, and some of
// what is left with the controllers. Without that it takes more than twice as long to compile.
func agreesWithFleetctl(t *testing.T, capa, controllers map[string]string) {
	t.Helper()
	own := map[string]string{
		"sigs.k8s.io/cluster-api":                  "the release that the provider is made for",
		"github.com/aws/aws-sdk-go-v2/service/eks": "fleetctl does not compile it",
		"golang.org/x/exp":                         "the provider needs a newer one",
	}
	fleetctl := versionsIn(t, filepath.Join("..", "..", "..", "..", "go.mod"))
	for module, version := range capa {
		want, both := fleetctl[module]
		if !both && !strings.HasPrefix(module, "github.com/aws/") {
			want, both = controllers[module]
		}
		if both && want != version && own[module] == "" {
			t.Errorf("%s: %s in capa, and not %s", module, version, want)
		}
	}
}

// versions are those that a module's go.mod chooses, by path.
func versions(t *testing.T, module string) map[string]string {
	t.Helper()
	return versionsIn(t, filepath.Join("..", "..", "modules", module, "go.mod"))
}

func versionsIn(t *testing.T, file string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	chosen, replaced := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimPrefix(line, "replace"), "require"))
		switch {
		case len(fields) >= 4 && fields[1] == "=>":
			replaced[fields[0]] = fields[3]
		case len(fields) >= 2 && strings.HasPrefix(fields[1], "v"):
			chosen[fields[0]] = fields[1]
		}
	}
	for path, version := range replaced {
		if _, ok := chosen[path]; ok {
			chosen[path] = version
		}
	}
	if len(chosen) < 50 {
		t.Fatalf("only %d modules found in %s", len(chosen), file)
	}
	return chosen
}
