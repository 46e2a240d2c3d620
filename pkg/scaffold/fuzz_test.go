package scaffold

import (
	"bytes"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// People edit gotk-sync.yaml. Whatever is in it, clusters get one GitRepository, which has the meaning of the first one in the file.
func FuzzSourceOf(f *testing.F) {
	f.Add([]byte("# made by flux\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository # ours\nmetadata: {name: flux-system, " +
		"namespace: flux-system}\nspec:\n  url: ssh://git@host/fleet\n  ref: &r {branch: main}\n---\napiVersion: " +
		"kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"))
	f.Add([]byte("kind: GitRepository\nspec: {a: &a [1], b: *a, <<: {c: d}}\n# the end\n"))
	f.Add([]byte("kind: 'GitRepository'\na: |\n  b\n\n"))
	f.Add([]byte("- kind: GitRepository\n"))
	f.Add([]byte("kind: &k GitRepository\n---\nkind: *k\n"))
	f.Add([]byte("d: &k GitRepository\n---\nkind: *k"))
	f.Fuzz(func(t *testing.T, sync []byte) {
		source, err := SourceOf(sync)
		if err != nil {
			return
		}
		if bytes.Count(source, []byte("GitRepository")) < 1 {
			t.Fatalf("no GitRepository in %q", source)
		}
		documents, err := yamledit.Parse(source)
		if err != nil || len(documents) != 1 {
			t.Fatalf("%d documents, %v in %q", len(documents), err, source)
		}
		for _, d := range documentsOf(t, sync) {
			if kind := yamledit.Lookup(d, "kind"); kind == nil || kind.Value != "GitRepository" {
				continue
			}
			if want, got := meaning(t, d), meaning(t, documents[0]); want != got {
				t.Errorf("it means %s, not %s", got, want)
			}
			return
		}
		t.Error("there was none")
	})
}

func documentsOf(t *testing.T, src []byte) []*yaml.Node {
	t.Helper()
	documents, err := yamledit.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// meaning returns a document without its anchors, comments and quotes; "" if it cannot be decoded.
func meaning(t *testing.T, n *yaml.Node) string {
	t.Helper()
	var value any
	if err := n.Decode(&value); err != nil {
		return ""
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
