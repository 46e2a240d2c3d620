package checkup

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func TestCheckNames(t *testing.T) {
	if err := CheckNames([]string{"memory", "engine disk", Flux}); err != nil {
		t.Error(err)
	}
	for name, hint := range map[string]string{"memroy": "did you mean memory?", "nope": "the checks are: cgroups, clock"} {
		err := CheckNames([]string{"memory", name})
		if err == nil || diag.Code(err) != diag.ExitUsage || !strings.Contains(err.Error(), name) || !strings.HasPrefix(diag.Hint(err), hint) {
			t.Errorf("%s: got %v, hint %q", name, err, diag.Hint(err))
		}
	}
}

// The checks are made in many places: every literal with a name of its own, and every call of preflight.Disk, is in the list.
func TestEveryCheckIsNamed(t *testing.T) {
	found := 0
	note := func(expr ast.Expr) {
		literal, ok := expr.(*ast.BasicLit)
		if !ok {
			return
		}
		name, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if !slices.Contains(names, name) {
			t.Errorf("the list lacks %q", name)
		}
	}
	for _, dir := range []string{".", "../preflight"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Name" {
						note(n.Value)
					}
				case *ast.CallExpr:
					if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Disk" && len(n.Args) > 0 {
						note(n.Args[0])
					}
				}
				return true
			})
		}
	}
	if want := len(names) - len([]string{Fleet, Flux}); found < want {
		t.Errorf("found %d checks, and the list has %d", found, want)
	}
}
