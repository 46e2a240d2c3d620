package v1alpha1

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sameFleet compares what users declare, but not the places in the file.
var sameFleet = cmpopts.IgnoreUnexported(Fleet{})

func testFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return files
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestInvalid(t *testing.T) {
	for _, file := range testFiles(t, "invalid-*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			fleet, err := Decode("fleet.yaml", mustRead(t, file))
			var findings diag.Findings
			if fleet != nil || !errors.As(err, &findings) {
				t.Fatalf("Decode = %v, %v", fleet, err)
			}
			var b strings.Builder
			for _, f := range findings {
				fmt.Fprintf(&b, "%s [%s %s]\n", f, f.Severity, f.Rule)
				if f.Hint != "" {
					fmt.Fprintf(&b, "  hint: %s\n", f.Hint)
				}
				if f.Line == 0 {
					t.Errorf("no line: %s", f)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is in the error:\n%v", err)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(mustRead(t, golden)), b.String()); diff != "" {
				t.Errorf("(-want +got; -update rewrites)\n%s", diff)
			}
		})
	}
}

func TestValid(t *testing.T) {
	for _, file := range testFiles(t, "valid-*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			fleet, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			if findings := Validate(fleet); len(findings) > 0 {
				t.Errorf("findings: %v", findings)
			}
			SetDefaults(fleet, Defaults{FluxVersion: "v2.9.5", CAPIVersion: "v1.14.2"})
			if findings := Validate(fleet); len(findings) > 0 {
				t.Errorf("findings after defaults: %v", findings)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, FileName))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(diag.Hint(err), "fleetctl init") {
		t.Errorf("missing file: %v, hint %q", err, diag.Hint(err))
	}
	if _, err := Load(dir); err == nil {
		t.Error("a folder was read as a fleet")
	}
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, []byte(strings.Repeat("#", maxBytes+1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("big file: %v", err)
	}
	if _, err := Decode("x", []byte("\xff\xfea\x00")); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("UTF-16: %v", err)
	}
}

// merges returns a mapping of n mappings. Each merges all earlier ones twice.
func merges(n int) string {
	text := "{a0: &a0 {a: 1}"
	for i := range n {
		text += fmt.Sprintf(", a%d: &a%d {<<: [*a%d, *a%d], b%d: {<<: *a%d}, c%d: *a%d}", i+1, i+1, i, i, i, i, i, i)
	}
	return text + "}"
}

// Hostile files are refused within the time and memory of a small machine.
func TestHostile(t *testing.T) {
	head := "apiVersion: fleetctl.dev/v1alpha1\nkind: Fleet\n"
	bomb := head + "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'z'; i++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", i-1), 10), ","))
	}
	used := strings.Replace(bomb, "a: &a", "metadata: {name: x}\nspec:\n  environments: &a", 1)
	for name, content := range map[string]string{
		"bomb":       bomb,
		"used bomb":  used,
		"deep flow":  head + "spec: " + strings.Repeat("[", 200_000),
		"deep block": head + "spec: " + strings.Repeat("- ", 200_000),
		"wide":       head + "spec: {environments: [" + strings.Repeat("{},", 150_000) + "]}",
		"commas":     head + "spec: [" + strings.Repeat("a,", 200_000) + "]",
		"long key":   head + strings.Repeat("k", 400_000) + ": 1",
		"itself":     head + "spec: &a {environments: [*a]}",
		"merges":     head + "spec: " + merges(40),
		"too deep":   head + "spec: " + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth),
		"documents":  head + strings.Repeat("---\n"+head, 5_000),
		"a number":   head + "spec: " + strings.Repeat("9", 400_000),
		"too large":  head + "# " + strings.Repeat("x", maxBytes),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Decode("fleet.yaml", []byte(content))
			_, locked := DecodeLock("fleet.lock", []byte(strings.ReplaceAll(content, "kind: Fleet\n", "kind: FleetLock\n")))
			runtime.ReadMemStats(&after)
			if err == nil || locked == nil {
				t.Errorf("accepted: %v, as a lock %v", err, locked)
			}
			if size := len(fmt.Sprint(err, locked)); size > 100_000 {
				t.Errorf("errors have %d bytes", size)
			}
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 512 {
				t.Errorf("%d MiB allocated", used)
			}
		})
	}
}

// The decoder handles all kinds of fields in the types of this package. A new kind must be added to the decoder.
func TestDecodeKnowsAllTypes(t *testing.T) {
	var check func(reflect.Type, string)
	check = func(rt reflect.Type, path string) {
		switch rt.Kind() {
		case reflect.Struct:
			for f := range rt.Fields() {
				if fieldName(f) != "" {
					check(f.Type, fieldPath(path, fieldName(f)))
				} else if f.IsExported() {
					t.Errorf("%s.%s has no json name", path, f.Name)
				}
			}
		case reflect.Slice, reflect.Pointer:
			check(rt.Elem(), path)
		case reflect.Map:
			if rt.Key().Kind() != reflect.String {
				t.Errorf("%s: decoder knows no keys of %s", path, rt.Key().Kind())
			}
			check(rt.Elem(), path)
		case reflect.String, reflect.Bool, reflect.Int:
		default:
			t.Errorf("%s: decoder knows no %s", path, rt.Kind())
		}
	}
	check(reflect.TypeFor[Fleet](), "")
}
