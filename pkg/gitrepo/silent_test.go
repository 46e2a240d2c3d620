package gitrepo_test

import (
	"crypto/rand"
	"errors"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// A server that was reached over ssh, and then stops in the middle, is given up by name: before its references, in place of a pack, while
// it is sent a pack, and in place of a report.
func TestSilentSSH(t *testing.T) {
	const patience = time.Second // that git starts well within
	noise := make([]byte, 8<<20) // more than a window of ssh
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	probe := func(t *testing.T, s *gittest.SSH, auth gitrepo.Auth) error {
		_, err := gitrepo.Probe(t.Context(), s.URL, auth, "main")
		return err
	}
	clone := func(t *testing.T, s *gittest.SSH, auth gitrepo.Auth) error {
		_, err := gitrepo.Clone(t.Context(), s.URL, auth, "main", t.TempDir())
		return err
	}
	advertise := func(t *testing.T, s *gittest.SSH, service string, session io.Writer) {
		git := exec.CommandContext(t.Context(), "git", service[len("git-"):], "--advertise-refs", s.Dir)
		git.Env = append(git.Environ(), gittest.Environment()...)
		git.Stdout = session
		if err := git.Run(); err != nil {
			t.Error(err)
		}
	}
	for name, tc := range map[string]struct {
		advertises bool
		do         func(t *testing.T, s *gittest.SSH, auth gitrepo.Auth) error
	}{"no references": {false, probe}, "no pack": {true, clone}} {
		t.Run(name, func(t *testing.T) {
			s := gittest.NewSSH(t, gittest.Options{})
			s.Seed(t, "main", map[string]string{"a": "1"})
			gone := make(chan struct{})
			s.Answer = func(service string, session io.ReadWriter) {
				if tc.advertises {
					advertise(t, s, service, session)
				}
				<-gone
			}
			gitrepo.SetSilence(t, patience)
			err := tc.do(t, s, sshAuth(t, s, false))
			close(gone)
			isSilent(t, err)
		})
	}
	for name, takes := range map[string]bool{"no report": true, "nothing is taken": false} {
		t.Run(name, func(t *testing.T) {
			s := gittest.NewSSH(t, gittest.Options{})
			s.Seed(t, "main", map[string]string{"a": "1"})
			gone := make(chan struct{})
			s.Answer = func(service string, session io.ReadWriter) {
				if service != "git-receive-pack" {
					git := exec.CommandContext(t.Context(), "git", "upload-pack", s.Dir)
					git.Env = append(git.Environ(), gittest.Environment()...)
					git.Stdout = session
					in, err := git.StdinPipe()
					if err != nil || git.Start() != nil {
						t.Error("git does not start", err)
						return
					}
					go func() { _, _ = io.Copy(in, session) }() // ends with the session
					_ = git.Wait()                              // the client judges what came
					return
				}
				advertise(t, s, service, session)
				if takes {
					_, _ = io.Copy(io.Discard, session)
				}
				<-gone
			}
			auth := sshAuth(t, s, false)
			repo, err := gitrepo.Clone(t.Context(), s.URL, auth, "main", t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			gitrepo.SetSilence(t, patience)
			_, err = repo.Sync(t.Context(), auth, put(gitrepo.Change{Path: "noise", Content: noise}), "m", gitrepo.Author{Name: "a", Email: "a@b.c"})
			close(gone)
			isSilent(t, err)
		})
	}
}

func isSilent(t *testing.T, err error) {
	t.Helper()
	if given, ok := errors.AsType[*contact.SilentError](err); !ok || given.Host != "127.0.0.1" {
		t.Errorf("the error is %v", err)
	}
}
