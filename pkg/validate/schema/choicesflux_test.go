package schema

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const fluxModules = "github.com/fluxcd/"

// The choices of Flux's fields are those of the kubebuilder markers from which the CRDs of Flux are made, in both directions.
func TestFluxChoicesAreThoseOfItsCRDs(t *testing.T) {
	want := map[fieldOf][]string{}
	markers := map[string]map[string][]string{} // by package, and there by type, or by type and field
	for _, of := range fluxTypes(t) {
		for f := range of.Fields() {
			held := f.Type
			for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice}, held.Kind()) {
				held = held.Elem()
			}
			enum := markersOf(t, of.PkgPath(), markers)[of.Name()+"."+f.Name]
			if strings.HasPrefix(held.PkgPath(), fluxModules) && enum == nil {
				enum = markersOf(t, held.PkgPath(), markers)[held.Name()]
			}
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); enum != nil {
				want[fieldOf{of, name}] = enum
			}
		}
	}
	if len(want) < 40 {
		t.Errorf("only %d fields of Flux have choices", len(want))
	}
	got := maps.Clone(choices())
	maps.DeleteFunc(got, func(f fieldOf, _ []string) bool { return !strings.HasPrefix(f.of.PkgPath(), fluxModules) })
	for f, values := range want {
		if !slices.Equal(slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(got[f]))) {
			t.Errorf("%s.%s of %s: choices has %q, and the CRD %q", f.of, f.name, f.of.PkgPath(), got[f], values)
		}
		delete(got, f)
	}
	for f, values := range got {
		t.Errorf("%s.%s of %s: choices has %q, and no CRD of Flux has choices there", f.of, f.name, f.of.PkgPath(), values)
	}
}

// fluxTypes are the types of which the kinds of Flux consist, without what its controllers write.
func fluxTypes(t *testing.T) (all []reflect.Type) {
	t.Helper()
	known, err := types()
	if err != nil {
		t.Fatal(err)
	}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		for slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, of.Kind()) {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || !strings.HasPrefix(of.PkgPath(), fluxModules) || strings.HasSuffix(of.Name(), "Status") ||
			slices.Contains(all, of) {
			return
		}
		all = append(all, of)
		for f := range of.Fields() {
			walk(f.Type)
		}
	}
	for _, of := range known.AllKnownTypes() {
		walk(of)
	}
	return all
}

// markersOf returns the choices in the markers of a package's types and fields. read are those of the packages read before.
func markersOf(t *testing.T, pkg string, read map[string]map[string][]string) map[string][]string {
	t.Helper()
	if read[pkg] != nil {
		return read[pkg]
	}
	dir, err := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		t.Fatalf("%s: %v", pkg, err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no files (%v)", pkg, err)
	}
	out := map[string][]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if general, ok := d.(*ast.GenDecl); ok {
				addMarkers(out, general)
			}
		}
	}
	read[pkg] = out
	return out
}

func addMarkers(out map[string][]string, declared *ast.GenDecl) {
	for _, spec := range declared.Specs {
		of, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		for _, doc := range []*ast.CommentGroup{declared.Doc, of.Doc} {
			if values := enumIn(doc); values != nil {
				out[of.Name.Name] = values
			}
		}
		if fields, ok := of.Type.(*ast.StructType); ok {
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					if values := enumIn(field.Doc); values != nil {
						out[of.Name.Name+"."+name.Name] = values
					}
				}
			}
		}
	}
}

// enumIn returns the choices of the marker in a comment, or nil.
func enumIn(doc *ast.CommentGroup) []string {
	if doc == nil {
		return nil
	}
	for _, line := range doc.List {
		text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line.Text, "//")), "+kubebuilder:validation:Enum=")
		if !ok {
			continue
		}
		values := strings.Split(strings.TrimSuffix(text, ";"), ";")
		for i, value := range values {
			if plain, err := strconv.Unquote(value); err == nil {
				values[i] = plain
			}
		}
		return values
	}
	return nil
}
