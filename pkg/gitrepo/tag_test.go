package gitrepo_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// A tag goes to the remote once, is never moved, and reaches who fetches, also into a shallow clone.
func TestTags(t *testing.T) {
	server := gittest.NewHTTPS(t, gittest.Options{})
	server.Seed(t, "main", map[string]string{"a": "1"})
	first := server.Seed(t, "main", map[string]string{"a": "2"})
	mine, err := gitrepo.Clone(t.Context(), server.URL, tokenAuth(server), "main", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	made, err := mine.Tag(t.Context(), "v0.1.0", first, "What is new\n\n- all of it")
	if err != nil || !made {
		t.Fatal(made, err)
	}
	if made, err = mine.Tag(t.Context(), "v0.1.0", first, "other words"); err != nil || made {
		t.Errorf("the very tag again: %t, %v", made, err)
	}
	for i, want := range []bool{true, false} {
		if pushed, err := mine.PushTag(t.Context(), tokenAuth(server), "v0.1.0"); err != nil || pushed != want {
			t.Errorf("push %d: %t, %v", i, pushed, err)
		}
	}
	second := server.Seed(t, "main", map[string]string{"b": "1"})
	theirs, err := gitrepo.Clone(t.Context(), server.URL, tokenAuth(server), "main", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if head, err := theirs.Fetch(t.Context(), tokenAuth(server)); err != nil || head != second {
		t.Errorf("fetch: %s, %v", head, err)
	}
	tags, err := theirs.Tags(t.Context())
	if diff := cmp.Diff([]gitrepo.Tag{{Name: "v0.1.0", Commit: first, Message: "What is new\n\n- all of it\n"}},
		tags); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	log, err := theirs.Log(t.Context(), second, first)
	if err != nil || len(log) != 1 || log[0].Subject != "seed" || !slices.Contains(log[0].Files, "b") {
		t.Errorf("log: %+v, %v", log, err)
	}
	if files, err := theirs.Differ(t.Context(), first, second); err != nil || cmp.Diff([]string{"b"}, files) != "" {
		t.Errorf("differ: %v, %v", files, err)
	}
	if _, err := theirs.Tag(t.Context(), "v0.1.0", second, "moved"); !errors.Is(err, gitrepo.ErrTagExists) {
		t.Errorf("a tag was moved: %v", err)
	}
	if _, err := theirs.Tag(t.Context(), "v1..0", second, "x"); diag.Code(err) != diag.ExitUsage {
		t.Errorf("a bad name: %v", err)
	}
	// Two people make the same tag: the second one is told.
	if _, err := theirs.Tag(t.Context(), "v0.2.0", second, "theirs"); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.PushTag(t.Context(), tokenAuth(server), "v0.2.0"); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Tag(t.Context(), "v0.2.0", first, "mine"); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.PushTag(t.Context(), tokenAuth(server), "v0.2.0"); !errors.Is(err, gitrepo.ErrTagExists) ||
		!strings.Contains(diag.Hint(err), "git tag --delete v0.2.0") {
		t.Errorf("push over another tag: %v", err)
	}
	if _, err := mine.Fetch(t.Context(), tokenAuth(server)); !errors.Is(err, gitrepo.ErrTagExists) {
		t.Errorf("fetch over another tag: %v", err)
	}
	gittest.Git(t, server.Dir, "fsck", "--strict", "--no-dangling")
	whole(t, theirs.Dir())
}

// While a tag is on its way, another push of the name arrives first. Without a look at the remote, it would read like a lack of rights.
func TestTagsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		// update is what the server does before it takes the tag, which is $3.
		update string
		want   error
		says   string
	}{
		"the very same":      {`git update-ref "$1" "$3"`, nil, ""},
		"another one":        {`git update-ref "$1" "$3^{}"`, gitrepo.ErrTagExists, "v0.1.0"},
		"still on its way":   {`mkdir -p refs/tags && touch "$1.lock"`, nil, "another push of the tag v0.1.0 is under way"},
		"nobody is to do so": {`echo "not you" >&2; exit 1`, gitrepo.ErrNoPushRight, "not you"},
	} {
		t.Run(name, func(t *testing.T) {
			server := gittest.NewHTTPS(t, gittest.Options{})
			first := server.Seed(t, "main", map[string]string{"a": "1"})
			mine, err := gitrepo.Clone(t.Context(), server.URL, tokenAuth(server), "main", t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := mine.Tag(t.Context(), "v0.1.0", first, "mine"); err != nil {
				t.Fatal(err)
			}
			server.Hook(t, "update", c.update+"\n")
			_, err = mine.PushTag(t.Context(), tokenAuth(server), "v0.1.0")
			if c.want != nil && !errors.Is(err, c.want) || c.says == "" && err != nil ||
				c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v", err)
			}
			if c.want == nil && errors.Is(err, gitrepo.ErrNoPushRight) {
				t.Errorf("read as a lack of rights: %v", err)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	repo := initLocal(t)
	hash, _ := commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("1")})
	for _, revision := range []string{"HEAD", "main", hash, hash[:8]} {
		if got, err := repo.Resolve(revision); err != nil || got != hash {
			t.Errorf("%s: %s, %v", revision, got, err)
		}
	}
	if _, err := repo.Resolve("nothing"); !errors.Is(err, gitrepo.ErrNoRevision) {
		t.Errorf("got %v", err)
	}
}

func TestSigning(t *testing.T) {
	checkSigning(t, signers())
	repo := initLocal(t)
	gittest.Git(t, repo.Dir(), "config", "tag.gpgSign", "true")
	gittest.Git(t, repo.Dir(), "config", "gpg.format", "runes")
	hash, _ := commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("1")})
	if _, err := repo.Tag(t.Context(), "v0.1.0", hash, "x"); !errors.Is(err, gitrepo.ErrSigning) {
		t.Errorf("an unknown format: %v", err)
	}
}

// checkSigning checks that what git is configured to sign is signed, so that git itself finds the signature good; where that cannot be
// done nothing is made.
func checkSigning(t *testing.T, by map[string]func(t *testing.T, repo *gitrepo.Repo)) {
	t.Helper()
	for name, prepare := range by {
		t.Run(name, func(t *testing.T) {
			repo := initLocal(t)
			prepare(t, repo)
			t.Setenv("FLEETCTL_GIT_TOKEN", "s3cret")
			gittest.Git(t, repo.Dir(), "config", "commit.gpgSign", "true")
			hash, _ := commit(t, repo, gitrepo.Change{Path: "a", Content: []byte("1")})
			gittest.Git(t, repo.Dir(), "verify-commit", hash)
			if _, err := repo.Tag(t.Context(), "v0.1.0", hash, "signed"); err != nil {
				t.Fatal(err)
			}
			gittest.Git(t, repo.Dir(), "verify-tag", "v0.1.0")
			tags, err := repo.Tags(t.Context())
			if err != nil || len(tags) != 1 || !tags[0].Signed || tags[0].Message != "signed\n" {
				t.Errorf("%+v, %v", tags, err)
			}
			whole(t, repo.Dir())
			gittest.Git(t, repo.Dir(), "config", "user.signingKey", filepath.Join(t.TempDir(), "gone"))
			if _, err := repo.Tag(t.Context(), "v0.2.0", hash, "unsigned"); !errors.Is(err, gitrepo.ErrSigning) {
				t.Errorf("without the key: %v", err)
			}
			if _, _, err := repo.Commit(t.Context(), []gitrepo.Change{{Path: "b"}}, "unsigned", author); !errors.Is(err, gitrepo.ErrSigning) {
				t.Errorf("without the key: %v", err)
			}
			if tags, err := repo.Tags(t.Context()); err != nil || len(tags) != 1 {
				t.Errorf("an unsigned tag was made: %+v, %v", tags, err)
			}
		})
	}
}
