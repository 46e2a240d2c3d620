package validate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A rule that is declared and not listed would be no rule: people could not silence it, and `validate --rules` would not name it.
func TestEveryRuleIsListed(t *testing.T) {
	list, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := declaredRules(t)
	for _, name := range declared {
		if !strings.Contains(string(list), "ID: "+name+",") {
			t.Errorf("%s is declared, and is not in rules", name)
		}
	}
	if len(declared) != len(rules()) {
		t.Errorf("%d rules are declared, and rules has %d", len(declared), len(rules()))
	}
	ids := ruleIDs()
	slices.Sort(ids)
	if unique := slices.Compact(slices.Clone(ids)); len(unique) != len(ids) {
		t.Errorf("rules has a rule twice: %v", ids)
	}
}

// declaredRules are the names of the constants for rules in this package.
func declaredRules(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				for _, id := range s.(*ast.ValueSpec).Names { // a const group has nothing else
					if strings.HasPrefix(id.Name, "Rule") {
						names = append(names, id.Name)
					}
				}
			}
		}
	}
	return names
}
