package validate

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// What a thousand Flux Kustomizations miss is read once: the files that nothing uses where a path is missing, and the base that all share.
func TestGapsShareWhatTheyRead(t *testing.T) {
	const kustomizations, most = 1000, 256 << 20
	var big strings.Builder // 2 MiB of objects
	for i := 0; big.Len() < 2<<20; i++ {
		fmt.Fprintf(&big, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d, namespace: default}\ndata: {a: %s}\n", i%5000,
			strings.Repeat("x", 200))
	}
	for name, tt := range map[string]struct {
		file    string
		overlay bool
	}{
		"missing paths": {"unused/big.yaml", false},
		"a broken base": {"base/big.yaml", true},
	} {
		t.Run(name, func(t *testing.T) {
			files, rendered := map[string]string{tt.file: big.String()}, &render.Result{Files: map[string]bool{}}
			if tt.overlay {
				files["base/kustomization.yaml"] = "resources: [big.yaml, none.yaml]\n"
			}
			for i := range kustomizations {
				path := fmt.Sprintf("apps/a%d", i)
				if tt.overlay {
					files[path+"/kustomization.yaml"] = fmt.Sprintf("nameSuffix: -%d\nresources: [../../base]\n", i)
				}
				rendered.Kustomizations = append(rendered.Kustomizations, &render.Kustomization{
					ManagementCluster: "mgmt", Path: path, Incomplete: true, Unbuilt: []string{path},
				})
			}
			tree, _, err := readTree(t.Context(), write(t, files), v1alpha1.Exclusion{})
			if err != nil {
				t.Fatal(err)
			}
			r := &run{tree: tree, rendered: rendered}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			all := r.gaps()
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("%d MiB are allocated, want %d at most", got>>20, most>>20)
			}
			if len(all) != kustomizations {
				t.Fatalf("%d gaps, want %d", len(all), kustomizations)
			}
			for _, g := range all {
				if !g.mayHave(place{mgmt: "mgmt"}, "default", "a77") || g.mayHave(place{mgmt: "mgmt"}, "default", "none-of-these") {
					t.Fatal("a gap has other names than its files")
				}
			}
		})
	}
}

// A gap that would be too large to be asked, or whose namespaces would be too many words, may have any object, or objects of any namespace.
func TestGapsBeyondTheBound(t *testing.T) {
	in := newReadings(&tree{})
	in.left, in.spare = 1, -1
	first, second := newGap("mgmt"), newGap("mgmt")
	for _, g := range []*gap{first, second} {
		g.reaches(nil)
		g.add(readingOf("metadata: {name: known, namespace: there}"))
		g.understand(in, false)
	}
	at := place{mgmt: "mgmt"}
	if first.mayHave(at, "there", "none") || !second.mayHave(at, "there", "none") {
		t.Error("only the second gap is beyond the bound")
	}
	r := &run{rendered: &render.Result{}}
	if r.place(in, first, &render.Kustomization{Path: "apps"}); !first.touches("elsewhere") {
		t.Error("nobody knows its namespaces")
	}
}
