// Package ownership knows which fleet a management cluster belongs to.
//
// Names collide: names of fleets, of management clusters, of clusters on an engine that several people use. So a fleet has an identity
// (fleet.id in its repo). Three places store it: the repo (Repo), the record on this machine, and the management cluster itself (Claim). A
// repo without an identity, because it is new or older than identities, is known by its folder and its remote.
package ownership

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// ErrOtherFleet says that a management cluster belongs to another fleet than the fleet of this command.
var ErrOtherFleet = errors.New("belongs to another fleet")

// ChooseNameHint is the way out where a name is taken.
const ChooseNameHint = "choose another name: managementClusters[].name in fleet.yaml, or --management for a new fleet"

// Repo is the part of a fleet repo that tells which fleet it is.
type Repo struct {
	Dir    string
	ID     string // "" where it has none yet
	Name   string
	URL    string // of the remote; "" where there is none
	Branch string
	// Clusters are its management clusters.
	Clusters []string
	// Elsewhere are the management clusters that it declares, and that follow repositories of their own.
	Elsewhere []string
	// Standbys wait to take over from one of them.
	Standbys []string
	// Hosts are the kinds of hosts that fleet.yaml declares for its management clusters, by name.
	Hosts map[string]v1alpha1.HostType
	// Parents has the parent of each management cluster that runs on a workload cluster, by name.
	Parents map[string]string
	// Adopted are the management clusters that are older than their use of fleetctl: they have their own path in fleet.yaml.
	Adopted []string
}

// RepoAt is the fleet repo that dir is in. It is nil if dir is in no fleet repo, or in a fleet repo that cannot be read; other code reports
// that.
func RepoAt(dir string) (*Repo, error) {
	if dir == "" {
		return nil, nil
	}
	top, err := fleetrepo.Find(dir)
	if err != nil {
		return nil, nil //nolint:nilerr // in no fleet repo
	}
	fleet, err := v1alpha1.Load(filepath.Join(top, v1alpha1.FileName))
	if err != nil {
		return nil, nil //nolint:nilerr // who needs it will say so
	}
	id, err := fleetrepo.ReadIdentity(top)
	if err != nil {
		return nil, err
	}
	return NewRepo(top, id, fleet), nil
}

// NewRepo is the fleet repo at dir, with the identity id and the given fleet.yaml.
func NewRepo(dir, id string, fleet *v1alpha1.Fleet) *Repo {
	r := &Repo{
		Dir: dir, ID: id, Name: fleet.Metadata.Name, URL: fleet.Spec.Git.URL,
		Branch: cmp.Or(fleet.Spec.Git.Branch, v1alpha1.DefaultBranch),
	}
	r.Hosts, r.Parents = map[string]v1alpha1.HostType{}, map[string]string{}
	for _, m := range fleet.Spec.ManagementClusters {
		if m.Parent != "" {
			r.Parents[m.Name] = m.Parent
		}
		if m.Repository != nil {
			r.Elsewhere = append(r.Elsewhere, m.Name) // it is another fleet's
			continue
		}
		r.Clusters = append(r.Clusters, m.Name)
		r.Hosts[m.Name] = m.Host.Type
		if m.Path != "" {
			r.Adopted = append(r.Adopted, m.Name)
		}
	}
	for _, s := range fleet.Spec.Standbys {
		r.Standbys = append(r.Standbys, s.Name)
		r.Hosts[s.Name] = s.Host.Type
	}
	return r
}

// Place is where the repo is, for people to read.
func (r *Repo) Place() string {
	if r.URL != "" {
		return r.URL
	}
	return r.Dir
}

// Declares tells whether the repo has a management cluster, or a standby, of that name.
func (r *Repo) Declares(name string) bool {
	return slices.Contains(r.Clusters, name) || slices.Contains(r.Standbys, name)
}

// Owns tells whether a record on this machine is of a management cluster of this repo's fleet.
func (r *Repo) Owns(rec *state.Record) bool {
	here := rec.Repo != "" && SameFolder(rec.Repo, r.Dir)
	sameRemote := r.URL != "" && SameRepository(rec.GitURL, r.URL)
	switch {
	case r.ID != "" && rec.FleetID != "":
		// A copy with its own remote belongs to another fleet, whatever its origin is.
		fork := !here && r.URL != "" && rec.GitURL != "" && !sameRemote
		return r.ID == rec.FleetID && !fork
	case here:
		return r.Name == rec.Fleet || rec.FleetID != ""
	case r.Name != rec.Fleet:
		return false
	case rec.FleetID != "": // this repo has no identity yet
		return sameRemote
	case rec.Repo == "" || !HoldsFleet(rec.Repo):
		return true // made before there were identities, and nothing speaks against it
	case r.URL == "":
		return false // another folder is the fleet repo, and still there
	}
	return rec.GitURL == "" || sameRemote
}

// CheckCopy refuses the record of a management cluster that follows another folder than this repo's, where the other one is still there:
// this repo is a copy of it, or a clone, and what it says is not what the cluster follows.
func (r *Repo) CheckCopy(rec *state.Record) error {
	if rec.GitURL != "" || rec.Repo == "" || SameFolder(rec.Repo, r.Dir) || !HoldsFleet(rec.Repo) {
		return nil
	}
	return diag.Errorf("run it in "+rec.Repo+"; or, if this folder is to take its place, give --take-over-flux to `fleetctl init`",
		"Flux on the management cluster %s follows the folder %s, and this is a copy of it", rec.Name, rec.Repo)
}

// NotOurs says whose a record is, where the repo does not own it.
func (r *Repo) NotOurs(rec *state.Record) error {
	whose := Describe(rec.Fleet, rec.FleetID, cmp.Or(rec.GitURL, rec.Repo))
	return diag.Errorf(fmt.Sprintf("%s; or, if nobody needs that one any more, run `fleetctl teardown --management %s -C %s`",
		ChooseNameHint, rec.Name, diag.ShellWord(cmp.Or(rec.Repo, "FOLDER"))),
		"the management cluster %s on this machine %w: %s; this is %s", rec.Name, ErrOtherFleet, whose,
		Describe(r.Name, r.ID, cmp.Or(r.URL, r.Dir)))
}

// Describe is "fleet acme (1b4e28ba) of https://…", with what is known.
func Describe(name, id, from string) string {
	text := "fleet " + cmp.Or(name, "without a name")
	if short, _, ok := strings.Cut(id, "-"); ok {
		text += " (" + short + ")"
	}
	if from != "" {
		text += " of " + from
	}
	return text
}

// HoldsFleet tells whether dir contains a fleet repo. A folder that cannot be read counts as a fleet repo.
func HoldsFleet(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, v1alpha1.FileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// SameFolder tells whether two paths lead to one folder, which need not exist.
func SameFolder(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// SameRepository tells whether two URLs name one repository: see v1alpha1.SameRepository.
func SameRepository(a, b string) bool { return v1alpha1.SameRepository(a, b) }
