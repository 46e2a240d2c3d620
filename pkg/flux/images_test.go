package flux

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReleaseImagesAreThoseOfItsComponents(t *testing.T) {
	for _, registry := range []string{"", "registry.example/flux/"} {
		opts := ComponentsOptions{Version: "v2.9.5", Registry: registry, ManifestsBase: "testdata/base"}
		generated, err := GenerateComponents(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		release, err := ReadRelease(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		images, err := release.Images()
		if diff := cmp.Diff(generated.Images, images); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
		if release.Digest != generated.Digest {
			t.Errorf("digest %s, want %s", release.Digest, generated.Digest)
		}
	}
}

func TestPinFlux(t *testing.T) {
	c, err := GenerateComponents(t.Context(), ComponentsOptions{
		Version: "v2.9.5", Registry: "registry.example/flux/",
		ManifestsBase: "testdata/base",
	})
	if err != nil {
		t.Fatal(err)
	}
	released := bytes.Clone(c.Content)
	pins := map[string]string{}
	for _, image := range c.Images[1:] {
		pins[image.Name] = "sha256:" + image.Name
	}
	for range 2 { // a second time is as good as once
		c.Pin(pins)
	}
	for i, image := range c.Images {
		pinned, plain := "image: "+image.From+"@sha256:"+image.Name+"\n", "image: "+image.From+"\n"
		if bytes.Contains(c.Content, []byte(pinned)) != (i > 0) || bytes.Contains(c.Content, []byte(plain)) != (i == 0) {
			t.Errorf("%+v in\n%s", image, c.Content)
		}
		c.Content = bytes.ReplaceAll(c.Content, []byte(pinned), []byte(plain))
	}
	if diff := cmp.Diff(string(released), string(c.Content)); diff != "" {
		t.Errorf("it has changed something else:\n%s", diff)
	}
}
