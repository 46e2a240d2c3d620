package gitrepo_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// What Git ignores and does not track is found with the git program and without it: by every list of the repository, in folders of any
// depth, and never what the index has.
func TestIgnoredIn(t *testing.T) {
	for _, without := range []bool{false, true} {
		t.Run(map[bool]string{false: "with git", true: "without git"}[without], func(t *testing.T) {
			sandbox(t, "")
			repo := initLocal(t)
			files := []string{
				"age.key", "apps/a.yaml", "apps/kept.key", "apps/local.yaml", "apps/deep/er/x.key", "build/made.yaml", "build/in/made.yaml",
				"build/tracked.yaml", "new/n.yaml", "new/n.key", "infra/.terraform/m/main.yaml", "excluded.yaml", "a b\n.key",
				"inner/file.key", "fleet/clusters/x.yaml", "fleet/talosconfig.key",
			}
			for _, name := range files {
				write(t, repo.Dir(), name, "a: b\n")
			}
			gittest.Git(t, filepath.Join(repo.Dir(), "inner"), "init", "-q")
			write(t, repo.Dir(), ".gitignore", "# keys\n\n*.key\n!kept.key\n/build/\n.terraform/\n")
			write(t, repo.Dir(), "apps/.gitignore", "local.yaml\r\n")
			write(t, repo.Dir(), ".git/info/exclude", "excluded.yaml\n")
			gittest.Git(t, repo.Dir(), "add", ".gitignore", "apps/a.yaml")
			gittest.Git(t, repo.Dir(), "add", "-f", "build/tracked.yaml")
			if without {
				t.Setenv("PATH", t.TempDir())
			}
			want := []string{
				"a b\n.key", "age.key", "apps/deep/er/x.key", "apps/local.yaml", "build/in/made.yaml", "build/made.yaml", "excluded.yaml",
				"fleet/talosconfig.key", "infra/.terraform/m/main.yaml", "new/n.key",
			}
			names := gitrepo.IgnoredIn(t.Context(), repo.Dir())
			got := slices.DeleteFunc(slices.Sorted(slices.Values(files)), func(file string) bool { // a folder stands for its files
				return !slices.ContainsFunc(names, func(name string) bool { return file == name || strings.HasPrefix(file, name+"/") })
			})
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
			if got := gitrepo.IgnoredIn(t.Context(), filepath.Join(repo.Dir(), "fleet")); !slices.Equal(got, []string{"talosconfig.key"}) {
				t.Errorf("in a folder of the repository: %q", got)
			}
			// A fleet repo that somebody keeps in an ignored folder of another repository is there nevertheless.
			for _, dir := range []string{"build/in", "infra/.terraform/m"} {
				if got := gitrepo.IgnoredIn(t.Context(), filepath.Join(repo.Dir(), filepath.FromSlash(dir))); len(got) > 0 {
					t.Errorf("in the ignored folder %s: %q", dir, got)
				}
			}
		})
	}
	if got := gitrepo.IgnoredIn(t.Context(), t.TempDir()); len(got) > 0 {
		t.Errorf("outside of a repository: %q", got)
	}
}

// A hostile repository cannot have names held against patterns without an end.
func TestIgnoredInIsBounded(t *testing.T) {
	sandbox(t, "")
	repo := initLocal(t)
	write(t, repo.Dir(), ".gitignore", strings.Repeat("a*b*c*d\n", 100_000))
	for i := range 600 {
		write(t, repo.Dir(), "folder/"+strings.Repeat("x", i%50+1)+strings.Repeat("y", i/50+1), "")
	}
	t.Setenv("PATH", t.TempDir())
	if got := gitrepo.IgnoredIn(t.Context(), repo.Dir()); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}
