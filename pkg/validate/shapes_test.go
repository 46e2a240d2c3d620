package validate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// meant are the rules that report something intended in these repos: kinds without their CRDs, older versions, objects from elsewhere, and
// clusters that Flux would delete with their file.
var meant = []string{RuleUnknownKind, RuleDeprecated, RuleForeign, RulePrune}

// Repos in the shapes that people give them are found valid.
func TestShapesOfRepos(t *testing.T) {
	archives, err := filepath.Glob("testdata/shapes/*.txtar")
	if err != nil || len(archives) < 10 {
		t.Fatalf("%d shapes (%v)", len(archives), err)
	}
	known := knownKinds(t)
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{}
			for _, f := range archive.Files {
				files[f.Name] = string(f.Data)
			}
			result := validate(t, files, known)
			for _, f := range result.Findings {
				unread := f.Rule == RuleVariable && f.Severity == diag.SeverityWarning // Secrets are never read
				if !slices.Contains(meant, f.Rule) && !unread {
					t.Errorf("%s: %s [%s] (%s)", f.Severity, f, f.Rule, f.Hint)
				}
			}
			if result.Objects < 4 {
				t.Errorf("%d objects", result.Objects)
			}
		})
	}
}
