// Package fleetrepo reads and edits a fleet repo. It finds the clusters, pools and environments that the files declare, and makes the
// edits of commands. It works offline, on the files alone. An Edit is a set of changes to look at; this package writes no files.
package fleetrepo

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo/valuesschema"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// clusterFile declares a cluster. kustomizationFile lists the applied files of a folder.
const (
	clusterFile       = "cluster.yaml"
	kustomizationFile = "kustomization.yaml"
)

// MaxFile bounds the bytes of a file of the fleet repo that a person may have written. Flux's own manifests have some
// 900 KiB.
const MaxFile = 64 << 20

// Repo is a fleet repo on disk.
type Repo struct {
	// Dir is the folder of fleet.yaml.
	Dir string
	// WorkTree is the user's folder. It is Dir, unless Dir is a copy of a commit.
	WorkTree string
	// Fleet is the content of fleet.yaml, without defaults.
	Fleet *v1alpha1.Fleet
	// Tagged returns the files of a tag, or nil if the repo is in no Git repository. Without Tagged, an edit takes it that no tag has the
	// folder of an environment.
	Tagged func(tag string) (fs.FS, error)
	// Schemas are the compiled schemas of its charts' values.
	Schemas valuesschema.Schemas

	mu       sync.Mutex
	charts   map[string]*chart
	flavours []string

	seeing sync.Mutex
	seen   map[string][sha256.Size]byte // of the files that were read, as they were the first time
}

// Edit is a change of the repo that a user can review before it is made.
type Edit struct {
	// Changes to the files. Without changes, the repo already is as the edit would make it.
	Changes manifest.ChangeSet
	// Summary describes the edit in the first line of a commit message.
	Summary string
	// Body is the rest of the commit message; it may be empty.
	Body string
	// Notes say what will happen, and what the user still has to do.
	Notes []string
	// LeftAlone says which objects the edit leaves as they are, and why. Unlike Notes, it is shown even if the edit has no changes.
	LeftAlone []string
	// AsWanted is a message for an edit that changes nothing: it says what the repo already has. It may be empty.
	AsWanted string
	// Environments are the environments whose clusters or apps the edit changes.
	Environments []string
	// Checks have to pass before the edit is made. The caller runs them, because this package does not render and does not use Git.
	Checks []Check
	// Private says that the difference must not be shown, because it may have secrets in clear.
	Private bool
	// Replaces names files that the edit may replace even if their content on disk is not committed.
	Replaces []string
}

// Find returns the folder of fleet.yaml: dir, or the nearest folder above with one. It fails if there is none, and if dir is no folder.
func Find(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the fleet repo: %w", err)
	}
	switch info, err := os.Stat(start); {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return "", diag.Errorf("give --repo the folder of the fleet repo", "the folder %s does not exist", start)
	case err == nil && !info.IsDir():
		return "", diag.Errorf("give --repo the folder of the fleet repo", "%s is not a folder", start)
	}
	for at := start; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, v1alpha1.FileName)); err == nil {
			return at, nil
		}
		if filepath.Dir(at) == at {
			return "", diag.Errorf(
				"run fleetctl in the fleet repo or give its folder with --repo; `fleetctl init` makes one, or `fleetctl adopt` for a repo that Flux "+
					"follows already",
				"there is no %s in %s or above", v1alpha1.FileName, start)
		}
	}
}

// Open returns the fleet repo with the folder dir. It looks for fleet.yaml in dir and in the folders above. Errors: those of Find and of
// v1alpha1.Load.
func Open(dir string) (*Repo, error) {
	at, err := Find(dir)
	if err != nil {
		return nil, err
	}
	repo := New(at, nil)
	_, _ = repo.read(v1alpha1.FileName) // for ReadOtherwise: before Load, whose errors are the ones to report
	repo.Fleet, err = v1alpha1.Load(filepath.Join(at, v1alpha1.FileName))
	return repo, err
}

// New returns the fleet repo in a folder whose fleet.yaml has this content.
func New(dir string, fleet *v1alpha1.Fleet) *Repo {
	return &Repo{Dir: dir, WorkTree: dir, Fleet: fleet, charts: map[string]*chart{}, seen: map[string][sha256.Size]byte{}}
}

// OpenCopy returns the fleet repo in dir, which is a copy of the repo in workTree. Errors: those of v1alpha1.Decode, and a copy without
// fleet.yaml.
func OpenCopy(dir, workTree string) (*Repo, error) {
	if dir == workTree {
		return Open(dir)
	}
	content, err := within.Start(dir, v1alpha1.FileName, within.MostNamed) // Decode refuses a file of half this size
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf("commit it first, as you want it: git add "+v1alpha1.FileName+"; git commit",
			"%s is not committed", v1alpha1.FileName)
	}
	if err != nil {
		return nil, fmt.Errorf("read fleet: %w", err)
	}
	fleet, err := v1alpha1.Decode(filepath.Join(workTree, v1alpha1.FileName), content)
	repo := New(dir, fleet)
	repo.WorkTree = workTree
	return repo, err
}

// read returns the file at a slash-separated path of the repo. A file larger than most is an error.
func (r *Repo) read(name string) ([]byte, error) {
	content, err := within.ReadFile(r.Dir, name, yamledit.MaxBytes)
	if err == nil {
		r.seeing.Lock()
		defer r.seeing.Unlock()
		if _, before := r.seen[path.Clean(name)]; !before {
			r.seen[path.Clean(name)] = sha256.Sum256(content)
		}
	}
	return content, err
}

// ReadOtherwise returns the path of a planned change whose file had other content when an edit of r first read it. It returns the empty
// string if there is none. The change would then take back what others have written since.
func (r *Repo) ReadOtherwise(planned []manifest.Change) string {
	r.seeing.Lock()
	defer r.seeing.Unlock()
	for _, c := range planned {
		if hash, read := r.seen[c.Path]; read && hash != sha256.Sum256(c.Before()) {
			return c.Path
		}
	}
	return ""
}

// folders lists the folders in a folder of the repo; none if the folder is missing.
func (r *Repo) folders(dir string) ([]string, error) {
	entries, err := within.ReadDir(r.Dir, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the folder %s: %w", dir, err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (r *Repo) exists(name string) bool {
	return within.Exists(r.Dir, name)
}

// madeChannel is a hint with the command that adds a channel of tags.
func madeChannel(name string) string {
	return "`fleetctl channel add " + name + " --tag 'v*'` makes one"
}

// Unpromoted returns a note for each channel of tags that environments follow. The note says that a commit reaches them only after a
// promotion.
func (r *Repo) Unpromoted(environments []string) []string {
	var notes []string
	for _, channel := range r.Fleet.Channels() {
		names := slices.DeleteFunc(slices.Clone(environments), func(env string) bool { return r.Fleet.ChannelOf(env).Name != channel.Name })
		if len(names) == 0 || !channel.IsTag() {
			continue
		}
		what, follows := "Environment", "follows"
		if len(names) > 1 {
			what, follows = "Environments", "follow"
		}
		notes = append(notes, fmt.Sprintf("%s %s %s channel %s: Flux applies this commit when `fleetctl promote` has moved the channel to it.",
			what, strings.Join(names, ", "), follows, channel.Name))
	}
	return notes
}

// EnvironmentsOf returns the environments that files belong to. Shared files, such as charts and features, belong to
// all environments.
func (r *Repo) EnvironmentsOf(files []string) []string {
	return slices.DeleteFunc(slices.Clone(r.EnvironmentNames()), func(env string) bool {
		return !slices.ContainsFunc(files, func(file string) bool {
			if !layout.InChannels(file) {
				return false
			}
			own := slices.ContainsFunc(r.layouts(), func(l layout.Layout) bool { return strings.HasPrefix(file, l.Environment(env)+"/") })
			return own || slices.ContainsFunc(sharedDirs, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
		})
	})
}

// sharedDirs are the folders with files for several environments.
var sharedDirs = []string{layout.ChartsDir, layout.FeaturesDir, layout.AddonsDir, "tenants"}

// sortedSet sorts names and drops doubles.
func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// once returns names in their order, each of them once: people repeat names in flags.
func once(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
