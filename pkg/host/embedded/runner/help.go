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

// helpTimeout bounds a program that does not know --help and starts to work instead. A machine that reads the program from a slow
// disk for the first time may need more, so a program that said nothing is asked again, with twice the time.
const helpTimeout = 5 * time.Second

// helpTries is how often a program that says nothing is asked.
const helpTries = 4

// helpTexts knows the flags of programs, by asking each once with --help. What a program says belongs to its image, so it is
// kept, as it was said: how it is read may change with fleetctl.
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

// of returns the flags of the program at path, called with the words of its command, from the image with that digest. A
// program that tells of none has none: its flags are left as they are. An error says that it could not be asked, or has not
// answered yet: without its flags its ports would stay where others listen, so the caller tries again.
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
		return nil, nil // it never will; it has no flags that we know of
	}
	if err != nil {
		return nil, err
	}
	if whole {
		_ = atomicfile.Write(file, []byte(text), 0o600) // only speed depends on it
	}
	return parseHelp(text), nil
}

// silentError is a program that was stopped before it said anything.
type silentError struct {
	program string
	after   time.Duration
	err     error
}

func (e *silentError) Error() string {
	return fmt.Sprintf("%s --help: no answer after %s: %v", e.program, e.after.Round(time.Millisecond), e.err)
}

func (e *silentError) Unwrap() error { return e.err }

// askHelp runs the program without an environment, a home or credentials, and returns what it prints, and whether that is all that it had
// to say. Many end with an error after their help, so only one that could not start, or was ended without a word, is an error.
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
