// Package state keeps a private folder on this machine for each management cluster. The folder has the kubeconfig, a record of the fleet
// repo that the cluster follows, and the lock that keeps two commands from working on the cluster at once. No decision is stored here:
// workflows look at the real state, and a lost folder loses only convenience.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"syscall"
	"time"

	"github.com/adrg/xdg"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

const (
	recordFile = "cluster.json"
	lockFile   = "lock"
)

// Store is the folder of all management clusters that this user's fleetctl knows.
type Store struct {
	Dir string
	// Given, if not nil, is the way to a management cluster that the user has given on the command line. It takes precedence over the record
	// on this machine.
	Given *Given
}

// Given says how a management cluster is reached.
type Given struct {
	// Name of the management cluster; "" for the only management cluster.
	Name string
	// Kubeconfig is a file; "" for the kubeconfig that kubectl would use. Context is a context in it; "" for the current context.
	Kubeconfig, Context string
}

// For returns the store for a command that knows which management cluster it needs. The way on the command line leads there, unless the
// command line names another one.
func (s Store) For(name string) Store {
	if s.Given != nil && s.Given.Name == "" {
		given := *s.Given
		given.Name = name
		s.Given = &given
	}
	return s
}

// DefaultDir is $XDG_STATE_HOME/fleetctl or its equivalent on this system.
func DefaultDir() string { return filepath.Join(xdg.StateHome, "fleetctl") }

// Record is this machine's record of a management cluster.
type Record struct {
	FormatVersion string `json:"formatVersion"`
	// Name of the management cluster.
	Name string `json:"name"`
	// Fleet of the management cluster, by name and by identity. Only a record of an older fleetctl has no identity.
	Fleet   string `json:"fleet"`
	FleetID string `json:"fleetID,omitempty"`
	// Repo is the absolute path of the fleet repo's folder on this machine.
	Repo string `json:"repo"`
	// GitURL is the remote of the fleet repo; empty if it has none.
	GitURL string `json:"gitURL,omitempty"`
	// HostType is kind, embedded or existing.
	HostType string `json:"hostType"`
	// Context and KubeconfigSource are set for an existing host.
	Context          string `json:"context,omitempty"`
	KubeconfigSource string `json:"kubeconfigSource,omitempty"`
	// Ephemeral says that `fleetctl bootstrap` made it.
	Ephemeral bool `json:"ephemeral,omitempty"`
	// PivotedTo names the cluster that took over, once its objects were moved there.
	PivotedTo string `json:"pivotedTo,omitempty"`
	// Connected says that another machine made the management cluster, and that `fleetctl connect` has given this machine access.
	Connected bool `json:"connected,omitempty"`
	// MergedInto is the user's kubeconfig that our entries were written to.
	MergedInto string `json:"mergedInto,omitempty"`
}

// Cluster is the folder of one management cluster.
type Cluster struct {
	Name string
	Dir  string
}

// Cluster returns the folder of a management cluster; it need not exist yet.
func (s Store) Cluster(name string) Cluster {
	return Cluster{Name: name, Dir: filepath.Join(s.Dir, "clusters", name)}
}

// SupportBundle is where a support bundle of a management cluster goes that nobody said a place for: no folder that somebody commits. It
// makes the folder, for the user alone.
func (s Store) SupportBundle(name string, gathered time.Time) (string, error) {
	dir := filepath.Join(s.Dir, "support-bundles")
	if err := s.privateFolder(dir); err != nil {
		return "", err
	}
	_ = atomicfile.Sweep(dir) // no two bundles have the same name, so that none would remove what a killed run left of another
	return filepath.Join(dir, name+"-"+gathered.UTC().Format("20060102-150405")+".tar.gz"), nil
}

// All returns the records of all management clusters, by name, and for each record that cannot be read the error. A folder without a record
// is left out.
func (s Store) All() (records []Record, damaged map[string]error, err error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, "clusters"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list the management clusters of this machine: %w", err)
	}
	damaged = map[string]error{}
	for _, e := range entries {
		c := s.Cluster(e.Name())
		if info, err := os.Stat(c.Dir); err == nil && !info.IsDir() {
			continue // a file of another program
		}
		r, err := c.Load()
		switch {
		case err == nil:
			records = append(records, *r)
		case !errors.Is(err, fs.ErrNotExist):
			damaged[e.Name()] = err
		}
	}
	sort.Slice(records, func(i, j int) bool { return records[i].Name < records[j].Name })
	return records, damaged, nil
}

// Readable returns the records that can be read: one damaged record must not keep the user from all other management clusters.
func (s Store) Readable() ([]Record, error) {
	return s.ListOf(func(string) bool { return false })
}

// ListOf is Readable with an error if the record of a name that matters to the caller cannot be read.
func (s Store) ListOf(matters func(name string) bool) ([]Record, error) {
	records, damaged, err := s.All()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(damaged)) {
		if matters(name) {
			return nil, damaged[name]
		}
	}
	return records, nil
}

// Load reads the record. Errors: fs.ErrNotExist if there is no record, and an error if another user may have written it.
func (c Cluster) Load() (*Record, error) {
	path := c.Path(recordFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := c.checkOwner(); err != nil {
		return nil, err
	}
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, diag.Wrap("read "+path, err, "remove the file: `fleetctl init` writes it anew; or, if another machine made it, or another "+
			"cluster has its work by now, `fleetctl connect --management "+c.Name+"`")
	}
	if r.Name != c.Name { // the folder was renamed, or another one put into its place
		return nil, diag.Errorf("give the folder its name back, or remove the file and run `fleetctl connect`",
			"%s is the record of management cluster %q", path, r.Name)
	}
	return &r, nil
}

// Save writes the record, atomically and private.
func (c Cluster) Save(r Record) error {
	if err := c.forgetEnded(r.FleetID); err != nil {
		return err
	}
	r.FormatVersion, r.Name = "1", c.Name
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return c.Write(recordFile, append(raw, '\n'))
}

// Path of a file in the folder.
func (c Cluster) Path(name string) string { return filepath.Join(c.Dir, name) }

// Write writes a private file into the folder, atomically. It does not write a file that already has the content, so this needs no space on
// the disk.
func (c Cluster) Write(name string, content []byte) error {
	if err := c.ensure(); err != nil {
		return err
	}
	if info, err := os.Lstat(c.Path(name)); err == nil && info.Mode() == 0o600 {
		if there, err := os.ReadFile(c.Path(name)); err == nil && bytes.Equal(there, content) {
			return nil
		}
	}
	return atomicfile.Write(c.Path(name), content, 0o600)
}

// ensure makes the folder, readable by its owner alone.
func (c Cluster) ensure() error {
	if err := atomicfile.MkdirAll(c.Dir, 0o700); err != nil {
		return diag.Wrap("create the state folder of "+c.Name, err, "point --state-dir or FLEETCTL_STATE_DIR at a folder that you can write")
	}
	return c.checkOwner()
}

// Remove deletes the folder with its content. It deletes the record after all other files: a killed Remove can then still find the folder.
// It deletes the lock last, whoever holds it. A later command that takes the lock of this name gets another lock, in a new folder.
func (c Cluster) Remove() error {
	if err := c.remove(); err != nil {
		return fmt.Errorf("remove the state of %s: %w", c.Name, err)
	}
	return nil
}

func (c Cluster) remove() error {
	for _, last := range [][]string{{recordFile, lockFile}, {lockFile}} {
		entries, err := os.ReadDir(c.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if slices.Contains(last, e.Name()) {
				continue
			}
			if err := os.RemoveAll(c.Path(e.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(c.Path(lockFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// From here on, another command may own the folder: remove it only if it is empty.
	if err := os.Remove(c.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) &&
		!errors.Is(err, syscall.EEXIST) {
		return err
	}
	return nil
}
