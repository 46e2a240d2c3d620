// Package bundletest gives tests the sources of a bundle: a container registry on the loopback address, images and Helm charts.
package bundletest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Registry starts an empty registry that stops at the end of the test. It returns its host and port.
func Registry(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(RegistryHandler())
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// RegistryHandler is an empty registry, for a test that stands before it.
func RegistryHandler() http.Handler {
	return registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)))
}

// PushImage pushes a small image that runs on every Linux machine.
func PushImage(t testing.TB, ref string) {
	t.Helper()
	layer, err := random.Layer(1<<10, types.OCILayer)
	check(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	check(t, err)
	config, err := image.ConfigFile()
	check(t, err)
	config = config.DeepCopy()
	config.OS = "linux" // without an architecture, the image fits every machine
	image, err = mutate.ConfigFile(image, config)
	check(t, err)
	push(t, ref, image)
}

// PushIndex pushes an image for two platforms, and returns the digest of its index and those of its images, linux/amd64 first.
func PushIndex(t testing.TB, ref string) (index string, images [2]string) {
	t.Helper()
	both := v1.ImageIndex(empty.Index)
	for i, architecture := range []string{"amd64", "arm64"} {
		layer, err := random.Layer(1<<10, types.OCILayer)
		check(t, err)
		image, err := mutate.AppendLayers(empty.Image, layer)
		check(t, err)
		image, err = mutate.ConfigFile(image, withPlatform(t, image, architecture))
		check(t, err)
		digest, err := image.Digest()
		check(t, err)
		images[i] = digest.String()
		both = mutate.AppendManifests(both, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	parsed, err := name.ParseReference(ref)
	check(t, err)
	check(t, remote.WriteIndex(parsed, both, remote.WithContext(t.Context())))
	digest, err := both.Digest()
	check(t, err)
	return digest.String(), images
}

func withPlatform(t testing.TB, image v1.Image, architecture string) *v1.ConfigFile {
	t.Helper()
	config, err := image.ConfigFile()
	check(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	return config
}

// Pull returns an image from a registry.
func Pull(t testing.TB, ref string) v1.Image {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	check(t, err)
	image, err := remote.Image(parsed, remote.WithContext(t.Context()))
	check(t, err)
	return image
}

// PushChart pushes a Helm chart as `helm push` does.
func PushChart(t testing.TB, ref, chart, version string) {
	t.Helper()
	content := static.NewLayer(Chart(t, chart, version), "application/vnd.cncf.helm.chart.content.v1.tar+gzip")
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{Layer: content})
	check(t, err)
	push(t, ref, mutate.ConfigMediaType(image, "application/vnd.cncf.helm.config.v1+json"))
}

func push(t testing.TB, ref string, image v1.Image) {
	t.Helper()
	parsed, err := name.ParseReference(ref)
	check(t, err)
	check(t, remote.Write(parsed, image, remote.WithContext(t.Context())))
}

// deployment is a template that makes a Deployment of the image in the values, and nothing if the values name no image. It fails for the
// image "none".
const deployment = `{{- if eq (default "" .Values.image) "none" }}{{ fail "an image has to be named" }}{{ end }}
{{- if .Values.image }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  {{- with .Values.replicas }}
  replicas: {{ . }}
  {{- end }}
  {{- with .Values.paused }}
  paused: {{ . }}
  {{- end }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: {{ .Values.image | quote }}}]
{{- end }}
`

// valuesSchema is the schema of the chart's values. It does not know the type of paused.
const valuesSchema = `{"type": "object", "properties": {
	"image": {"type": "string"}, "replicas": {"type": "integer", "minimum": 1, "description": "Number of pods."}}}`

// Chart returns the archive of a small Helm chart, which deploys the image that its values name.
func Chart(t testing.TB, chart, version string) []byte {
	t.Helper()
	return Archive(t, map[string]string{
		chart + "/Chart.yaml":                fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", chart, version),
		chart + "/values.schema.json":        valuesSchema,
		chart + "/templates/deployment.yaml": deployment,
	})
}

// Archive returns a .tar.gz of files, content by path.
func Archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	archive := tar.NewWriter(z)
	for path, content := range files {
		check(t, archive.WriteHeader(&tar.Header{Name: path, Size: int64(len(content)), Mode: 0o644}))
		_, err := io.WriteString(archive, content)
		check(t, err)
	}
	check(t, errors.Join(archive.Close(), z.Close()))
	return out.Bytes()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("bundletest: %v", err)
	}
}
