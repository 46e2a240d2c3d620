package hosts

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every package that kinds makes hosts from holds them to the contract of all hosts, in one of its tests.
func TestEachKindIsHeldToTheContract(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "kinds.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, spec := range file.Imports {
		_, kind, ok := strings.Cut(strings.Trim(spec.Path.Value, `"`), "/pkg/host/")
		if !ok {
			continue
		}
		checked++
		if !callsContract(t, filepath.Join("..", "host", kind)) {
			t.Errorf("no test of pkg/host/%s calls hosttest.Run", kind)
		}
	}
	if checked == 0 {
		t.Error("kinds.go imports no package below pkg/host")
	}
}

func callsContract(t *testing.T, dir string) bool {
	t.Helper()
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tests {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "hosttest.Run(t,") {
			return true
		}
	}
	return false
}
