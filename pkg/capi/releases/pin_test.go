package releases

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
)

const (
	firstDigest  = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	secondDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

func TestPin(t *testing.T) {
	docker, aws := Provider{Name: "docker", Type: Infrastructure, Version: "v1.14.2"},
		Provider{Name: "kubeadm", Type: Bootstrap, Version: "v1.14.2"}
	certs := "quay.io/jetstack/cert-manager-webhook:v1.11.5"
	for name, prefetched := range map[string]bool{"read before": true, "read after": false} {
		t.Run(name, func(t *testing.T) {
			source := newTestSource(t, SourceOptions{Repository: releasestest.Repository(t)})
			found, err := source.ImagesOf(t.Context(), docker)
			if err != nil || !slices.Equal(found, []string{"example.com/infrastructuredocker:v1"}) {
				t.Fatalf("images %v, %v", found, err)
			}
			if found, err := source.CertManagerImages(t.Context()); err != nil || !slices.Equal(found, []string{certs}) {
				t.Fatalf("images %v, %v", found, err)
			}
			if prefetched {
				if err := source.Prefetch(t.Context(), []Provider{docker, aws}); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // a second call changes nothing
				if err := source.Pin(map[string]string{found[0]: firstDigest, certs: secondDigest}); err != nil {
					t.Fatal(err)
				}
			}
			other, err := source.WithVariables(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, source := range []*Source{source, other} {
				rendered, err := source.Render(t.Context(), []Provider{docker, aws})
				if err != nil {
					t.Fatal(err)
				}
				var all bytes.Buffer
				for _, f := range rendered {
					all.Write(f.Content)
				}
				for _, want := range []string{
					"image: example.com/infrastructuredocker:v1@" + firstDigest + "\n", "image: " + certs + "@" + secondDigest + "\n",
					"image: example.com/bootstrapkubeadm:v1\n",
				} {
					if strings.Count(all.String(), want) != 1 {
						t.Errorf("%q is not in\n%s", want, all.String())
					}
				}
			}
		})
	}
}

// The images of a release are found without the values of its variables.
func TestImagesOfARelease(t *testing.T) {
	m := &Manifest{YAML: []byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec: {containers: [{image: "not:this"}]}
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: a}
spec:
  replicas: ${REPLICAS:=1}
  template:
    spec:
      initContainers: [{image: "a:1"}]
      containers: [{image: "${IMAGE:=b:1}"}, {image: "c:1@` + firstDigest + `"}]
--- # a remark
kind: CronJob
apiVersion: batch/v1
metadata: {name: d}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: "d:1"}, {image: "a:1"}]}}}}}
`)}
	found, err := m.images("it")
	if want := []string{"a:1", "c:1@" + firstDigest, "d:1"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("got %v, %v, want %v", found, err, want)
	}
}

func deploymentOf(images ...string) *unstructured.Unstructured {
	var containers []any
	for _, image := range images {
		containers = append(containers, map[string]any{"name": "c", "image": image})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": containers}}},
	}}
}

func TestSameImages(t *testing.T) {
	for _, test := range []struct {
		there, wanted string
		same, other   bool
	}{
		{"a:1", "a:1", true, false},
		{"a:1", "a:2", false, false}, // another version, which is not about digests
		{"a:1@" + firstDigest, "a:1@" + firstDigest, true, false},
		{"a:1@" + firstDigest, "a:1@" + secondDigest, false, true},
		{"a:1@" + firstDigest, "a:1", true, false},
		{"a:1", "a:1@" + firstDigest, true, false},
		{"mirror/a:1", "a:1@" + firstDigest, false, false}, // an image that somebody has chosen
	} {
		there, wanted := deploymentOf(test.there), deploymentOf(test.wanted)
		if got := SameImages(there, wanted); got != test.same {
			t.Errorf("%s instead of %s: the same is %v", test.there, test.wanted, got)
		}
		if got := OtherDigests(there, wanted); got != test.other {
			t.Errorf("%s instead of %s: another digest is %v", test.there, test.wanted, got)
		}
	}
	if OtherDigests(nil, deploymentOf("a:1")) {
		t.Error("what is not there runs nothing else")
	}
}
