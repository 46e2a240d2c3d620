// Package fleetrepo is the fleet repo as its layout has it: it finds the clusters, pools and environments that the files declare, and
// makes the edits that commands offer. It works offline, on the files alone. An edit is a set of changes to look at; nothing is
// written here.
package fleetrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// clusterFile declares a cluster; kustomizationFile lists what of a folder is applied.
const (
	clusterFile       = "cluster.yaml"
	kustomizationFile = "kustomization.yaml"
)

// MaxFile is the most that is read of a file of the fleet repo that a person may have written; Flux's own manifests have some 900 KiB.
const MaxFile = 64 << 20

// Repo is a fleet repo on disk.
type Repo struct {
	// Dir is the folder that fleet.yaml stands in.
	Dir string
	// WorkTree is the person's own folder: Dir, unless that is a copy of what is committed there.
	WorkTree string
	// Fleet is what fleet.yaml says, without defaults.
	Fleet *v1alpha1.Fleet
	// Schemas are those of its charts' values, as they are compiled.
	Schemas Schemas

	mu       sync.Mutex
	charts   map[string]*chart
	flavours []string
}

// Edit is a change of the repo that somebody can look at before it is made.
type Edit struct {
	// Changes to the files; a set that changes nothing says that all is as wanted.
	Changes manifest.ChangeSet
	// Summary is what the edit does, as the first line of a commit message.
	Summary string
	// Body is what a commit message says below that; it may be empty.
	Body string
	// Notes say what will happen, and what is left to do.
	Notes []string
	// LeftAlone says what the edit passes over, and why: unlike Notes also where nothing else is to do.
	LeftAlone []string
	// AsWanted says, where the edit changes nothing, what is as it is wanted already; "" leaves it at that.
	AsWanted string
	// Environments are those whose clusters, or what they run, the edit changes.
	Environments []string
	// Checks are what the edit has to pass before it is made. Whoever makes the edit carries them out: this package renders nothing and asks
	// no Git.
	Checks []Check
	// Private edits show no difference: what they change may be in clear.
	Private bool
	// Replaces names the files that the edit was made from as they stand on disk, committed or not: their place is taken.
	Replaces []string
}

// Find returns the folder of the fleet repo that dir is in: the one that fleet.yaml stands in, there or above. The error says that there
// is none.
func Find(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the fleet repo: %w", err)
	}
	for at := start; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, v1alpha1.FileName)); err == nil {
			return at, nil
		}
		if filepath.Dir(at) == at {
			return "", diag.Errorf("run fleetctl in the fleet repo or give its folder with --repo; `fleetctl init` makes one, or `fleetctl adopt` for a repo that Flux follows already",
				"there is no %s in %s or above", v1alpha1.FileName, start)
		}
	}
}

// Open returns the fleet repo that dir is in: it looks for fleet.yaml there and in the folders above. Errors are those of
// v1alpha1.Load, or say that there is none.
func Open(dir string) (*Repo, error) {
	at, err := Find(dir)
	if err != nil {
		return nil, err
	}
	fleet, err := v1alpha1.Load(filepath.Join(at, v1alpha1.FileName))
	return New(at, fleet), err
}

// New is the fleet repo in a folder whose fleet.yaml says what fleet does.
func New(dir string, fleet *v1alpha1.Fleet) *Repo {
	return &Repo{Dir: dir, WorkTree: dir, Fleet: fleet, charts: map[string]*chart{}}
}

// OpenCopy returns the fleet repo of the folder workTree as the copy of it at dir has it. Errors are those of v1alpha1.Decode, or say that the copy has
// no fleet.yaml.
func OpenCopy(dir, workTree string) (*Repo, error) {
	if dir == workTree {
		return Open(dir)
	}
	content, err := os.ReadFile(filepath.Join(dir, v1alpha1.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, diag.Errorf("commit it first, as you want it: git add "+v1alpha1.FileName+"; git commit", "%s is in no commit", v1alpha1.FileName)
	}
	if err != nil {
		return nil, fmt.Errorf("read fleet: %w", err)
	}
	fleet, err := v1alpha1.Decode(filepath.Join(workTree, v1alpha1.FileName), content)
	repo := New(dir, fleet)
	repo.WorkTree = workTree
	return repo, err
}

// read returns the file at a slash-separated path of the repo, which may be so large at most.
func (r *Repo) read(name string) ([]byte, error) {
	content, err := within.ReadFile(r.Dir, name, yamledit.MaxBytes+1)
	if err == nil && len(content) > yamledit.MaxBytes {
		err = fmt.Errorf("%s is larger than %d KiB", name, yamledit.MaxBytes>>10)
	}
	return content, err
}

// folders lists the folders in a folder of the repo; one that is missing has none.
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

// unknown is the error for a name that is not among the known ones: the nearest right one, or all of them.
func unknown(what, name string, known []string, orElse string) error {
	hint := orElse
	if nearest := diag.Nearest(name, known); nearest != "" {
		hint = "did you mean " + nearest + "?"
	} else if len(known) > 0 && len(known) <= 20 {
		hint = "there are: " + strings.Join(known, ", ")
		if strings.HasSuffix(orElse, "makes one") {
			hint += "; " + orElse
		}
	}
	return &diag.Error{Err: fmt.Errorf("there is no %s %q", what, name), Hint: hint, Code: diag.ExitUsage}
}

// madeChannel is the hint which command makes a channel that goes through tags.
func madeChannel(name string) string {
	return "`fleetctl channel add " + name + " --tag 'v*'` makes one"
}

// Unpromoted says of environments that follow tags that a commit reaches them only when their channel is moved to it: a note for each channel.
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

// sortedSet sorts names and drops doubles.
func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
