package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/fleetctl/fleetctl/pkg/host/internal/privatefile"
)

// helpTimeout bounds a program that does not know --help and starts to work instead.
const helpTimeout = 5 * time.Second

// helpTexts knows the flags of programs, by asking each once with --help. What a program says belongs to its image, so it is
// kept.
type helpTexts struct {
	dir     string
	flights singleflight.Group
	mu      sync.Mutex
	flags   map[string]map[string]flagInfo
}

func newHelpTexts(dir string) *helpTexts {
	return &helpTexts{dir: dir, flags: map[string]map[string]flagInfo{}}
}

// of returns the flags of the program at path, called with the words of its command, from the image with that digest. A
// program that does not tell has none: its flags are left as they are.
func (h *helpTexts) of(ctx context.Context, digest, path string, words []string) map[string]flagInfo {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{digest, filepath.Base(path)}, words...), "\x00")))
	key := hex.EncodeToString(sum[:])
	h.mu.Lock()
	flags, ok := h.flags[key]
	h.mu.Unlock()
	if ok {
		return flags
	}
	result, _, _ := h.flights.Do(key, func() (any, error) { return h.load(ctx, key, path, words), nil })
	flags, _ = result.(map[string]flagInfo)
	if ctx.Err() == nil {
		h.mu.Lock()
		h.flags[key] = flags
		h.mu.Unlock()
	}
	return flags
}

func (h *helpTexts) load(ctx context.Context, key, path string, words []string) map[string]flagInfo {
	file := filepath.Join(h.dir, key+".json")
	var flags map[string]flagInfo
	if raw, err := os.ReadFile(file); err == nil && json.Unmarshal(raw, &flags) == nil {
		return flags
	}
	flags = parseHelp(askHelp(ctx, path, words))
	if raw, err := json.Marshal(flags); err == nil && ctx.Err() == nil {
		_ = privatefile.Write(file, raw) // only speed depends on it
	}
	return flags
}

// askHelp runs the program without an environment, a home or credentials.
func askHelp(ctx context.Context, path string, words []string) string {
	ctx, cancel := context.WithTimeout(ctx, helpTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, slices.Concat(words, []string{"--help"})...) //nolint:gosec // the manifest's program
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", time.Second
	ownGroup(cmd)
	out, _ := cmd.CombinedOutput() // many exit with 2 after their help
	return string(out)
}
