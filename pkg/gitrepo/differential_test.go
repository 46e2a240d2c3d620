package gitrepo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// sandbox writes the configuration of git for a test, which both git and gitrepo read.
func sandbox(t *testing.T, config string) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, ".gitconfig")
	if err := os.WriteFile(file, []byte(config+unattended), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("GIT_CONFIG_GLOBAL", file)
}

// run runs git with the configuration of the sandbox.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := try(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func try(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), gittest.Require(t, "git", "git"), args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return stdout.String() + stderr.String(), err
}

const tess = "[user]\n\tname = Tess\n\temail = tess@example.com\n"

// pick returns one of several values.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// numbered returns n lines.
func numbered(n int, eol string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d%s", i, eol)
	}
	return b.String()
}

func utf16le(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return string(out)
}

// attributeLines are lines as in the .gitattributes of fleet repos.
var attributeLines = []string{
	"* text=auto", "*.yaml text", "*.yaml eol=crlf", "*.yaml text eol=lf", "*.yaml -text", "*.yaml binary", "*.yaml text=auto eol=crlf",
	"*.yaml filter=upper", "*.yaml working-tree-encoding=UTF-16LE-BOM", "*.yaml ident", "*.yaml crlf=input", "a/*.yaml eol=crlf", "a/** -text",
	"/top.yaml text eol=crlf", "*.md filter=upper", "b/*.yaml !text", "*.yaml filter=upper text eol=crlf",
	"[attr]mine text eol=crlf\n*.yaml mine",
}

// With any attributes and configuration, a commit, and the file on disk after it, equal those of `git add` and `git commit` with the same
// edit, and git finds no change afterwards. The test tries many combinations of conversions, but not all. It prints its seed.
func TestCommitAsGitDoes(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			config := tess + fmt.Sprintf("[core]\n\tautocrlf = %s\n", pick(r, "false", "true", "input")) +
				pick(r, "", "\teol = lf\n", "\teol = crlf\n")
			config += "[filter \"upper\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired = true\n"
			sandbox(t, config)
			dir, twin := t.TempDir(), t.TempDir()
			name := pick(r, "top.yaml", "a/x.yaml", "b/c/y.yaml")
			var said []string
			for range r.IntN(3) {
				said = append(said, pick(r, attributeLines...))
			}
			attributes := strings.Join(said, "\n") + "\n"
			t.Logf("%q\n%s", attributes, config)
			was := numbered(5, pick(r, "\n", "\r\n")) + pick(r, "", "$Id$\n", "# ä\n")
			for _, d := range []string{dir, twin} {
				run(t, d, "init", "-q", "-b", "main")
				write(t, d, name, was)
				run(t, d, "-c", "core.autocrlf=false", "add", name) // as somebody without the attributes has committed it
				write(t, d, ".gitattributes", attributes)
				run(t, d, "-c", "core.autocrlf=false", "add", ".gitattributes")
				run(t, d, "-c", "core.autocrlf=false", "commit", "-q", "-m", "first")
				if err := os.Remove(filepath.Join(d, filepath.FromSlash(name))); err != nil {
					t.Fatal(err)
				}
				if out, err := try(t, d, "checkout", "-f", "HEAD", "--", name); err != nil {
					t.Logf("git cannot check this out: %s", out)
					return
				}
			}
			repo, err := gitrepo.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			edit := func(content string) string { return strings.Replace(content, "3", "three", 1) }
			root, remove, err := repo.Copy(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			content := edit(read(t, root, name))
			if err := remove(); err != nil {
				t.Fatal(err)
			}
			_, _, err = repo.Commit(t.Context(), []gitrepo.Change{{Path: name, Content: []byte(content)}}, "edit", gitrepo.Author{})
			if strings.Contains(attributes, "filter=upper") && strings.Contains(attributes, "encoding") && errors.Is(err, gitrepo.ErrConversion) {
				return // a filter has made this UTF-16, which people do not edit
			}
			if err != nil {
				t.Fatal(err)
			}
			// The same by hand.
			onDisk := read(t, twin, name)
			if strings.HasPrefix(onDisk, "\xff\xfe") {
				onDisk = strings.Replace(onDisk, "3\x00", utf16le("three")[2:], 1)
			} else {
				onDisk = edit(onDisk)
			}
			write(t, twin, name, onDisk)
			run(t, twin, "commit", "-q", "-a", "-m", "edit")
			if got, want := run(t, dir, "rev-parse", "HEAD^{tree}"), run(t, twin, "rev-parse", "HEAD^{tree}"); got != want {
				t.Errorf("commit has %q, git makes %q", run(t, dir, "cat-file", "blob", "HEAD:"+name), run(t, twin, "cat-file", "blob", "HEAD:"+name))
			}
			if got, want := run(t, dir, "log", "-1", "--format=%an %ae %cn %ce"),
				run(t, twin, "log", "-1", "--format=%an %ae %cn %ce"); got != want {
				t.Errorf("by %s, git says %s", got, want)
			}
			run(t, twin, "rm", "-q", "--cached", name)
			run(t, twin, "checkout", "-f", "HEAD", "--", name)
			if got, want := read(t, dir, name), read(t, twin, name); got != want {
				t.Errorf("on disk %q, git checks out %q", got, want)
			}
			if got, want := run(t, dir, "diff", "HEAD", "--stat"), run(t, twin, "diff", "HEAD", "--stat"); got != want {
				t.Errorf("git finds %s", got)
			}
		})
	}
}

// A commit has the requested changes and nothing else. A person's edits, staged, added and removed files stay as they were, even in the
// same file. If that is impossible, the error names the file and nothing has changed.
func TestCommitKeepsEdits(t *testing.T) {
	refused, merged := 0, 0
	for seed := range uint64(80) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			sandbox(t, tess)
			dir := t.TempDir()
			run(t, dir, "init", "-q", "-b", "main")
			eol := pick(r, "\n", "\r\n")
			names := []string{"one.yaml", "dir/two.yaml", "dir/three.yaml"}
			for _, n := range names {
				write(t, dir, n, numbered(40, eol))
			}
			run(t, dir, "add", ".")
			run(t, dir, "commit", "-q", "-m", "first")
			// Edits that a person has begun.
			mess := func(n string) {
				for range r.IntN(3) {
					write(t, dir, n, strings.Replace(read(t, dir, n), fmt.Sprintf("line %d%s", 10*r.IntN(4)+1, eol), "mine"+eol, 1))
					if r.IntN(2) == 0 {
						run(t, dir, "add", n)
					}
				}
			}
			for _, n := range names {
				mess(n)
			}
			write(t, dir, "untracked", "mine")
			write(t, dir, "added", "mine")
			run(t, dir, "add", "added")
			if r.IntN(3) == 0 {
				write(t, dir, "later", "mine")
				run(t, dir, "add", "-N", "later")
			}
			patches := func() (unstaged, staged, rest string) {
				strip := func(args ...string) string {
					var lines []string
					for line := range strings.Lines(run(t, dir, args...)) {
						if !strings.HasPrefix(line, "index ") && !strings.HasPrefix(line, "@@") {
							lines = append(lines, line)
						}
					}
					return strings.Join(lines, "")
				}
				return strip("diff", "-U0"), strip("diff", "-U0", "--cached"), run(t, dir, "status", "--porcelain")
			}
			unstaged, staged, before := patches()
			head := run(t, dir, "rev-parse", "HEAD")
			var changes []gitrepo.Change
			line := 10*r.IntN(4) + pick(r, 1, 2, 5, 6)
			for _, n := range names[:1+r.IntN(2)] {
				committed := run(t, dir, "show", "HEAD:"+n)
				changes = append(changes, gitrepo.Change{
					Path:    n,
					Content: []byte(strings.Replace(committed, fmt.Sprintf("line %d%s", line, eol), "ours"+eol, 1)),
				})
			}
			repo, err := gitrepo.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = repo.Commit(t.Context(), changes, "change", gitrepo.Author{})
			if dirty, ok := errors.AsType[*gitrepo.DirtyError](err); ok {
				refused++
				u, s, after := patches()
				if u != unstaged || s != staged || after != before || run(t, dir, "rev-parse", "HEAD") != head || len(dirty.Paths) == 0 {
					t.Errorf("refused (%v), and something has changed:\n%s\n%s", dirty, u, s)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if unstaged+staged != "" {
				merged++
			}
			shown := run(t, dir, "show", "--format=", "-U0", "HEAD")
			if n := strings.Count(shown, "\n+ours"); n != len(changes) || strings.Count(shown, "\n@@") != n || strings.Contains(shown, "mine") {
				t.Errorf("the commit has\n%s", shown)
			}
			u, s, after := patches()
			if u != unstaged || s != staged || after != before {
				t.Errorf("unstaged\n%s\nwas\n%s\nstaged\n%s\nwas\n%s\nstatus\n%s\nwas\n%s", u, unstaged, s, staged, after, before)
			}
			whole(t, dir)
		})
	}
	if refused == 0 || merged == 0 {
		t.Errorf("%d refused, %d merged: the cases prove nothing", refused, merged)
	}
}

// A commit has the author and the date that git would give it.
func TestAuthorAsGitSays(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		local  string
		env    map[string]string
		fails  bool
	}{
		"user":   {config: tess},
		"author": {config: tess + "[author]\n\tname = Ann\n[committer]\n\temail = c@example.com\n"},
		"environment": {config: tess, env: map[string]string{
			"GIT_AUTHOR_NAME": "Env", "GIT_AUTHOR_EMAIL": "env@example.com",
			"GIT_AUTHOR_DATE": "2020-02-03T04:05:06+0200",
		}},
		"raw date": {config: tess, env: map[string]string{
			"GIT_AUTHOR_DATE":    "@1234567890 -0330",
			"GIT_COMMITTER_DATE": "Fri, 13 Feb 2009 23:31:30 +0000",
		}},
		"committer":     {config: tess, env: map[string]string{"GIT_COMMITTER_NAME": "Com", "GIT_COMMITTER_EMAIL": "com@example.com"}},
		"crud":          {config: "[user]\n\tname = \" ,Tess <x>. \"\n\temail = <tess@example.com>\n"},
		"include":       {config: "[include]\n\tpath = more\n[user]\n\temail = late@example.com\n"},
		"include below": {config: tess + "[include]\n\tpath = ~/more\n"},
		"gitdir":        {config: tess + "[includeIf \"gitdir:**/fleet/.git\"]\n\tpath = more\n"},
		"gitdir folder": {config: tess + "[includeIf \"gitdir:fleet/\"]\n\tpath = more\n"},
		"other gitdir":  {config: tess + "[includeIf \"gitdir:~/clients/\"]\n\tpath = more\n"},
		"any case":      {config: tess + "[includeIf \"gitdir/i:FLEET/\"]\n\tpath = more\n"},
		"branch":        {config: tess + "[includeIf \"onbranch:ma*\"]\n\tpath = more\n"},
		"other branch":  {config: tess + "[includeIf \"onbranch:feature/\"]\n\tpath = more\n"},
		"remote": {
			config: tess + "[includeIf \"hasconfig:remote.*.url:https://example.com/**\"]\n\tpath = more\n",
			local:  "[remote \"origin\"]\n\turl = https://example.com/a/b.git\n",
		},
		"other remote": {
			config: tess + "[includeIf \"hasconfig:remote.*.url:https://example.org/**\"]\n\tpath = more\n",
			local:  "[remote \"origin\"]\n\turl = https://example.com/a/b.git\n",
		},
		"counted": {config: tess, env: map[string]string{
			"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "User.Name",
			"GIT_CONFIG_VALUE_0": "Counted",
		}},
		"local": {config: tess, local: "[user]\n\tname = Local\n"},
		"EMAIL": {config: "[user]\n\tname = Tess\n", env: map[string]string{"EMAIL": "mail@example.com"}},
		"useConfigOnly": {
			config: "[user]\n\tname = Tess\n\tuseConfigOnly = true\n",
			env:    map[string]string{"EMAIL": "mail@example.com"}, fails: true,
		},
		"no name":    {config: "[user]\n\temail = a@example.com\n\tuseConfigOnly = true\n", fails: true},
		"a bad date": {config: tess, env: map[string]string{"GIT_AUTHOR_DATE": "soon, I hope"}, fails: true},
	} {
		for _, installed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, git installed %v", name, installed), func(t *testing.T) {
				sandbox(t, c.config)
				home, _ := os.UserHomeDir()
				write(t, home, "more", "[user]\n\tname = More\n\temail = more@example.com\n")
				for key, value := range c.env {
					t.Setenv(key, value)
				}
				dir := filepath.Join(t.TempDir(), "fleet")
				twin := filepath.Join(t.TempDir(), "fleet")
				for _, d := range []string{dir, twin} {
					run(t, filepath.Dir(d), "init", "-q", "-b", "main", d)
					existing := read(t, d, ".git/config")
					write(t, d, ".git/config", existing+c.local)
				}
				write(t, twin, "file", "1")
				run(t, twin, "add", ".")
				_, gitErr := try(t, twin, "commit", "-q", "-m", "x")
				repo, err := gitrepo.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				path := os.Getenv("PATH")
				if !installed {
					t.Setenv("PATH", t.TempDir())
				}
				_, _, err = repo.Commit(t.Context(), []gitrepo.Change{{Path: "file", Content: []byte("1")}}, "x", gitrepo.Author{})
				t.Setenv("PATH", path)
				if c.fails {
					if err == nil || diag.Hint(err) == "" {
						t.Errorf("%v, without a hint", err)
					}
					return
				}
				if err != nil || gitErr != nil {
					t.Fatalf("%v; git %v", err, gitErr)
				}
				format := "--format=%an <%ae> %cn <%ce>"
				if c.env["GIT_AUTHOR_DATE"] != "" {
					format += " %ad"
				}
				if c.env["GIT_COMMITTER_DATE"] != "" {
					format += " %cd"
				}
				if got, want := run(t, dir, "log", "-1", format), run(t, twin, "log", "-1", format); got != want {
					t.Errorf("got %s, git says %s", got, want)
				}
			})
		}
	}
}

// Without git on the machine, line ends are as git would write them. A file that only git can convert is refused, and the error names it.
func TestCommitWithoutGit(t *testing.T) {
	for attributes, refused := range map[string]bool{
		"*.yaml eol=crlf": false, "* text=auto": false, "*.png filter=upper": false, "*.yaml filter=upper": true, "sub/*.yaml ident": false,
		"*.yaml working-tree-encoding=UTF-16": true, "/x.* filter=upper": true, "[attr]odd filter=upper\n\"x.yaml\" odd": true,
		"a/": false, "[": false,
	} {
		t.Run(attributes, func(t *testing.T) {
			sandbox(t, tess+"[filter \"upper\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n")
			dir := t.TempDir()
			run(t, dir, "init", "-q", "-b", "main")
			write(t, dir, ".gitattributes", attributes+"\n")
			run(t, dir, "add", ".")
			run(t, dir, "commit", "-q", "-m", "first")
			repo, err := gitrepo.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			path := os.Getenv("PATH")
			t.Setenv("PATH", t.TempDir())
			_, _, err = repo.Commit(t.Context(), []gitrepo.Change{{Path: "x.yaml", Content: []byte("a: 1\nb: 2\n")}}, "x", gitrepo.Author{})
			t.Setenv("PATH", path)
			if refused {
				if _, missing := os.Lstat(filepath.Join(dir, "x.yaml")); !errors.Is(err, gitrepo.ErrConversion) ||
					!strings.Contains(err.Error(), "x.yaml") || !errors.Is(missing, fs.ErrNotExist) {
					t.Errorf("%v; on disk %v", err, missing)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if out := run(t, dir, "status", "--porcelain"); out != "" {
				t.Errorf("git finds %s", out)
			}
			if out := run(t, dir, "cat-file", "blob", "HEAD:x.yaml"); out != "a: 1\nb: 2\n" {
				t.Errorf("committed %q", out)
			}
		})
	}
}

// A file whose filter encrypts it is not committed unencrypted if the filter is not set up on this machine.
func TestCommitUnknownFilter(t *testing.T) {
	sandbox(t, tess)
	dir := t.TempDir()
	run(t, dir, "init", "-q", "-b", "main")
	write(t, dir, ".gitattributes", "secret.yaml filter=git-crypt diff=git-crypt\n")
	run(t, dir, "add", ".")
	run(t, dir, "commit", "-q", "-m", "first")
	repo, err := gitrepo.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = repo.Commit(t.Context(), []gitrepo.Change{{Path: "secret.yaml", Content: []byte("password: x\n")}}, "x", gitrepo.Author{})
	if !errors.Is(err, gitrepo.ErrConversion) || !strings.Contains(err.Error(), "secret.yaml") || !strings.Contains(err.Error(), "git-crypt") {
		t.Errorf("error %v", err)
	}
	if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: "other.yaml", Content: []byte("a: 1\n")}}, "x",
		gitrepo.Author{}); err != nil {
		t.Errorf("another file: %v", err)
	}
}
