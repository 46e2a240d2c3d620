package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkNames reports names in one folder that macOS or Windows takes for the same name. A clone there has only one of the two files, and a
// commit from this clone deletes or changes the other one. The content of two such folders lands in one folder there, and is not reported
// again.
func checkNames(t *tree) (findings diag.Findings) {
	for folder, names := range t.folders {
		first := map[string]string{}
		for _, name := range slices.Sorted(slices.Values(names)) {
			key := foldedName(name)
			other, taken := first[key]
			if !taken {
				first[key] = name
				continue
			}
			findings = append(findings, t.sameName(folder, other, name))
		}
	}
	return findings
}

// sameName is the finding about two names in a folder.
func (t *tree) sameName(folder, first, second string) diag.Finding {
	differ, one, other := "only in upper and lower case", fmt.Sprintf("%.80q", first), fmt.Sprintf("%.80q", second)
	if norm.NFC.String(first) == norm.NFC.String(second) {
		differ, one, other = "only in how Unicode writes a character", fmt.Sprintf("%+.80q", first), fmt.Sprintf("%+.80q", second)
	}
	where := "at the top of the repo"
	if folder != "." {
		where = "in " + folder
	}
	at := path.Join(folder, second)
	if files := t.below(at); len(files) > 0 {
		at = files[0].path
	}
	return finding(RuleSameName, at, 1, 0,
		fmt.Sprintf("the names %s and %s %s differ %s: a clone on macOS or Windows loses one of the two", one, other, where, differ),
		"rename one of the two with `git mv`, and correct what refers to the name")
}

// foldedName returns the same text for names that a file system may take for one name: macOS ignores case and the form of Unicode, Windows
// ignores case. It converts to upper case first, because some characters, such as the long s, become the usual letter only that way.
func foldedName(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFD.String(name))))
}
