package v1alpha1

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

func seed(f *testing.F, add func(content []byte)) {
	f.Helper()
	for _, pattern := range []string{"valid-*.yaml", "invalid-*.yaml"} {
		for _, file := range testFiles(f, pattern) {
			add(mustRead(f, file))
		}
	}
	add([]byte(edited))
}

// Whatever is in the file, Decode returns: a fleet that survives being written and read again, or findings with a place.
func FuzzDecode(f *testing.F) {
	seed(f, func(content []byte) { f.Add(content) })
	f.Fuzz(func(t *testing.T, content []byte) {
		fleet, err := Decode(FileName, content)
		if err != nil {
			if fleet != nil || err.Error() == "" {
				t.Fatalf("Decode = %v, %q", fleet, err)
			}
			return
		}
		text, err := Marshal(fleet)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(FileName, text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(fleet, again, sameFleet, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		SetDefaults(fleet, Defaults{FluxVersion: "v2.9.5", CAPIVersion: "v1.14.2"})
		if err := Validate(fleet).Err(); err != nil {
			t.Fatalf("defaults made it invalid: %v", err)
		}
	})
}

// Whatever the file, Set changes what it was asked to and keeps all bytes around it, or returns an error.
func FuzzSet(f *testing.F) {
	seed(f, func(content []byte) {
		f.Add(content, "spec.managementClusters[0].providers[0].version", "v1.2.3")
		f.Add(content, "spec.flux.version", "a: b")
	})
	f.Fuzz(func(t *testing.T, content []byte, path, value string) {
		got, err := Set(content, path, value)
		if err != nil {
			return
		}
		steps, err := yamledit.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := yamledit.Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		if n := yamledit.Find(documents[0], steps...); n == nil || n.Value != value {
			t.Fatalf("is %v; want %q", n, value)
		}
		prefix, suffix := 0, 0
		for prefix < min(len(content), len(got)) && content[prefix] == got[prefix] {
			prefix++
		}
		for suffix < min(len(content), len(got))-prefix && content[len(content)-1-suffix] == got[len(got)-1-suffix] {
			suffix++
		}
		if replaced := content[prefix : len(content)-suffix]; bytes.ContainsRune(replaced, '\n') {
			t.Fatalf("replaced several lines: %q", replaced)
		}
	})
}
