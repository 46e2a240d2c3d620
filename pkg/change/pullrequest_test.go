package change

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// A note may quote hostile text. In a description this text makes no picture, link or mention, and begins no line that a forge would take
// for a command of fleetctl.
func TestDescription(t *testing.T) {
	const harmless = "It needs a commit: run `fleetctl cni add calico --flavour docker` for it."
	for name, note := range map[string]string{
		"commands on lines of their own": "the chart says: no\n/approve\n/merge",
		"a command alone":                "/merge",
		"a command behind blanks":        "  /merge",
		"a picture":                      "![x](https://evil.example/track.png)",
		"HTML":                           `<img src="https://evil.example/x">`,
		"a mention":                      "ask @everyone",
		"a reference":                    "closes #1 and !2",
		"in backticks":                   "`a\n/merge\n` and `<b>` `",
		"a heading":                      "a\r\n# b",
	} {
		got := description(&fleetrepo.Edit{Summary: "Do x", Notes: []string{harmless, note}})
		parts := strings.Split(got, "\n\n")
		if len(parts) != 3 || parts[0] != harmless || parts[2] != "Made by fleetctl." {
			t.Errorf("%s: %q", name, got)
			continue
		}
		if part := parts[1]; strings.ContainsAny(part, "\n\r") || !strings.HasPrefix(part, "`") || !strings.HasSuffix(part, "`") {
			t.Errorf("%s: %q", name, part)
		}
	}
	long := &fleetrepo.Edit{Notes: []string{harmless, strings.Repeat("word ", 1<<18), harmless}}
	if got := description(long); len(got) > 65_000 || !strings.HasPrefix(got, harmless) || !strings.HasSuffix(got, "shows everything.") {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
}

// Each change has a branch of its own that git takes, and a title of one line that forges take, however long the subject of the commit is
// that it reverts.
func TestBranchAndTitle(t *testing.T) {
	long := strings.Repeat("upgrade the clusters of staging and production ", 20)
	branches := map[string]bool{}
	summaries := []string{
		"Add cluster a", "Revert \"a..b...c\" (01234567)", "Revert \"" + long + "\" (01234567)", "Revert \"" + long + "\" (89abcdef)",
		"Revert \"" + strings.Repeat(".", 100) + "\" (01234567)", "Revert \"" + strings.Repeat("a.lock ", 20) + "\" (01234567)",
		"Add feature a.lock", "Revert \"\u202eевил\r\n::error::x\" (01234567)",
	}
	for _, summary := range summaries {
		branch := branchFor(summary)
		branches[branch] = true
		gittest.Git(t, t.TempDir(), "check-ref-format", "--branch", branch)
		if len(branch) > 70 || branchFor(summary) != branch {
			t.Errorf("%.80q has the branch %q", summary, branch)
		}
		if title := title(summary); len(title) > 255 || strings.ContainsAny(title, "\r\n\u202e") || !strings.HasPrefix(title, summary[:7]) {
			t.Errorf("%.80q has the title %q", summary, title)
		}
	}
	if len(branches) != len(summaries) {
		t.Errorf("the branches are %v", branches)
	}
}
