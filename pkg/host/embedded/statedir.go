package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// stateDir is the host's folder.
type stateDir string

// The entries of the folder.
const (
	configFile      = "host.json"
	identityFile    = "supervisor.json" // of the holder of aliveFile
	completeFile    = "complete"        // made when the API server was ready for the first time
	supervisorLog   = "supervisor.log"
	aliveFile       = "alive"    // locked by the supervisor while it lives; the kernel unlocks it when it dies
	startingFile    = "starting" // locked by the supervisor until it is ready, or has failed
	controlPlaneDir = "control-plane"
	programsDir     = "programs"
	runnerDir       = "runner"
	processesDir    = "processes" // records of running processes, for process.EndLeftovers
	runnerLogDir    = "logs"      // in runnerDir, NAMESPACE_DEPLOYMENT.log
)

// ours tells whether fleetctl makes a file of that name in the folder. Temporary files count.
func ours(name string) bool {
	known := []string{
		configFile, identityFile, completeFile, supervisorLog, aliveFile, startingFile, controlPlaneDir, programsDir, runnerDir,
		processesDir,
	}
	if of, ok := atomicfile.IsTemporary(name); ok {
		name = of
	}
	return slices.ContainsFunc(known, func(k string) bool { return name == k || strings.HasPrefix(name, k+".") })
}

const lockPoll = 50 * time.Millisecond // polled, because a context cannot end a blocking wait for a file lock

// config is what the supervisor reads when it starts, and what stays for the next start.
type config struct {
	FormatVersion string `json:"formatVersion"`
	Name          string `json:"name"`
	Ephemeral     bool   `json:"ephemeral,omitempty"`
	// KubernetesVersion of the control plane, and the Images of its programs.
	KubernetesVersion string        `json:"kubernetesVersion"`
	Images            programImages `json:"images"`
	// ImageDir is the store with these images and the controllers' images.
	ImageDir string `json:"imageDir"`
	// Mirrors replace registries.
	Mirrors map[string]string `json:"mirrors,omitempty"`
	// Issuer of service accounts' tokens. "" is an issuer that only the cluster itself knows.
	Issuer string `json:"issuer,omitempty"`
	// Programs, if not nil, replace the programs from Images.
	Programs *controlplane.Programs `json:"programs,omitempty"`
}

func (d stateDir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// readConfig reads the configuration. The error is fs.ErrNotExist if there is none.
func (d stateDir) readConfig() (*config, error) {
	raw, err := os.ReadFile(d.path(configFile))
	if err != nil {
		return nil, err
	}
	c := &config{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, diag.Wrap("read "+d.path(configFile), err,
			"put it back from a backup; without it, remove the folder "+string(d)+
				" with all the data of the management cluster, and run `fleetctl init`")
	}
	return c, nil
}

func (d stateDir) writeConfig(c *config) error {
	c.FormatVersion = "1"
	return d.writeJSON(configFile, c)
}

func (d stateDir) writeJSON(name string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return d.writeFile(name, append(raw, '\n'))
}

// writeFile replaces a file of the folder atomically, with mode 0600. It makes the folder with access for this user alone.
func (d stateDir) writeFile(name string, content []byte) error {
	if err := atomicfile.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(d.path(name), content, 0o600)
}

// completed tells whether the host has ever been ready, so that its data must be kept. An error does not mean "never".
func (d stateDir) completed() (bool, error) {
	_, err := os.Stat(d.path(completeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// alive says whether a supervisor runs. It looks at the supervisor's lock, because another process may have its old id.
func (d stateDir) alive() (bool, error) { return d.held(aliveFile) }

// held says whether a process holds the exclusive lock of that name.
func (d stateDir) held(name string) (bool, error) {
	if _, err := os.Stat(d.path(name)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock := flock.New(d.path(name))
	free, err := lock.TryRLock() // shared, so that two calls of held do not take each other for the supervisor
	if err != nil {
		return false, fmt.Errorf("look whether the host in %s runs: %w", string(d), err)
	}
	if free {
		return false, lock.Unlock()
	}
	return true, lock.Close()
}

// waitFree returns when no process holds the lock, or the context's error if ctx ends first.
func (d stateDir) waitFree(ctx context.Context, name string) error {
	lock := flock.New(d.path(name))
	if _, err := lock.TryRLockContext(ctx, lockPoll); err != nil {
		return err
	}
	return lock.Unlock()
}

// supervisor returns the identity of the last supervisor. The error is process.ErrGone if none has written it.
func (d stateDir) supervisor() (process.Identity, error) {
	var id process.Identity
	raw, err := os.ReadFile(d.path(identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return id, process.ErrGone
	}
	if err != nil {
		return id, err
	}
	return id, json.Unmarshal(raw, &id)
}

// holder names the supervisor that holds the folder's locks. A supervisor that is just starting has not written its identity yet, so holder
// cannot name its process.
func (d stateDir) holder() string {
	id, err := d.supervisor()
	if err != nil || !id.Alive() {
		return "another supervisor"
	}
	return fmt.Sprintf("another supervisor (process %d)", id.PID)
}

// endLeftovers ends processes that a killed supervisor may have left. The kernel ends the supervisor's children, but not their children.
// The caller holds aliveFile.
func (d stateDir) endLeftovers(ctx context.Context) (ended []string, err error) {
	return process.EndLeftovers(ctx, d.path(processesDir), string(d)+string(filepath.Separator))
}

// remove removes the folder. It removes the configuration last, so that after a kill the host can still be found and deleted.
func (d stateDir) remove() error {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == configFile {
			continue
		}
		if err := removeAll(d.path(e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(string(d))
}

// removeAll removes path with its content, even folders that a program made read-only.
func removeAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // for its owner alone; it is removed next
		}
		return nil
	})
	return os.RemoveAll(path)
}

// lastLines returns up to n of the last lines of a log, for an error.
func lastLines(path string, n int) []string {
	const tail = 8 << 10
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	buffer := make([]byte, min(info.Size(), tail))
	if _, err := f.ReadAt(buffer, info.Size()-int64(len(buffer))); err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(buffer)), "\n")
	return lines[max(0, len(lines)-n):]
}
