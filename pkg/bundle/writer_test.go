package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"
)

func TestRoundTrip(t *testing.T) {
	dir := newBundle(t)
	b := openBundle(t, dir)
	var names []string
	for _, e := range b.Index() {
		if e.Size <= 0 || !strings.HasPrefix(e.Digest, "sha256:") || (e.Kind == KindImage) != (e.Platform == "linux/amd64") {
			t.Errorf("entry %+v", e)
		}
		names = append(names, string(e.Kind)+" "+e.Name)
	}
	want := []string{"image " + refTool, "image " + refApp, "file " + pathRB, "file " + pathCRD}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	img := newImage(t, "amd64", "shared", "app")
	digest, err := img.Digest()
	must(t, err)
	e, err := b.Image(refApp)
	if err != nil || e.Digest != digest.String() {
		t.Errorf("Image = %+v, %v; want digest %s", e, err, digest)
	}
	if _, err := b.Image("other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an image that is not there: %v", err)
	}
	if content, err := b.ReadFile(pathRB); err != nil || string(content) != "kind: ClusterRole\n" {
		t.Errorf("ReadFile = %q, %v", content, err)
	}
	if _, err := b.ReadFile("flux/other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
	must(t, b.Verify(t.Context()))
}

// Container engines read an image's name from either annotation.
func TestImageAnnotations(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(newBundle(t), indexFile))
	must(t, err)
	var index v1.IndexManifest
	must(t, json.Unmarshal(raw, &index))
	if len(index.Manifests) != 3 {
		t.Fatalf("%d entries, want 2 images and 1 of files", len(index.Manifests))
	}
	for i, want := range []string{refTool, refApp} {
		a := index.Manifests[i].Annotations
		if a["org.opencontainers.image.ref.name"] != want || a["io.containerd.image.name"] != want {
			t.Errorf("annotations of entry %d: %v, want %s", i, a, want)
		}
	}
	if got := index.Manifests[2].ArtifactType; got != FilesArtifactType {
		t.Errorf("artifact type %q", got)
	}
}

func TestSameContentGivesSameBytes(t *testing.T) {
	read := func(dir string) string {
		raw, err := os.ReadFile(filepath.Join(dir, indexFile))
		must(t, err)
		return string(raw)
	}
	if diff := cmp.Diff(read(newBundle(t)), read(newBundle(t))); diff != "" {
		t.Error(diff)
	}
}

func TestInterruptedCreate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := Create(dir)
	must(t, err)
	must(t, w.AddImage(refApp, newImage(t, "amd64", "app")))
	if _, err := Open(t.Context(), dir); err == nil {
		t.Fatal("a bundle without its index was opened")
	}
	if _, err := Create(dir); err == nil {
		t.Fatal("two writers in one folder")
	}
	w.Discard()
	if err := w.AddFile("a", nil); err == nil {
		t.Error("a closed writer took a file")
	}
	if _, err := Open(t.Context(), dir); err == nil {
		t.Fatal("a discarded bundle was opened")
	}

	w, err = Create(dir)
	must(t, err)
	must(t, w.AddImage(refApp, unreadable{newImage(t, "amd64", "app")}))
	must(t, w.Close())
	must(t, w.Close())
	must(t, openBundle(t, dir).Verify(t.Context()))
}

// A process that is killed while it writes frees its lock and leaves no bundle. The next Create reuses its blobs.
func TestKilledCreate(t *testing.T) {
	if dir := os.Getenv("KILLED_CREATE"); dir != "" { // this process gets killed
		w, err := Create(dir)
		must(t, err)
		must(t, w.AddImage(refApp, newImage(t, "amd64", "app")))
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin) // not select{}: without other goroutines the runtime would report a deadlock
		w.Discard()
		return
	}
	dir := filepath.Join(t.TempDir(), "bundle")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledCreate$")
	cmd.Env = append(os.Environ(), "KILLED_CREATE="+dir)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	defer stdin.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ready := make([]byte, len("ready"))
	if _, err := io.ReadFull(out, ready); err != nil || string(ready) != "ready" {
		t.Fatalf("the process said %q (%v)", ready, err)
	}
	if _, err := Create(dir); err == nil {
		t.Error("two processes write to one folder")
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // the error says that the process was killed
	if _, err := Open(t.Context(), dir); err == nil {
		t.Error("what a killed process left was opened")
	}
	w, err := Create(dir)
	must(t, err)
	must(t, w.AddImage(refApp, unreadable{newImage(t, "amd64", "app")}))
	must(t, w.Close())
	must(t, openBundle(t, dir).Verify(t.Context()))
}

// unreadable is an image whose layers cannot be read. It can be added only if the bundle has its layers.
type unreadable struct{ v1.Image }

func (unreadable) LayerByDigest(v1.Hash) (v1.Layer, error) {
	return nil, errors.New("read once too often")
}

func TestOldBundleStaysUntilClose(t *testing.T) {
	dir := newBundle(t)
	w, err := Create(dir)
	must(t, err)
	must(t, w.AddImage("new", unreadable{newImage(t, "amd64", "shared")}))
	must(t, openBundle(t, dir).Verify(t.Context()))
	must(t, w.Close())
	b := openBundle(t, dir)
	must(t, b.Verify(t.Context()))
	if got := b.Index(); len(got) != 1 || got[0].Name != "docker.io/library/new:latest" {
		t.Errorf("index %v", got)
	}
	// oci-layout, index.json, and the manifest, config and layer of the one image. The content of the old bundle is gone.
	if files := listFiles(t, dir); len(files) != 5 {
		t.Errorf("files %q", files)
	}
}

func TestDamagedBlobIsWrittenAgain(t *testing.T) {
	dir := newBundle(t)
	img := newImage(t, "amd64", "shared", "app")
	m, err := img.Manifest()
	must(t, err)
	flip(t, dir, m.Layers[0].Digest)
	writeBundle(t, dir)
	must(t, openBundle(t, dir).Verify(t.Context()))
}

func TestLyingImageIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := Create(dir)
	must(t, err)
	defer w.Discard()
	honest := newImage(t, "amd64", "honest")
	if err := w.AddImage("a", lying{honest, newImage(t, "amd64", "liar")}); err == nil {
		t.Error("a layer with another digest was taken")
	}
	must(t, w.AddImage("a", honest))
}

// lying is an image that returns the layers of another image.
type lying struct {
	v1.Image
	other v1.Image
}

func (l lying) LayerByDigest(v1.Hash) (v1.Layer, error) {
	layers, err := l.other.Layers()
	return layers[0], err
}

func TestConflicts(t *testing.T) {
	w, err := Create(filepath.Join(t.TempDir(), "bundle"))
	must(t, err)
	defer w.Discard()
	must(t, w.AddImage("a", newImage(t, "amd64", "a")))
	must(t, w.AddImage("docker.io/library/a:latest", newImage(t, "amd64", "a")))
	if err := w.AddImage("a", newImage(t, "amd64", "b")); err == nil {
		t.Error("one reference for two images")
	}
	if err := w.AddImage("A b", newImage(t, "amd64", "b")); err == nil {
		t.Error("a bad reference was taken")
	}
	must(t, w.AddFile("f", []byte("1")))
	must(t, w.AddFile("f", []byte("1")))
	if err := w.AddFile("f", []byte("2")); err == nil {
		t.Error("one path for two contents")
	}
	for _, path := range []string{"", ".", "..", "../a", "a/../../b", "/a", "a//b", "a/", "./a", `a\b`, `C:a`, "a\x00b"} {
		if err := w.AddFile(path, nil); err == nil {
			t.Errorf("path %q was taken", path)
		}
	}
}

func TestCreateRefusesOtherFolders(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	must(t, os.WriteFile(precious, []byte("x"), 0o600))
	if _, err := Create(dir); err == nil || !strings.Contains(err.Error(), "precious") {
		t.Errorf("error %v", err)
	}
	if _, err := Create(precious); err == nil {
		t.Error("a file was taken for a folder")
	}
	if files := listFiles(t, dir); len(files) != 1 {
		t.Errorf("files %q", files)
	}
}

func TestConcurrentWriters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := Create(dir)
	must(t, err)
	var group errgroup.Group
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		img := newImage(t, "amd64", "shared", name)
		group.Go(func() error { return w.AddImage(name, img) })
		group.Go(func() error { return w.AddFile("charts/"+name, []byte("same")) })
	}
	must(t, group.Wait())
	must(t, w.Close())
	b := openBundle(t, dir)
	must(t, b.Verify(t.Context()))
	if n := len(b.Index()); n != 12 {
		t.Errorf("%d entries", n)
	}
}

func TestCopyStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := copyTo(ctx, io.Discard, strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestEmptyBundle(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	w, err := Create(dir)
	must(t, err)
	must(t, w.Close())
	b := openBundle(t, dir)
	must(t, b.Verify(t.Context()))
	raw, err := json.Marshal(b.Index())
	if err != nil || string(raw) != "[]" {
		t.Errorf("index %s, %v", raw, err)
	}
	if names := b.Archive().Names(); len(names) != 0 || slices.Contains(names, "") {
		t.Errorf("names %q", names)
	}
}
