package diag_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// Names of files, branches and remotes come from strangers, and people paste the commands in hints into their shell. So every such word is
// quoted (diag.ShellWord, diag.ShellCommand). The words of fleetctl's own commands are mostly names that were checked before.
func TestCommandsInHintsAreQuoted(t *testing.T) {
	joined := regexp.MustCompile("(?:[`\"=]|: |or |then )(?:git|kubectl|rm) (?:[^`\",]* )?\" ?\\+\\s*([\\w.]+)")
	formatted := regexp.MustCompile("`(?:git|kubectl|rm) (?:[^`\"]* )?%[sv]")
	checked := map[string]bool{ // their words are names that Kubernetes or fleetctl has checked
		"pkg/flux/pending.go": true, "pkg/fleetrepo/remove.go": true, "pkg/fleetrepo/repo.go": true,
	}
	files := 0
	sources := os.DirFS("../..")
	if err := fs.WalkDir(sources, "pkg", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		files++
		content, err := fs.ReadFile(sources, name)
		for i, line := range strings.Split(string(content), "\n") {
			found := joined.FindStringSubmatch(line)
			isQuoted := found == nil || strings.HasPrefix(found[1], "diag.Shell") || strings.Contains(line, `"git works `) // a sentence
			if (!isQuoted || formatted.MatchString(line)) && !checked[name] {
				t.Errorf("%s:%d: a word of a command is not quoted: %s", name, i+1, strings.TrimSpace(line))
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}
