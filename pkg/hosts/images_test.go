package hosts

import (
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// A pod that names an image by tag and digest runs on a host that has its images from a bundle, where the registry's index has another
// digest than the image for one platform.
func TestBundledImageByTheDigestOfItsIndex(t *testing.T) {
	ref := bundletest.Registry(t) + "/team/app:v1"
	index, _ := bundletest.PushIndex(t, ref)
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := bundle.Create(dir)
	if err == nil {
		err = bundle.Fill(t.Context(), w, bundle.Sources{Images: []string{ref}}, progress.Discard)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	store, err := images.Open(t.TempDir(), images.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pinned := ref + "@" + index
	for _, loaded := range [][]string{{ref}, {ref, pinned}} { // the second time the image is there, and gets its other name
		if err := store.Load(t.Context(), b.Archive(loaded...)); err != nil {
			t.Fatal(err)
		}
		byTag, err := store.Get(t.Context(), ref, images.Pull{Never: true})
		if err != nil {
			t.Fatal(err)
		}
		byDigest, err := store.Get(t.Context(), pinned, images.Pull{Never: true})
		if found := len(loaded) > 1; (err == nil) != found || found && byDigest.Root != byTag.Root {
			t.Errorf("loaded as %v: %+v, %v", loaded, byDigest, err)
		}
	}
}
