package recipe

import (
	"slices"
	"testing"
)

// TestImagesHoldKnownPrograms finds a program that was renamed in one place only before a long build does.
func TestImagesHoldKnownPrograms(t *testing.T) {
	programs := map[string]bool{}
	for _, p := range slices.Concat(Controllers, ImageAutomation, Node, Peers) {
		if programs[p.Name] {
			t.Errorf("two programs are called %s", p.Name)
		}
		programs[p.Name] = true
	}
	refs := map[string]bool{}
	for _, i := range append(slices.Concat(ControllerImages, ImageAutomationImages, NodeImages), ProxyImage) {
		if !programs[i.Program] {
			t.Errorf("%s: no program is called %s", i.Ref, i.Program)
		}
		if refs[i.Ref] {
			t.Errorf("two images are called %s", i.Ref)
		}
		refs[i.Ref] = true
	}
}
