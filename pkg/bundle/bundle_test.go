package bundle

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The images and files that most tests work on. The two images share a layer.
const (
	refApp  = "registry.example.com/team/app:v1"
	refTool = "docker.io/library/tool:latest"
	pathCRD = "providers/infrastructure-docker/v1.14.0/infrastructure-components.yaml"
	pathRB  = "flux/v2.9.5/rbac.yaml"
)

// newImage returns an image for platform linux/arch with one layer for each content.
func newImage(t *testing.T, arch string, contents ...string) v1.Image {
	t.Helper()
	img := v1.Image(empty.Image)
	for _, content := range contents {
		var layer bytes.Buffer
		w := tar.NewWriter(&layer)
		must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "etc/content", Mode: 0o644, Size: int64(len(content))}))
		_, err := io.WriteString(w, content)
		must(t, err)
		must(t, w.Close())
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
		must(t, err)
		img, err = mutate.AppendLayers(img, l)
		must(t, err)
	}
	config, err := img.ConfigFile()
	must(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	img, err = mutate.ConfigFile(img, config)
	must(t, err)
	return img
}

// newBundle writes a bundle with two images and two files to a new folder.
func newBundle(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bundle")
	writeBundle(t, dir)
	return dir
}

func writeBundle(t *testing.T, dir string) {
	t.Helper()
	w, err := Create(dir)
	must(t, err)
	must(t, w.AddImage(refApp, newImage(t, "amd64", "shared", "app")))
	must(t, w.AddImage("tool", newImage(t, "amd64", "shared", "tool")))
	must(t, w.AddFile(pathCRD, []byte("kind: CustomResourceDefinition\n")))
	must(t, w.AddFile(pathRB, []byte("kind: ClusterRole\n")))
	must(t, w.Close())
}

func openBundle(t *testing.T, path string, opts ...Option) *Bundle {
	t.Helper()
	b, err := Open(t.Context(), path, opts...)
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

// flip changes the last byte of the blob with that digest.
func flip(t *testing.T, dir string, h v1.Hash) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(blobPath(h)))
	content, err := os.ReadFile(file)
	must(t, err)
	content[len(content)-1] ^= 1
	must(t, os.WriteFile(file, content, 0o644))
}

// listFiles returns every path below dir.
func listFiles(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFullReference(t *testing.T) {
	digest := "sha256:" + string(bytes.Repeat([]byte("a"), 64))
	for in, want := range map[string]string{
		"busybox":                           "docker.io/library/busybox:latest",
		"kindest/node:v1.36.3":              "docker.io/kindest/node:v1.36.3",
		"docker.io/kindest/node:v1":         "docker.io/kindest/node:v1",
		"registry.k8s.io/pause:3.10":        "registry.k8s.io/pause:3.10",
		"localhost:5000/a/b":                "localhost:5000/a/b:latest",
		"quay.io/a/b@" + digest:             "quay.io/a/b@" + digest,
		"quay.io/a/b:v1@" + digest:          "quay.io/a/b@" + digest,
		"":                                  "",
		"${IMAGE}":                          "",
		"../../etc/passwd":                  "",
		"quay.io/a/b:v1\x1b[31m":            "",
		"quay.io/a/b@sha256:0123":           "",
		"quay.io/UPPER/case":                "",
		"registry.example.com/team/app:v1 ": "",
	} {
		got, err := FullReference(in)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("FullReference(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}
