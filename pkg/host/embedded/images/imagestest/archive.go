// Package imagestest makes images for tests: archives as an offline bundle streams them.
package imagestest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host"
)

// Image is what goes into an archive.
type Image struct {
	// Program is the file that becomes /manager, the entrypoint.
	Program string
	// Extra makes images with the same program different.
	Extra string
	// Cmd are the arguments that the image has of its own.
	Cmd []string
	// WorkingDir is where its program starts. Default: none.
	WorkingDir string
	// Arch is the architecture that the image claims. Default: this machine's.
	Arch string
	// Truncated leaves out the end of the layer.
	Truncated bool
}

// Archive returns an archive with an image of one layer for each reference.
func Archive(t testing.TB, images map[string]Image) host.ImageArchive {
	t.Helper()
	a := archive{}
	for ref, img := range images {
		a[ref] = build(t, img)
	}
	return a
}

type archive map[string][]blob

type blob struct {
	hex     string
	content []byte
}

func newBlob(content []byte) blob {
	sum := sha256.Sum256(content)
	return blob{hex.EncodeToString(sum[:]), content}
}

func (b blob) descriptor() map[string]any {
	return map[string]any{"digest": "sha256:" + b.hex, "size": len(b.content)}
}

func build(t testing.TB, img Image) []blob {
	t.Helper()
	program, err := os.ReadFile(img.Program)
	if err != nil {
		t.Fatal(err)
	}
	layer := newBlob(layerOf(t, map[string][]byte{"manager": program, "extra": []byte(img.Extra)}))
	arch := img.Arch
	if arch == "" {
		arch = runtime.GOARCH
	}
	config := newBlob(mustJSON(t, map[string]any{
		"os": "linux", "architecture": arch, "config": map[string]any{
			"Entrypoint": []string{"/manager"}, "Cmd": img.Cmd,
			"WorkingDir": img.WorkingDir,
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layer.hex}},
	}))
	manifest := newBlob(mustJSON(t, map[string]any{
		"schemaVersion": 2, "config": config.descriptor(), "layers": []any{layer.descriptor()},
	}))
	if img.Truncated {
		layer.content = layer.content[:len(layer.content)/2]
	}
	return []blob{manifest, config, layer}
}

// layerOf is a layer of programs by their names.
func layerOf(t testing.TB, programs map[string][]byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for name, content := range programs {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o755, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Names implements host.ImageArchive.
func (a archive) Names() []string {
	names := make([]string, 0, len(a))
	for ref := range a {
		names = append(names, ref)
	}
	slices.Sort(names)
	return names
}

// WriteArchive implements host.ImageArchive.
func (a archive) WriteArchive(_ context.Context, w io.Writer, refs ...string) error {
	if len(refs) == 0 {
		refs = a.Names()
	}
	var manifests []any
	var blobs []blob
	for _, ref := range refs {
		d := a[ref][0].descriptor()
		d["annotations"] = map[string]string{"io.containerd.image.name": ref}
		manifests = append(manifests, d)
		blobs = append(blobs, a[ref]...)
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": manifests})
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	write := func(name string, content []byte) error {
		if err := out.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := out.Write(content)
		return err
	}
	if err := write("index.json", index); err != nil {
		return err
	}
	for _, b := range blobs {
		if err := write("blobs/sha256/"+b.hex, b.content); err != nil {
			return err
		}
	}
	return out.Close()
}
