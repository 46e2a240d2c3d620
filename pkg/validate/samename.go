package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// checkNames reports names in one folder that macOS or Windows takes for the same: a clone there has one of the two, and a commit from this
// clone deletes or changes the other one. What is in two such folders lands in one there, and is not reported again.
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

// foldedName is the same for names that a file system may take for one: macOS ignores case and the form of Unicode, Windows ignores case.
// Upper case comes first because some characters, such as the long s, have no other way to the letter that they stand for.
func foldedName(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFD.String(name))))
}
