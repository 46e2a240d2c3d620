package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// helpTimeout bounds a run with --help, because a program that does not know --help starts its work instead. A first read from a slow disk
// may take longer, so a program without output is run again with twice the time.
const helpTimeout = 5 * time.Second

// helpTries is how often a program without output is run.
const helpTries = 4

// helpTexts finds the flags of programs by running each once with --help. It keeps the output by the image's digest. It keeps the text
// itself and not the parsed flags, because another version of fleetctl may parse it in another way.
type helpTexts struct {
	dir     string
	timeout time.Duration
	flights singleflight.Group
	mu      sync.Mutex
	flags   map[string]map[string]flagInfo
	tries   map[string]int
}

func newHelpTexts(dir string) *helpTexts {
	return &helpTexts{dir: dir, timeout: helpTimeout, flags: map[string]map[string]flagInfo{}, tries: map[string]int{}}
}

// of returns the flags of the program at path with the subcommand words, from the image with that digest. A program that prints no flags
// has none, and its arguments stay as they are. An error means that the program could not be run, or has printed nothing yet. The caller
// has to try again, because without the flags the program would listen on ports that others have.
func (h *helpTexts) of(ctx context.Context, digest, path string, words []string) (map[string]flagInfo, error) {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{digest, filepath.Base(path)}, words...), "\x00")))
	key := hex.EncodeToString(sum[:])
	h.mu.Lock()
	flags, ok := h.flags[key]
	h.mu.Unlock()
	if ok {
		return flags, nil
	}
	result, err, _ := h.flights.Do(key, func() (any, error) { return h.load(ctx, key, path, words) })
	if err != nil {
		return nil, err
	}
	flags, _ = result.(map[string]flagInfo)
	h.mu.Lock()
	h.flags[key] = flags
	h.mu.Unlock()
	return flags, nil
}

func (h *helpTexts) load(ctx context.Context, key, path string, words []string) (map[string]flagInfo, error) {
	file := filepath.Join(h.dir, key+".txt")
	if text, err := os.ReadFile(file); err == nil {
		return parseHelp(string(text)), nil
	}
	h.mu.Lock()
	tried := h.tries[key]
	h.tries[key]++
	h.mu.Unlock()
	text, whole, err := askHelp(ctx, h.timeout<<tried, path, words)
	if silent := (*silentError)(nil); errors.As(err, &silent) && tried+1 >= helpTries {
		return nil, nil // it will never answer, so its flags stay unknown
	}
	if err != nil {
		return nil, err
	}
	if whole {
		_ = atomicfile.Write(file, []byte(text), 0o600) // without the file the program is only asked again
	}
	return parseHelp(text), nil
}

// silentError means that a program was stopped before it printed anything.
type silentError struct {
	program string
	after   time.Duration
	err     error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("%s --help: no answer after %s: %v", e.program, e.after.Round(time.Millisecond), e.err)
}

func (e *silentError) Unwrap() error { return e.err }

// askHelp runs the program with --help, without environment, home and credentials. It returns the program's output, and whether the
// output is complete. Many programs exit with an error after their help. So askHelp fails only if the program could not start, or was
// stopped before it printed anything.
func askHelp(ctx context.Context, timeout time.Duration, path string, words []string) (text string, whole bool, err error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, path, slices.Concat(words, []string{"--help"})...) //nolint:gosec // the manifest's program
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", time.Second
	begun := time.Now()
	out, err := process.CombinedOutput(cmd)
	switch {
	case ctx.Err() != nil:
		return "", false, context.Cause(ctx)
	case cmd.Process == nil:
		return "", false, err
	case len(out) == 0 && !cmd.ProcessState.Exited():
		return "", false, &silentError{program: filepath.Base(path), after: time.Since(begun), err: err}
	}
	return string(out), cmd.ProcessState.Exited(), nil
}
