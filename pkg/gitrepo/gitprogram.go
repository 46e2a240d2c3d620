package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrUntrusted says that git refuses to work in the repository: it belongs to another user, whose configuration and hooks would run here.
var ErrUntrusted = errors.New("git does not work in this repository")

// elsewhere are the environment variables that would make git use another repository than that of the folder, or another index. A hook that
// calls fleetctl has some of them in its environment.
var elsewhere = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX",
	"GIT_NAMESPACE", "GIT_QUARANTINE_PATH", "GIT_EDITOR",
}

// environment returns the environment of this process for git and for hooks, without the variables in elsewhere and without fleetctl's
// credentials.
func environment(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(elsewhere, name) || strings.HasPrefix(name, "FLEETCTL_")
	})
	return append(env, more...)
}

// gitProgram returns the path of this machine's git; "" if there is none. This package needs git only for a user's filters, and for
// settings that only git can read completely.
func gitProgram() string {
	path, err := exec.LookPath("git")
	if err != nil {
		return ""
	}
	return path
}

// runGit runs git in the repository, and returns its output. The error quotes git's message. runGit turns core.fsmonitor off: the answer of
// a monitor may be old, and reading the state of a repository must not run a program.
func (r *Repo) runGit(ctx context.Context, env []string, input []byte, args ...string) ([]byte, error) {
	var stdout bytes.Buffer
	var stderr speech
	git := userProgram{path: gitProgram(), dir: r.dir, input: input, stdout: &stdout, stderr: &stderr}
	git.args = append([]string{"-c", "core.fsmonitor=false"}, args...)
	git.env = environment(append([]string{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0"}, env...)...)
	if err := git.run(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if strings.Contains(stderr.String(), "safe.directory") { // git names this setting in every language
			return nil, r.untrusted(errors.New("it belongs to another user"))
		}
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, said(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// said returns the output of a program as one line. Of a long output it keeps the beginning and the end, where most programs print the
// error.
func said(text string) string {
	const most, begins = 2000, 600
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	joined := strings.Join(lines, "; ")
	if len(joined) > most {
		joined = strings.ToValidUTF8(joined[:begins], "") + " … " + strings.ToValidUTF8(joined[len(joined)-(most-begins):], "")
	}
	return joined
}

// untrusted returns the error for a repository in which git refuses to work.
func (r *Repo) untrusted(err error) error {
	return diag.Errorf("if you trust the owner of the folder: git config --global --add safe.directory "+diag.ShellWord(r.dir),
		"%w: %w", ErrUntrusted, err)
}
