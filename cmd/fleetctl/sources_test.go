package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// inSources calls visit for each syntax node of the program's Go files below folders of the repository, tests left out. visit gets the
// node's position, and tells whether to go on with the nodes inside.
func inSources(t *testing.T, folders []string, visit func(at token.Position, n ast.Node) bool) {
	t.Helper()
	for _, top := range folders {
		err := filepath.WalkDir(filepath.Join("..", "..", top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool { return n != nil && visit(set.Position(n.Pos()), n) })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
