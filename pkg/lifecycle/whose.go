package lifecycle

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

// Names collide: of fleets, of management clusters, of clusters on an engine that several people use. So a fleet has an identity (fleet.id in
// its repo), and three places know it: the repo, the record on this machine, and the management cluster itself (see claim). A repo that has
// none yet, because it is new or older than identities, is known by where it is.

// repoOf is a fleet repo as far as it says which fleet it is.
type repoOf struct {
	dir    string
	id     string // "" where it has none yet
	name   string
	url    string // of the remote; "" where there is none
	branch string
	// clusters are its management clusters.
	clusters []string
	// hosts are what it declares to carry them.
	hosts map[string]v1alpha1.HostType
}

// repoAt is the fleet repo that dir is in; nil where dir is in none, or in one that cannot be read: that is for others to say.
func repoAt(dir string) (*repoOf, error) {
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
	return newRepoOf(top, id, fleet), nil
}

func newRepoOf(dir, id string, fleet *v1alpha1.Fleet) *repoOf {
	r := &repoOf{dir: dir, id: id, name: fleet.Metadata.Name, url: fleet.Spec.Git.URL, branch: cmp.Or(fleet.Spec.Git.Branch, v1alpha1.DefaultBranch)}
	r.hosts = map[string]v1alpha1.HostType{}
	for _, m := range fleet.Spec.ManagementClusters {
		r.clusters = append(r.clusters, m.Name)
		r.hosts[m.Name] = m.Host.Type
	}
	return r
}

// declares tells whether the repo has a management cluster of that name.
func (r *repoOf) declares(name string) bool { return slices.Contains(r.clusters, name) }

// owns tells whether a record on this machine is of a management cluster of this repo's fleet.
func (r *repoOf) owns(rec *state.Record) bool {
	here := rec.Repo != "" && sameFolder(rec.Repo, r.dir)
	sameRemote := r.url != "" && sameRepository(rec.GitURL, r.url)
	switch {
	case r.id != "" && rec.FleetID != "":
		// A copy with a remote of its own is another fleet's, whatever it has been copied from.
		fork := !here && r.url != "" && rec.GitURL != "" && !sameRemote
		return r.id == rec.FleetID && !fork
	case here:
		return r.name == rec.Fleet || rec.FleetID != ""
	case r.name != rec.Fleet:
		return false
	case rec.FleetID != "": // this repo has no identity yet
		return sameRemote
	case rec.Repo == "" || !holdsFleet(rec.Repo):
		return true // made before there were identities, and nothing speaks against it
	case r.url == "":
		return false // another folder is the fleet repo, and still there
	}
	return rec.GitURL == "" || sameRemote
}

// notOurs says whose a record is, where the repo does not own it.
func (r *repoOf) notOurs(rec *state.Record) error {
	whose := describeFleet(rec.Fleet, rec.FleetID, cmp.Or(rec.GitURL, rec.Repo))
	return diag.Errorf(fmt.Sprintf("%s; or, if nobody needs that one any more, run `fleetctl teardown --cluster %s -C %s`",
		chooseNameHint, rec.Name, cmp.Or(rec.Repo, "FOLDER")),
		"the management cluster %s on this machine %w: %s; this is %s", rec.Name, ErrOtherFleet, whose, describeFleet(r.name, r.id, cmp.Or(r.url, r.dir)))
}

// describeFleet is "fleet acme (1b4e28ba) of https://…", with what is known.
func describeFleet(name, id, from string) string {
	text := "fleet " + cmp.Or(name, "without a name")
	if short, _, ok := strings.Cut(id, "-"); ok {
		text += " (" + short + ")"
	}
	if from != "" {
		text += " of " + from
	}
	return text
}

// holdsFleet tells whether there is a fleet repo in dir. What cannot be looked at is taken for one.
func holdsFleet(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, v1alpha1.FileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// sameFolder tells whether two paths lead to one folder, which need not exist.
func sameFolder(a, b string) bool {
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

// sameRepository tells whether two URLs name one repository: with or without .git, a user or a trailing slash; and over ssh or https, where a
// port belongs to the protocol.
func sameRepository(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	first, err := (v1alpha1.Git{URL: a}).ParseURL()
	if err != nil {
		return a == b
	}
	second, err := (v1alpha1.Git{URL: b}).ParseURL()
	if err != nil {
		return a == b
	}
	plain := func(p string) string { return strings.TrimSuffix(strings.Trim(p, "/"), ".git") }
	if !strings.EqualFold(first.Hostname(), second.Hostname()) || plain(first.Path) != plain(second.Path) {
		return false
	}
	return first.Scheme != second.Scheme || port(first.Scheme, first.Port()) == port(second.Scheme, second.Port())
}

// port spells out the default of a protocol.
func port(scheme, given string) string {
	defaults := map[string]string{"https": "443", "http": "80", "ssh": "22"}
	return cmp.Or(given, defaults[scheme])
}
