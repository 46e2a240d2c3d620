package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSequencesWithCRLF runs the same random commands in a clone with LF on disk, and in one in which Git writes CRLF, as Git for Windows
// does. Both end in the same way, and commit the same.
func TestSequencesWithCRLF(t *testing.T) {
	for seed := *firstOne; seed < *firstOne+*seeds; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			s := newSequence(t, uint64(seed))
			windows := s.withCRLF()
			for range 2 * *length { // nothing is validated after each of them
				s.nextInBoth(windows)
			}
		})
	}
}

// withCRLF is a clone of the repo with CRLF on disk.
func (s *sequence) withCRLF() *sequence {
	s.Helper()
	clone := &sequence{T: s.T, dir: filepath.Join(s.TempDir(), "fleet"), home: s.TempDir()}
	s.git("clone", "--quiet", "--config", "core.autocrlf=true", s.dir, clone.dir)
	clone.git("remote", "remove", "origin")
	clone.git("config", "user.name", "Sequence")
	clone.git("config", "user.email", "sequence@example.com")
	clone.git("config", "core.hooksPath", clone.home)
	return clone
}

// nextInBoth runs one more command in two clones.
func (s *sequence) nextInBoth(windows *sequence) {
	s.Helper()
	args := s.command()
	there := slices.Clone(args)
	mine, theirs := strings.Fields(s.git("rev-list", "HEAD")), strings.Fields(windows.git("rev-list", "HEAD"))
	for i, arg := range there {
		if at := slices.Index(mine, arg); at >= 0 {
			arg = theirs[at]
		}
		there[i] = strings.ReplaceAll(arg, s.dir, windows.dir)
	}
	line := strings.Join(args, " ")
	code, _, stderr := s.run(append(args, "--commit")...)
	codeThere, _, stderrThere := windows.run(append(there, "--commit")...)
	s.Logf("%d %s: %s", code, line, lastLine(stderr))
	if code != codeThere {
		s.fail("%s: exit %d\n%s\nwith CRLF: exit %d\n%s", line, code, stderr, codeThere, stderrThere)
	}
	if status := windows.git("status", "--porcelain"); status != "" {
		s.fail("%s: the work tree with CRLF has what is in no commit:\n%s", line, status)
	}
	if diff := cmp.Diff(s.committed(), windows.committed()); diff != "" {
		s.fail("%s: what is committed differs (-LF +CRLF)\n%s", line, diff)
	}
	if code == 0 {
		s.typed = append(s.typed, line)
	}
}

// committed lists the committed files with their contents' hashes, and the tags. A secret is encrypted to other bytes each time.
func (s *sequence) committed() []string {
	s.Helper()
	files := slices.DeleteFunc(strings.Split(s.git("ls-tree", "-r", "HEAD"), "\n"), func(line string) bool {
		return strings.HasSuffix(line, ".sops.yaml")
	})
	return append(files, strings.Fields(s.git("tag"))...)
}
