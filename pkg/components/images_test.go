package components

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// bundleOf pulls images into a bundle.
func bundleOf(t *testing.T, mirrors map[string]string, refs ...string) *bundle.Bundle {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := bundle.Create(dir)
	if err == nil {
		err = bundle.Fill(t.Context(), w, bundle.Sources{Images: refs, Mirrors: mirrors, Architecture: "amd64"}, progress.Discard)
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
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func lockOf(images ...v1alpha1.LockedImage) *v1alpha1.Lock { return &v1alpha1.Lock{Images: images} }

func TestHold(t *testing.T) {
	registry := bundletest.Registry(t)
	ref := registry + "/team/app:v1"
	index, images := bundletest.PushIndex(t, ref)
	image := Image{Name: "registry.example.com/app:v1", From: ref}
	whole, part := v1alpha1.LockedImage{Name: image.Name, Digest: index},
		v1alpha1.LockedImage{Name: image.Name, Digest: images[0], Bundle: true}
	bundled := v1alpha1.LockedImage{Name: image.Name, Digest: index, Bundle: true}
	fromRegistry := &ImageSource{}
	fromBundle := &ImageSource{Bundle: bundleOf(t, nil, ref)}
	// The same tag with other content: an image that somebody has pushed to a private registry, and a bundle that was filled from there.
	hostile := bundletest.Registry(t)
	bundletest.PushIndex(t, hostile+"/team/app:v1")
	bundletest.PushImage(t, hostile+"/team/single:v1")
	mirrors := map[string]string{registry: hostile}
	changed := &ImageSource{Mirrors: mirrors}
	forged := &ImageSource{Bundle: bundleOf(t, mirrors, ref)}
	none := &ImageSource{Mirrors: map[string]string{registry: hostile + "/none"}}
	for _, test := range []struct {
		name   string
		source *ImageSource
		lock   *v1alpha1.Lock
		want   []v1alpha1.LockedImage
		pinned bool
		says   string
	}{
		{name: "a registry, no lock", source: fromRegistry, want: []v1alpha1.LockedImage{whole}, pinned: true},
		{name: "a registry, an old lock", source: fromRegistry, lock: lockOf(), want: []v1alpha1.LockedImage{whole}, pinned: true},
		{name: "a registry, its lock", source: fromRegistry, lock: lockOf(whole), want: []v1alpha1.LockedImage{whole}, pinned: true},
		{name: "a registry, the lock of a bundle", source: fromRegistry, lock: lockOf(part), want: []v1alpha1.LockedImage{whole}, pinned: true},
		{
			name: "a registry, the lock of a bundle that knew it", source: fromRegistry, lock: lockOf(bundled),
			want: []v1alpha1.LockedImage{whole}, pinned: true,
		},
		{name: "a bundle, no lock", source: fromBundle, want: []v1alpha1.LockedImage{bundled}},
		{name: "a bundle, its lock", source: fromBundle, lock: lockOf(bundled), want: []v1alpha1.LockedImage{bundled}},
		{name: "a bundle, the lock of a registry", source: fromBundle, lock: lockOf(whole), want: []v1alpha1.LockedImage{whole}, pinned: true},
		{name: "a bundle, the lock of one that knew less", source: fromBundle, lock: lockOf(part), want: []v1alpha1.LockedImage{part}},
		{
			name: "another image in the registry is not asked for: it is pulled by its digest", source: changed, lock: lockOf(whole),
			want: []v1alpha1.LockedImage{whole}, pinned: true,
		},
		{name: "another image in the registry, the lock of a bundle", source: changed, lock: lockOf(part), says: "the registry has sha256:"},
		{name: "a hostile bundle, the lock of a registry", source: forged, lock: lockOf(whole), says: "the bundle has sha256:"},
		{name: "a hostile bundle, the lock of a bundle", source: forged, lock: lockOf(part), says: "the bundle has sha256:"},
		{name: "a hostile bundle, the lock of a bundle that knew it", source: forged, lock: lockOf(bundled), says: "the bundle has sha256:"},
		{
			name: "another image in the registry, the lock of a bundle that knew it", source: changed, lock: lockOf(bundled),
			says: "the registry has sha256:",
		},
		{name: "no registry, no lock", source: none},
		{name: "no registry, its lock", source: none, lock: lockOf(whole), want: []v1alpha1.LockedImage{whole}, pinned: true},
		{name: "no registry, the lock of a bundle", source: none, lock: lockOf(part), says: "find the digest of image " + ref},
	} {
		t.Run(test.name, func(t *testing.T) {
			held, err := test.source.Hold(t.Context(), []Image{image}, test.lock)
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("got %v", err)
				}
				if e, ok := errors.AsType[*v1alpha1.ImageDigestError](err); ok {
					locked := test.lock.Images[0].Digest
					if diag.Hint(err) == "" || !strings.Contains(err.Error(), image.Name) || !strings.Contains(err.Error(), ref) ||
						!strings.HasSuffix(err.Error(), "the lock has "+locked) || !strings.Contains(err.Error(), e.Digest) {
						t.Errorf("it says %v, %s", err, diag.Hint(err))
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, held.Locked); diff != "" {
				t.Error(diff)
			}
			if told := test.lock.FindImage(image.Name); (told != nil && told.Digest != held.Locked[0].Digest) != (len(held.Notes) == 1) {
				t.Errorf("it says %v", held.Notes)
			}
			if got := held.Pins()[image.Name]; (got == index) != test.pinned {
				t.Errorf("pinned to %q", got)
			}
			if (len(held.Unknown) > 0) != (len(test.want) == 0) || (held.Err != nil) != (len(test.want) == 0) {
				t.Errorf("unknown are %v: %v", held.Unknown, held.Err)
			}
		})
	}
}

// A registry that does not answer is told of once.
func TestHoldWithoutNetwork(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	a, b := Image{Name: "one:1", From: gone + "/one:1"}, Image{Name: "two:1", From: gone + "/two:1"}
	held, err := (&ImageSource{}).Hold(t.Context(), []Image{a, b}, nil)
	if err != nil || len(held.Unknown) != 2 || strings.Count(held.Err.Error(), "find the digest of image") != 1 {
		t.Errorf("%+v, %v", held, err)
	}
}

// A registry that cannot be asked has said nothing against what the lock has from a bundle: that stays, and runs by its tag.
func TestHoldBundledWithoutARegistry(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, status := range []int{0, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusNotFound} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				w.WriteHeader(status)
			}
		}))
		t.Cleanup(server.Close)
		if status == 0 {
			server = gone
		}
		image := Image{Name: "one:1", From: strings.TrimPrefix(server.URL, "http://") + "/one:1"}
		locked := v1alpha1.LockedImage{Name: image.Name, Digest: "sha256:" + strings.Repeat("a", 64), Bundle: true}
		held, err := (&ImageSource{}).Hold(t.Context(), []Image{image}, lockOf(locked))
		if status == http.StatusNotFound { // it was asked
			if err == nil {
				t.Error("an image that is not there is held")
			}
			continue
		}
		if err != nil || !slices.Equal(held.Locked, []v1alpha1.LockedImage{locked}) || len(held.Unknown) != 1 || held.Err == nil ||
			len(held.Pins()) > 0 {
			t.Errorf("%d: %+v, %v", status, held, err)
		}
	}
}

// A registry that takes the connection, and then says nothing, is given up.
func TestHoldWithASilentRegistry(t *testing.T) {
	stop := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(stop) })
	image := Image{Name: "one:1", From: strings.TrimPrefix(silent.URL, "http://") + "/one:1"}
	_, errs := (&ImageSource{limit: 50 * time.Millisecond}).all(t.Context(), []Image{image}, nil)
	if !errors.Is(errs[0], context.DeadlineExceeded) {
		t.Errorf("got %v", errs[0])
	}
}

// An image for one platform has the same digest in a registry and in a bundle, but the bundle does not know this. No pinned image becomes
// unpinned by this.
func TestHoldSingle(t *testing.T) {
	registry := bundletest.Registry(t)
	ref := registry + "/team/single:v1"
	bundletest.PushImage(t, ref)
	image := Image{Name: ref, From: ref}
	source := &ImageSource{Bundle: bundleOf(t, nil, ref)}
	held, err := source.Hold(t.Context(), []Image{image}, nil)
	if err != nil || len(held.Locked) != 1 || !held.Locked[0].Bundle || len(held.Pins()) != 0 {
		t.Fatalf("%+v, %v", held, err)
	}
	for _, other := range []*ImageSource{source, {}} {
		again, err := other.Hold(t.Context(), []Image{image}, lockOf(held.Locked...))
		if err != nil || again.Locked[0].Digest != held.Locked[0].Digest || again.Locked[0].Bundle != (other.Bundle != nil) {
			t.Errorf("%+v, %v", again, err)
		}
	}
	known := v1alpha1.LockedImage{Name: ref, Digest: held.Locked[0].Digest}
	if again, err := source.Hold(t.Context(), []Image{image}, lockOf(known)); err != nil || again.Pins()[ref] != known.Digest {
		t.Errorf("%+v, %v", again, err)
	}
	// The lock has no entry for an image that a component itself names by digest.
	byDigest := Image{Name: ref + "@" + known.Digest, From: ref + "@" + known.Digest}
	if again, err := source.Hold(t.Context(), []Image{byDigest}, nil); err != nil || len(again.Locked) > 0 {
		t.Errorf("%+v, %v", again, err)
	}
}

// A check of the lock may be unable to ask all registries. Their entries stay unchanged, with a note. An image without an entry is missing.
func TestLockedImagesWithoutARegistry(t *testing.T) {
	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refused.Close)
	registry := bundletest.Registry(t)
	open, private := registry+"/team/app:v1", strings.TrimPrefix(refused.URL, "http://")+"/team/app:v1"
	index, _ := bundletest.PushIndex(t, open)
	all := []Component{{images: func(context.Context) ([]Image, error) { return asReleased([]string{open, private}), nil }}}
	known, secret := v1alpha1.LockedImage{Name: open, Digest: index},
		v1alpha1.LockedImage{Name: private, Digest: "sha256:" + strings.Repeat("a", 64)}
	for _, how := range []Locking{LockAgain, LockCheck} {
		got, notes, err := (&Reader{}).lockedImages(t.Context(), &v1alpha1.Fleet{}, all, lockOf(known, secret), how)
		if err != nil || len(got) != 2 || !slices.Contains(got, known) || !slices.Contains(got, secret) {
			t.Errorf("%v: %+v, %v", how, got, err)
		}
		if text := strings.Join(notes, "\n"); !strings.Contains(text, "Not compared") || !strings.Contains(text, private) ||
			strings.Contains(text, open) {
			t.Errorf("%v: it says %s", how, text)
		}
	}
	moved := v1alpha1.LockedImage{Name: open, Digest: secret.Digest}
	got, notes, err := (&Reader{}).lockedImages(t.Context(), &v1alpha1.Fleet{}, all, lockOf(moved, secret), LockMore)
	if err != nil || len(got) != 2 || !slices.Contains(got, moved) || len(notes) != 0 {
		t.Errorf("what is locked is asked for: %+v, %v, %v", got, notes, err)
	}
	got, notes, err = (&Reader{}).lockedImages(t.Context(), &v1alpha1.Fleet{}, all, lockOf(known), LockAgain)
	if err != nil || len(got) != 1 || len(notes) != 1 || !strings.Contains(notes[0], "Not in fleet.lock") {
		t.Errorf("%+v, %v, %v", got, notes, err)
	}
	_, _, err = (&Reader{}).lockedImages(t.Context(), &v1alpha1.Fleet{}, all, lockOf(known), LockCheck)
	if diag.Code(err) != diag.ExitNotReady || !strings.Contains(err.Error(), "fleet.lock lacks 1 image") ||
		!strings.Contains(err.Error(), private) {
		t.Errorf("got %v", err)
	}
}

// A bundle with an image under the digest of another is refused: containerd takes it as it comes. It is the same where the tag is genuine,
// or is left out.
func TestForgedDigest(t *testing.T) {
	registry, hostile := bundletest.Registry(t), bundletest.Registry(t)
	index, genuine := bundletest.PushIndex(t, registry+"/team/app:v1")
	_, images := bundletest.PushIndex(t, hostile+"/team/app:v1")
	for name, with := range map[string]map[string]string{
		"alone":                {},
		"beside a genuine tag": {registry + "/team/app:v1": registry + "/team/app@" + genuine[0]},
	} {
		with[registry+"/team/app@"+index] = hostile + "/team/app@" + images[0]
		dir := filepath.Join(t.TempDir(), "bundle")
		w, err := bundle.Create(dir)
		for ref, from := range with {
			err = errors.Join(err, w.AddImage(ref, bundletest.Pull(t, from)))
		}
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		b, err := bundle.Open(t.Context(), dir)
		if err == nil {
			_ = b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), images[0]) || !strings.Contains(err.Error(), "its name has another digest") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
