package validate

import (
	"strings"
	"testing"
)

// Names that macOS or Windows takes for the same are reported once for each pair, at the file or at the first file of the second folder.
func TestSameNames(t *testing.T) {
	const object = "apiVersion: v1\nkind: Namespace\nmetadata: {name: same-%}\n"
	for name, test := range map[string]struct {
		add  []string
		file string // of the one finding; "" for none
		says string
	}{
		"case": {
			[]string{"infra/Prod.yaml", "infra/prod.yaml"}, "infra/prod.yaml", `"Prod.yaml" and "prod.yaml" in infra differ only in upper`,
		},
		"case beyond ASCII": {[]string{"infra/ÄÖ.yaml", "infra/äö.yaml"}, "infra/äö.yaml", "upper and lower case"},
		"the long s":        {[]string{"infra/prodſ.yaml", "infra/prods.yaml"}, "infra/prodſ.yaml", "upper and lower case"},
		"the form of Unicode": {
			[]string{"infra/caf\u00e9.yaml", "infra/cafe\u0301.yaml"}, "infra/caf\u00e9.yaml", `"cafe\u0301.yaml" and "caf\u00e9.yaml"`,
		},
		"both": {[]string{"infra/CAF\u00c9.yaml", "infra/cafe\u0301.yaml"}, "infra/cafe\u0301.yaml", "upper and lower case"},
		"folders": {
			[]string{"docs/Apps/a.yaml", "docs/apps/b/c.yaml", "docs/apps/b/d.yaml"}, "docs/apps/b/c.yaml", `"Apps" and "apps" in docs`,
		},
		"a folder and a file":  {[]string{"docs/Apps/a.yaml", "docs/apps"}, "docs/apps", "loses one"},
		"at the top":           {[]string{"NOTES.txt", "notes.txt"}, "notes.txt", "at the top of the repo"},
		"in different folders": {add: []string{"docs/a/X.yaml", "docs/b/x.yaml"}},
		"only alike":           {add: []string{"docs/x.yaml", "docs/x.yml", "docs/xı.yaml", "docs/xl.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := rawRepo()
			for i, path := range test.add {
				files[path] = strings.ReplaceAll(object, "%", string(rune('a'+i)))
			}
			found := ofRule(validate(t, files, knownKinds(t)).Findings, RuleSameName)
			switch {
			case test.file == "" && len(found) > 0:
				t.Errorf("findings: %v", found)
			case test.file != "" && (len(found) != 1 || found[0].File != test.file || !strings.Contains(found[0].Summary, test.says)):
				t.Errorf("findings: %v, want one of %q that says %q", found, test.file, test.says)
			}
		})
	}
}
