package bundle

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// An attacker who can move a tag can list the bundle's old image beside another image. An image counts as part of an index only if no other
// image of the index can run on its platform.
func TestPartOfAnIndex(t *testing.T) {
	r := newRegistry(t)
	mine, other := newImage(t, "amd64", "mine"), newImage(t, "amd64", "other")
	for name, tc := range map[string]struct {
		part  mutate.Appendable
		index []mutate.IndexAddendum
		want  bool
	}{
		"the only one":              {index: []mutate.IndexAddendum{on(mine, "linux", "amd64"), on(other, "linux", "arm64")}, want: true},
		"in other letters":          {index: []mutate.IndexAddendum{on(mine, "Linux", "x86_64"), on(other, "linux", "arm64")}, want: true},
		"beside another":            {index: []mutate.IndexAddendum{on(mine, "linux", "amd64"), on(other, "linux", "amd64")}},
		"beside one in other words": {index: []mutate.IndexAddendum{on(mine, "linux", "amd64"), on(other, "linux", "x86_64")}},
		"beside one in capitals":    {index: []mutate.IndexAddendum{on(mine, "linux", "amd64"), on(other, "Linux", "AMD64")}},
		"beside one of no platform": {index: []mutate.IndexAddendum{on(mine, "linux", "amd64"), {Add: other}}},
		"beside one of no system":   {index: []mutate.IndexAddendum{on(mine, "linux", "amd64"), on(other, "", "amd64")}},
		"put where nothing runs":    {index: []mutate.IndexAddendum{on(mine, "linux", "s390x"), on(other, "linux", "amd64")}},
		"put on another platform":   {index: []mutate.IndexAddendum{on(mine, "linux", "arm64"), on(other, "linux", "amd64")}},
		"twice":                     {index: []mutate.IndexAddendum{on(mine, "linux", "amd64"), on(mine, "linux", "amd64")}},
		"not there":                 {index: []mutate.IndexAddendum{on(other, "linux", "amd64")}},
		"an index":                  {part: indexOnly(other), index: []mutate.IndexAddendum{on(indexOnly(other), "linux", "amd64")}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.part == nil {
				tc.part = mine
			}
			digest, err := tc.part.Digest()
			must(t, err)
			if inner, ok := tc.part.(v1.ImageIndex); ok {
				r.push(t, "team/app:inner", inner)
			}
			found, err := Resolve(t.Context(), r.push(t, "team/app:v1", mutate.AppendManifests(empty.Index, tc.index...)), nil, digest.String())
			must(t, err)
			if got := found.Has(digest.String()); got != tc.want {
				t.Errorf("got %v: %+v", got, found)
			}
		})
	}
}

// An index is not an image, even if the outer index says so.
func TestPartThatIsAnIndex(t *testing.T) {
	r := newRegistry(t)
	inner := indexOnly(newImage(t, "amd64", "other"))
	digest, err := inner.Digest()
	must(t, err)
	pushed, err := name.ParseReference(r.push(t, "team/app:inner", inner))
	must(t, err)
	listed := []v1.Descriptor{{
		MediaType: types.OCIManifestSchema1, Digest: digest,
		Platform: &v1.Platform{OS: "linux", Architecture: "amd64"},
	}}
	if got, err := isPart(listed, pushed.Context(), digest.String(), remote.WithContext(t.Context())); got || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func on(img mutate.Appendable, system, architecture string) mutate.IndexAddendum {
	return mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: architecture}}}
}

func indexOnly(img v1.Image) v1.ImageIndex {
	return mutate.AppendManifests(empty.Index, on(img, "linux", "amd64"))
}
