// Package gittest runs real Git servers for tests: git http-backend behind TLS with a token, and git behind SSH. They are ended with the
// test, and need no program but git. Only NewOpenSSH needs sshd. Neither is optional: where it is missing the test fails and says what to
// install.
package gittest

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Options say where a server listens and what it has. The zero value is an empty repository on the loopback address.
type Options struct {
	// Listen is the address to bind, host:port. Default: 127.0.0.1:0. Bind a bridge's address for clients in containers.
	Listen string
	// Host is the name or address that clients use; it is in the URL and the certificate. Default: the one of Listen.
	Host string
	// Dir is the folder that the bare repository is made in. Default: a temporary one.
	Dir string
	// Branch is what HEAD of the repository points to. Default: main.
	Branch string
	// Protected are branches that a pre-receive hook refuses all updates of.
	Protected []string
	// API answers below /api/, given the token that may write: then the repository stands below an owner, as on a forge.
	API func(token string) http.Handler
}

// Repo is a bare repository on disk.
type Repo struct{ Dir string }

func (o Options) withDefaults(t testing.TB) Options {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Host == "" {
		host, _, err := net.SplitHostPort(o.Listen)
		if err != nil {
			t.Fatalf("gittest: %v", err)
		}
		o.Host = host
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Branch == "" {
		o.Branch = "main"
	}
	return o
}

// NewRepo makes a bare repository called fleet.git.
func NewRepo(t testing.TB, opts Options) *Repo {
	t.Helper()
	opts = opts.withDefaults(t)
	r := &Repo{Dir: filepath.Join(opts.Dir, "fleet.git")}
	Git(t, opts.Dir, "init", "--quiet", "--bare", "--initial-branch", opts.Branch, r.Dir)
	Git(t, r.Dir, "config", "http.receivepack", "true")
	Git(t, r.Dir, "config", "receive.fsckObjects", "true") // as Git hosters have it
	r.Protect(t, opts.Protected...)
	return r
}

// Protect makes a pre-receive hook that refuses all updates of these branches, as Git hosters' hooks do it.
func (r *Repo) Protect(t testing.TB, branches ...string) {
	t.Helper()
	if len(branches) == 0 {
		return
	}
	var cases strings.Builder
	for _, b := range branches {
		cases.WriteString("refs/heads/" + b + ") echo \"GL-HOOK-ERR: you are not allowed to push to protected branches\" >&2; exit 1;;\n")
	}
	r.Hook(t, "pre-receive", "while read -r old new ref; do case $ref in\n"+cases.String()+"esac; done\n")
}

// Hook installs a shell script as a hook of the repository.
func (r *Repo) Hook(t testing.TB, name, script string) {
	t.Helper()
	path := filepath.Join(r.Dir, "hooks", name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatalf("gittest: %v", err)
	}
}

// Seed commits files (path → content) to a branch, from a clone of its own, and returns the commit. It goes around the hooks.
func (r *Repo) Seed(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	work := t.TempDir()
	Git(t, work, "init", "--quiet", "--initial-branch", branch)
	Git(t, work, "remote", "add", "origin", r.Dir)
	if strings.Contains(Git(t, r.Dir, "for-each-ref", "--format=%(refname)"), "refs/heads/"+branch+"\n") {
		Git(t, work, "pull", "--quiet", "origin", branch)
	}
	for name, content := range files {
		path := filepath.Join(work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("gittest: %v", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatalf("gittest: %v", err)
		}
	}
	Git(t, work, "add", "--all")
	Git(t, work, "commit", "--quiet", "--message", "seed")
	Git(t, r.Dir, "-c", "core.hooksPath=/dev/null", "fetch", "--quiet", work, branch+":"+branch)
	return r.Head(t, branch)
}

// Head is the commit of a branch; "" if there is no such branch.
func (r *Repo) Head(t testing.TB, branch string) string {
	t.Helper()
	return strings.TrimSpace(Git(t, r.Dir, "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch))
}

// File is the content of a file at a branch.
func (r *Repo) File(t testing.TB, branch, path string) string {
	t.Helper()
	return Git(t, r.Dir, "cat-file", "blob", "refs/heads/"+branch+":"+path)
}

// Git runs git in dir, away from the user's configuration, and returns its standard output. It fails the test if git does.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	path := Require(t, "git", "git")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args...) // also in a Cleanup
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), Environment()...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// Environment makes git independent of the user's configuration, and gives it a name to commit by.
func Environment() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Somebody", "GIT_AUTHOR_EMAIL=somebody@example.com",
		"GIT_COMMITTER_NAME=Somebody", "GIT_COMMITTER_EMAIL=somebody@example.com",
	}
}

// Require returns the path of a program, or fails the test naming the Debian package that has it. Unlike PATH, it looks where
// daemons are.
func Require(t testing.TB, program, debianPackage string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/libexec"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	t.Fatalf("gittest: %s is missing; install it: apt-get install -y %s", program, debianPackage)
	return ""
}
