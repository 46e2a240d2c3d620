package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render/rendertest"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

var (
	seeds    = flag.Int("seeds", 2, "how many random sequences of commands are run")
	firstOne = flag.Int("first", 0, "the first seed of them")
	length   = flag.Int("length", 8, "how many commands each of them has")
)

// TestSequences runs random sequences of all commands that change a fleet repo: on a fleet as its first command leaves it, and on random
// ones in the hands of people; with a channel of tags and without, with a remote and without. Whatever came before, a command either
// commits a state that validates and renders, or says what is wrong and leaves every byte as it is. Taking the commits back, the newest
// first, gives the bytes back.
func TestSequences(t *testing.T) {
	for seed := *firstOne; seed < *firstOne+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s := newSequence(t, uint64(seed))
			for range *length {
				s.next()
			}
			s.undo()
		})
	}
}

// sequence is a fleet repo that random commands are run on.
type sequence struct {
	*testing.T
	*rand.Rand
	dir, home string
	// typed are the commands that changed something, states what the repo was before each of them.
	typed  []string
	states []map[string]string
	remote *gittest.HTTPS // nil for none
}

func newSequence(t *testing.T, seed uint64) *sequence {
	t.Helper()
	s := &sequence{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), dir: filepath.Join(t.TempDir(), "fleet"), home: t.TempDir()}
	if seed%2 == 0 {
		s.scaffolded()
	} else {
		random, err := rendertest.Random(seed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := random.Changes().Apply(s.dir); err != nil {
			t.Fatal(err)
		}
		s.git("init", "--quiet", "--initial-branch", "main")
	}
	s.git("config", "user.name", "Sequence")
	s.git("config", "user.email", "sequence@example.com")
	s.git("config", "core.hooksPath", s.home)
	s.git("add", "--all")
	s.git("commit", "--quiet", "--allow-empty", "--message", "Begin")
	if s.remote != nil {
		s.git("push", "--quiet", s.remote.Dir, "main")
		s.git("fetch", "--quiet", s.remote.Dir, "main:refs/remotes/origin/main")
		s.git("branch", "--quiet", "--set-upstream-to", "origin/main")
	}
	s.valid("as it begins")
	return s
}

// scaffolded makes the fleet that `init` does; every third of them is on a Git server.
func (s *sequence) scaffolded() {
	s.Helper()
	args := []string{"init", "--scaffold", "--host", "embedded", "--kubernetes-version", "v1.35.2", "--provider", "docker"}
	for _, cloud := range []string{"aws", "azure", "vsphere"} {
		if s.chance(30) {
			args = append(args, "--provider", cloud)
		}
	}
	if s.chance(35) {
		s.remote = gittest.NewHTTPS(s.T, gittest.Options{})
		if err := errors.Join(os.Mkdir(s.dir, 0o755), os.WriteFile(filepath.Join(s.dir, "ca.pem"), s.remote.CA, 0o600),
			os.WriteFile(s.token(), []byte(s.remote.Token), 0o600)); err != nil {
			s.Fatal(err)
		}
		args = append(args, "--git-url", s.remote.URL, "--git-ca-file", filepath.Join(s.dir, "ca.pem"))
	}
	s.must(args...)
	initialised(s.T, s.dir, layout.Layout{Cloud: "docker", Generation: "v1"}, "dev")
}

// token is the file with what the Git server asks for.
func (s *sequence) token() string { return filepath.Join(s.home, "token") }

// carried are the flags by which a change is carried to Git.
func (s *sequence) carried() []string {
	if s.remote == nil {
		return []string{"--commit"}
	}
	return []string{"--push", "--git-token-file", s.token()}
}

func (s *sequence) chance(percent int) bool { return s.IntN(100) < percent }

func (s *sequence) one(of ...string) string {
	if len(of) == 0 {
		return "nothing"
	}
	return of[s.IntN(len(of))]
}

func (s *sequence) git(args ...string) string {
	s.Helper()
	out, err := exec.CommandContext(s.Context(), "git", append([]string{"-C", s.dir}, args...)...).CombinedOutput()
	if err != nil {
		s.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// run runs a command as its user does.
func (s *sequence) run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	args = append(slices.Clone(args), "-C", s.dir, "--state-dir", filepath.Join(s.home, "state"), "--cache-dir",
		filepath.Join(s.home, "cache"), "--no-color")
	code = cmd.Main(s.Context(), ui.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, args)
	return code, out.String(), errs.String()
}

func (s *sequence) must(args ...string) string {
	s.Helper()
	code, stdout, stderr := s.run(args...)
	if code != 0 {
		s.fail("fleetctl %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// fail says after which commands.
func (s *sequence) fail(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s\nafter\n  %s", fmt.Sprintf(format, args...), strings.Join(s.typed, "\n  "))
}

// files are the files of the repo, and the folders, which Git does not keep.
func (s *sequence) files() map[string]string {
	s.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(s.dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git":
			return fs.SkipDir
		case entry.IsDir():
			files[name+"/"] = ""
			return nil
		}
		content, err := os.ReadFile(name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return files
}

// valid fails the test unless the repo validates and renders.
func (s *sequence) valid(when string) {
	s.Helper()
	if code, stdout, stderr := s.run("validate", "--offline"); code != 0 {
		s.fail("%s: validate: exit %d\n%s%s", when, code, stdout, stderr)
	}
	if code, stdout, stderr := s.run("render"); code != 0 {
		s.fail("%s: render: exit %d\n%s%s", when, code, stdout[max(0, len(stdout)-2000):], stderr)
	}
}

// next runs one more command.
func (s *sequence) next() {
	args := s.command()
	tags := s.git("tag")
	before, head := s.files(), s.git("rev-parse", "HEAD")
	args = append(args, s.carried()...)
	line := strings.Join(args, " ")
	code, _, stderr := s.run(args...)
	after := s.files()
	s.Logf("%d %s: %s", code, line, lastLine(stderr))
	if status := s.git("status", "--porcelain"); status != "" {
		s.fail("%s: exit %d, and the work tree has what is in no commit:\n%s\n%s", line, code, status, stderr)
	}
	switch {
	case code == 0 && maps.Equal(before, after):
		return
	case code == 0:
		s.typed, s.states = append(s.typed, line), append(s.states, before)
		s.valid(line)
	case code != diag.ExitUsage && code != diag.ExitFailure && code != diag.ExitNotReady:
		s.fail("%s: exit %d\n%s", line, code, stderr)
	default:
		if diff := cmp.Diff(before, after); diff != "" || s.git("rev-parse", "HEAD") != head || s.git("tag") != tags {
			s.fail("%s: exit %d, and something is written (-want +got)\n%s\n%s", line, code, diff, stderr)
		}
	}
}

// undo takes everything back, the newest commit first.
func (s *sequence) undo() {
	for commit := range strings.FieldsSeq(s.git("rev-list", fmt.Sprintf("HEAD~%d..HEAD", len(s.states)))) {
		last := len(s.states) - 1
		if code, _, stderr := s.run(append([]string{"revert", commit}, s.carried()...)...); code != 0 {
			s.fail("revert what the last of these did: exit %d\n%s", code, stderr)
		}
		if diff := cmp.Diff(s.states[last], s.files()); diff != "" {
			s.fail("the last of these was reverted (-want +got)\n%s", diff)
		}
		s.typed, s.states = s.typed[:last], s.states[:last]
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-2):], " | ")
}
