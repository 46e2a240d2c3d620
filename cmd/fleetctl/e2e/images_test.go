//go:build e2e && images

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// TestImageAutomation pushes images of the example app-delivery to a registry, and finds them where each belongs: a build of main in
// staging, a release in production. Its bundle has two controllers more than the others', so it is not a part of e2e.
func TestImageAutomation(t *testing.T) {
	registry := bundletest.Registry(t)
	for _, tag := range []string{builtForStaging, "1.4.2"} {
		bundletest.PushImage(t, registry+"/shop:"+tag)
	}
	files := appDelivery(t)
	files[images] = strings.NewReplacer(
		"image: registry.example.com/shop\n", "image: "+registry+"/shop\n  insecure: true\n", "interval: 5m", "interval: 5s",
	).Replace(files[images])
	server := serve(t, files)
	f := newFleetOn(t, onEmbedded, "app-delivery")
	mgmt := f.client(f.initExample(server).Kubeconfig)
	f.allReady("shop-production", "shop-staging")
	before := server.Head(t, "main")
	f.runs(mgmt, builtForStaging)

	const build, release = "main-77d0e1f-1790000300", "1.5.0"
	bundletest.PushImage(t, registry+"/shop:main-fedcba9-1780000000") // an old branch's, built again
	bundletest.PushImage(t, registry+"/shop:"+build)
	f.runs(mgmt, build)
	changed(t, server, before, "staging", builtForStaging, build)

	before = server.Head(t, "main")
	bundletest.PushImage(t, registry+"/shop:"+release)
	bundletest.PushImage(t, registry+"/shop:2.0.0-rc.1")
	eventually(t, "the release is committed", time.Minute, func() string {
		if overlay := server.File(t, "main", "features/shop/production/kustomization.yaml"); !strings.Contains(overlay, "newTag: "+release) {
			return overlay
		}
		return ""
	})
	changed(t, server, before, "production", "1.4.2", release)
	f.allReady("shop-production", "shop-staging")
	f.ok("teardown", "--delete-clusters", "--yes")
}

// changed requires that one commit has been made since, by Flux: the line with the tag in an overlay of the shop is all that it changes.
func changed(t *testing.T, server *gittest.HTTPS, since, overlay, from, to string) {
	t.Helper()
	if author := strings.TrimSpace(gittest.Git(t, server.Dir, "log", "--format=%an", since+"..main")); author != "Flux" {
		t.Errorf("commits by %q, want one by Flux", author)
	}
	diff := gittest.Git(t, server.Dir, "diff", "--unified=0", since, "main")
	var lines []string
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	path := "features/shop/" + overlay + "/kustomization.yaml"
	policy := map[string]string{"staging": "latest", "production": "release"}[overlay]
	want := []string{
		"--- a/" + path, "+++ b/" + path,
		"-  newTag: " + from + ` # {"$imagepolicy": "flux-system:shop-` + policy + `:tag"}`,
		"+  newTag: " + to + ` # {"$imagepolicy": "flux-system:shop-` + policy + `:tag"}`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the commit changes more or less than one line:\n%s", diff)
	}
}
