package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
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

// For every file, Decode returns a fleet that is the same after it is written and read again, or findings with a place.
func FuzzDecode(f *testing.F) {
	seed(f, func(content []byte) { f.Add(content) })
	f.Fuzz(func(t *testing.T, content []byte) {
		fleet, err := Decode(FileName, content)
		if err != nil {
			if fleet != nil {
				t.Fatalf("Decode = %v, %q", fleet, err)
			}
			placed(t, content, err)
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

// lineBreak matches a line end of YAML.
var lineBreak = regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]")

// placed checks that every finding has its place in the file.
func placed(t *testing.T, content []byte, err error) {
	t.Helper()
	findings, ok := errors.AsType[diag.Findings](err)
	if !ok || len(findings) == 0 {
		t.Fatalf("%v names no place", err)
	}
	lines := lineBreak.Split(string(content), -1)
	for _, f := range findings {
		if f.File == "" || f.Line < 1 || f.Line > len(lines) || f.Column < 0 || f.Column > len(lines[f.Line-1])+1 || f.Summary == "" {
			t.Errorf("%v (line %d, column %d) is no place in %d lines", f, f.Line, f.Column, len(lines))
		}
	}
}

// For every file, DecodeLock returns a lock that is the same after it is written and read again, or findings with a place.
func FuzzLock(f *testing.F) {
	lock, err := MarshalLock(&Lock{
		Components: []LockedComponent{
			{Name: "flux", Type: ComponentFlux, Version: "v2.9.5", SHA256: digestB},
			{Name: "aws", Type: "infrastructure", Version: "v2.13.0", URL: "https://mirror.example.org/aws.yaml", SHA256: digestA},
		},
		Charts: []LockedChart{{Name: "docker", SHA256: digestA}, {Name: "aws-eks", Fleetctl: "v0.3.0", SHA256: digestB}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(lock)
	f.Add([]byte("apiVersion: fleetctl.dev/v1alpha1\nkind: FleetLock\ncomponents:\n- {name: aws, type: infrastructure, version: v1, " +
		"sha256: abc}\ncharts: []\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		lock, err := DecodeLock(LockFileName, content)
		if err != nil {
			placed(t, content, err)
			return
		}
		text, err := MarshalLock(lock)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeLock(LockFileName, text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		sorted := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
		if diff := cmp.Diff(lock, again, cmpopts.EquateEmpty(), sorted); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
		for _, c := range lock.Components {
			if err := again.Verify(c); err != nil {
				t.Error(err)
			}
		}
	})
}

// For every file, Set makes exactly the requested change and keeps all other bytes, or returns an error.
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
