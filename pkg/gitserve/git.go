package gitserve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// ErrNoRepository means that the folder to serve is not a Git repository.
var ErrNoRepository = errors.New("not a git repository")

// The oldest git that speaks protocol version 2, and the hint where git is older or missing.
const (
	oldestMajor, oldestMinor = 2, 18
	installHint              = "install git 2.18 or newer (Debian, Ubuntu: apt-get install git; macOS: brew install git; Windows: winget " +
		"install Git.Git)"
)

// CheckGit returns an error if PATH has no git, or a git older than 2.18. The error has a hint how to install git.
func CheckGit(ctx context.Context) error {
	path, err := exec.LookPath("git")
	if err != nil {
		return diag.Wrap("look for git", err, installHint)
	}
	out, err := exec.CommandContext(ctx, path, "version").Output() //nolint:gosec // the git in PATH
	if err != nil {
		return diag.Wrap("ask git for its version", errors.Join(ctx.Err(), err), installHint)
	}
	major, minor, ok := parseVersion(string(out))
	if !ok {
		return diag.Errorf(installHint, "ask git for its version: %q is not one", strings.TrimSpace(string(out)))
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return diag.Errorf(installHint, "git %d.%d is too old", major, minor)
	}
	return nil
}

// parseVersion reads the output of git version, such as "git version 2.39.5 (Apple Git-154)".
func parseVersion(out string) (major, minor int, ok bool) {
	fields := strings.Fields(out)
	if len(fields) < 3 {
		return 0, 0, false
	}
	parts := strings.SplitN(fields[2], ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, majorErr := strconv.Atoi(parts[0])
	minor, minorErr := strconv.Atoi(parts[1])
	return major, minor, majorErr == nil && minorErr == nil
}

// gitDir finds what upload-pack serves: the .git of a working tree, or a bare repository itself.
func gitDir(repoDir string) (string, error) {
	dot := filepath.Join(repoDir, ".git")
	info, err := os.Stat(dot)
	switch {
	case err == nil && info.IsDir():
		return dot, nil
	case err == nil:
		return linkedDir(repoDir, dot)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(repoDir, name)); err != nil {
			return "", fmt.Errorf("%w: %s", ErrNoRepository, repoDir)
		}
	}
	return repoDir, nil
}

// maxPointer bounds the .git file of a linked working tree, which holds one path.
const maxPointer = 64 << 10

// linkedDir follows the .git file of a linked working tree.
func linkedDir(repoDir, dot string) (string, error) {
	content, err := within.Named(dot, maxPointer)
	if err != nil {
		return "", err
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(content)), "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrNoRepository, repoDir)
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(repoDir, target)
	}
	return target, nil
}

// uploadPack is the command that answers one request on the repository.
func uploadPack(ctx context.Context, dir string, protocol int, advertise bool) *exec.Cmd {
	args := []string{
		// The user has named this folder, so git may serve it although another user may own it.
		"-c", "safe.directory=" + dir,
		// The repository's configuration must not make git run programs. Git never reads the pack-objects hook from there.
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false",
		// The user's stash is not part of the fleet.
		"-c", "transfer.hideRefs=refs/stash",
		"upload-pack", "--strict", "--stateless-rpc",
	}
	if advertise {
		args = append(args, "--advertise-refs")
	}
	cmd := exec.CommandContext(ctx, "git", append(args, dir)...) //nolint:gosec // dir is the folder that the user serves
	cmd.Env = environment(protocol)
	cmd.WaitDelay = killDelay
	ownGroup(cmd)
	return cmd
}

// environment is git's whole environment. It turns off the user's and the system's configuration, and passes on no GIT_ variable.
func environment(protocol int) []string {
	env := []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + os.DevNull, "XDG_CONFIG_HOME=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "LC_ALL=C",
	}
	for _, name := range []string{"PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if protocol > 0 {
		env = append(env, "GIT_PROTOCOL=version="+strconv.Itoa(protocol))
	}
	return env
}
