package embedded

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
)

// supervisorName is the name of the supervisor's log.
const supervisorName = "supervisor"

const logSuffix = ".log"

// logFiles are the paths of the logs by name: supervisor, the control plane's programs, and NAMESPACE/DEPLOYMENT.
func (h *Host) logFiles() (map[string]string, error) {
	files := map[string]string{}
	if _, err := os.Stat(h.dir.path(supervisorLog)); err == nil {
		files[supervisorName] = h.dir.path(supervisorLog)
	}
	for _, root := range []string{
		filepath.Dir(controlplane.LogFile(h.dir.path(controlPlaneDir), "any")),
		h.dir.path(runnerDir, runnerLogDir),
	} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, logSuffix) {
				return ignoreMissing(err)
			}
			name := strings.TrimSuffix(filepath.Base(path), logSuffix)
			files[strings.Replace(name, "_", "/", 1)] = path // no name in Kubernetes has an underscore
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Logs names the programs that have a log: the supervisor, the control plane's programs, and Deployments as NAMESPACE/NAME.
func (h *Host) Logs() ([]string, error) {
	files, err := h.logFiles()
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Log opens the log of a program that Logs names; fs.ErrNotExist for any other.
func (h *Host) Log(name string) (*os.File, error) {
	files, err := h.logFiles()
	if err != nil {
		return nil, err
	}
	path, ok := files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: "the log of " + name, Err: fs.ErrNotExist}
	}
	return os.Open(path)
}

// ignoreMissing returns nil for fs.ErrNotExist, and else err.
func ignoreMissing(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
