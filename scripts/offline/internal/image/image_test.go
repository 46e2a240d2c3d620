package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestWrite(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := []File{
		{Path: "/tmp", Mode: 0o1777},
		{Path: "/usr/bin/program", Source: program},
		{Path: "/usr/bin/alias", Link: "/usr/bin/program"},
		{Path: "/etc/passwd", Content: []byte("root")},
	}
	img := write(t, files, Config{Entrypoint: []string{"/usr/bin/program"}, User: "65532"})
	// Fast, because the full check takes every layer for a compressed one.
	if err := validate.Image(img, validate.Fast); err != nil {
		t.Errorf("not a valid image: %v", err)
	}
	want := []string{
		"etc/ 755", "etc/passwd 644", "tmp/ 1777", "usr/ 755", "usr/bin/ 755", "usr/bin/alias 755", "usr/bin/program 755",
	}
	if got := entries(t, img); !slices.Equal(got, want) {
		t.Errorf("entries = %q, want %q", got, want)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers = %v, %v", layers, err)
	}
	if m, err := layers[0].MediaType(); err != nil || m != types.OCIUncompressedLayer {
		t.Errorf("media type = %s, %v", m, err)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Config.User != "65532" || config.OS != "linux" {
		t.Errorf("config = %+v, %v", config, err)
	}
	again, err := write(t, files, Config{Entrypoint: []string{"/usr/bin/program"}, User: "65532"}).Digest()
	if first, _ := img.Digest(); err != nil || again != first {
		t.Errorf("the same files give %s and %s", first, again)
	}
}

func TestWriteNamesWhatIsMissing(t *testing.T) {
	err := Write(t.TempDir(), []File{{Path: "/program", Source: "/does/not/exist"}}, Config{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err = %v", err)
	}
}

func TestClosure(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "usr/sbin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "usr/sbin/script"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("script", filepath.Join(root, "usr/sbin/alias")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("usr/sbin", filepath.Join(root, "sbin")); err != nil {
		t.Fatal(err)
	}
	files, err := Closure(root, "/sbin/alias")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	slices.Sort(paths)
	if want := []string{"/usr/sbin/alias", "/usr/sbin/script"}; !slices.Equal(paths, want) {
		t.Errorf("paths = %q, want %q", paths, want)
	}
	if _, err := Closure(root, "/usr/sbin/none"); err == nil {
		t.Error("a missing program gives a closure")
	}
}

func write(t *testing.T, files []File, config Config) v1.Image {
	t.Helper()
	dir := t.TempDir()
	if err := Write(dir, files, config); err != nil {
		t.Fatal(err)
	}
	img, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func entries(t *testing.T, img v1.Image) []string {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var names []string
	for in := tar.NewReader(content); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name+" "+octal(h.Mode))
	}
}

func octal(mode int64) string {
	digits := ""
	for ; mode > 0; mode >>= 3 {
		digits = string(rune('0'+mode&7)) + digits
	}
	return digits
}
