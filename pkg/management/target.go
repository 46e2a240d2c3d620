// Package management works with an existing management cluster: it finds the cluster, connects to it, starts and stops its host, and serves
// the fleet repo to it. It also runs commands on an ephemeral host. pkg/lifecycle makes and removes management clusters.
package management

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Files of a management cluster's state folder, besides those of its host and of init.
const (
	KubeconfigFile = "kubeconfig"
	GitServeDir    = "git-serve"
)

// Target is a management cluster that an earlier command has made.
type Target struct {
	Name    string
	Cluster state.Cluster
	// Record is this machine's record of the management cluster; nil if there is none.
	Record *state.Record

	// repo is the fleet repo in which the command runs; nil without one, or if the repo does not declare this management cluster.
	repo *ownership.Repo
	// store remembers the management clusters of this machine.
	store state.Store
	// given is the access from the command line; nil if the command line names none.
	given *state.Given
}

// ErrUnknownCluster is the error for a management cluster that this machine does not know.
var ErrUnknownCluster = errors.New("no such management cluster is known on this machine")

// Find finds the management cluster called name. With an empty name it is the only one of the fleet repo around dir, or, outside of a
// fleet repo, the only one that this machine remembers. The error is ownership.ErrOtherFleet if the remembered cluster of this name
// belongs to another fleet than the repo's. In a copy of a folder that the cluster follows, it is found from the original alone.
func Find(store state.Store, name, dir string) (*Target, error) {
	t, err := find(store, name, dir)
	if err != nil {
		return nil, err
	}
	return t, t.CheckCopy()
}

// CheckCopy returns an error if the command runs in a copy of the folder that the cluster follows.
func (t *Target) CheckCopy() error {
	if t.repo == nil || t.Record == nil || t.given != nil {
		return nil
	}
	return t.repo.CheckCopy(t.Record)
}

// find is Find without the look whether the repo is a copy.
func find(store state.Store, name, dir string) (*Target, error) {
	repo, err := ownership.RepoAt(dir)
	if err != nil {
		return nil, err
	}
	if t, err := givenTarget(store, name, repo); t != nil || err != nil {
		return t, err
	}
	if name != "" {
		return namedTarget(store, name, repo)
	}
	records, err := store.ListOf(func(name string) bool { return repo == nil || repo.Declares(name) })
	if err != nil {
		return nil, err
	}
	here := records[:0:0]
	for _, r := range records {
		mine := r.Repo == dir
		if repo != nil && repo.Declares(r.Name) {
			mine = repo.Owns(&r) && !slices.Contains(repo.Standbys, r.Name) // that has no work
		} else if repo != nil && repo.Declares(r.PivotedTo) {
			mine = false // its standby has taken over, and stands in its place
		}
		if mine {
			here = append(here, r)
		}
	}
	if len(here) == 0 && repo != nil {
		for i := range records {
			if repo.Declares(records[i].Name) {
				return nil, repo.NotOurs(&records[i])
			}
		}
	}
	if len(here) == 0 && repo == nil {
		here = records
	}
	switch len(here) {
	case 0:
		hint := "run `fleetctl init`, or name one with --management"
		if repo != nil && len(repo.Clusters) > 1 {
			hint += ": " + strings.Join(repo.Clusters, ", ")
		}
		if repo == nil { // perhaps a repo that Flux follows, and fleetctl does not know yet
			hint += "; a Flux repo without a fleet.yaml gets one from `fleetctl adopt`"
		}
		return nil, diag.Wrap("find the management cluster", ErrUnknownCluster, hint)
	case 1:
		return newTarget(store, &here[0], repo), nil
	}
	names := make([]string, 0, len(here))
	for _, r := range here {
		names = append(names, r.Name)
	}
	return nil, diag.Usage("choose one with --management", "this machine has several management clusters: %s", strings.Join(names, ", "))
}

func namedTarget(store state.Store, name string, repo *ownership.Repo) (*Target, error) {
	if name != filepath.Base(name) || name == "." || name == ".." { // it is a folder's name too
		return nil, diag.Usage("give the name of a management cluster, as in fleet.yaml",
			"%.80q cannot be the name of a management cluster", name)
	}
	if repo != nil && !repo.Declares(name) {
		repo = nil // it is not about this repo
	}
	t := &Target{Name: name, Cluster: store.Cluster(name), repo: repo, store: store}
	r, err := t.Cluster.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		return nil, err
	case repo != nil && !repo.Owns(r):
		return nil, repo.NotOurs(r)
	}
	t.Record = r
	return t, nil
}

func newTarget(store state.Store, r *state.Record, repo *ownership.Repo) *Target {
	if repo != nil && !repo.Declares(r.Name) {
		repo = nil
	}
	return &Target{Name: r.Name, Cluster: store.Cluster(r.Name), Record: r, repo: repo, store: store}
}

// Reload reads this machine's record again. Call it after taking the lock, because another command may have pivoted, removed or remade
// the cluster before. Errors: those of Find.
func (t *Target) Reload() error {
	if t.given != nil {
		return nil
	}
	r, err := t.Cluster.Load()
	if errors.Is(err, fs.ErrNotExist) {
		r, err = nil, nil
	}
	if err != nil {
		return err
	}
	if r != nil && t.repo != nil && !t.repo.Owns(r) {
		return t.repo.NotOurs(r)
	}
	t.Record = r
	return nil
}

// checkWhose returns an error if the cluster behind client belongs to another fleet than this machine's record and the repo say. A
// cluster without a fleet's identity was made by an older version, and is accepted.
func (t *Target) checkWhose(ctx context.Context, client *kube.Client) error {
	there, err := ownership.ReadClaim(ctx, client)
	if err != nil || there == nil {
		return err
	}
	refuse := func(here string) error {
		return diag.Errorf("work with it from its own fleet repo, or in no fleet repo at all with --management; "+ownership.ChooseNameHint,
			"the cluster %s %w: %s; this is %s", t.Name, ownership.ErrOtherFleet, there, here)
	}
	if r := t.Record; r != nil && (r.FleetID != "" && r.FleetID != there.Fleet || r.FleetID == "" && r.Fleet != there.Name ||
		r.Name != there.Cluster) {
		return refuse(ownership.Describe(r.Fleet, r.FleetID, cmp.Or(r.GitURL, r.Repo)) + ", as management cluster " + r.Name)
	}
	if t.repo == nil || t.Record != nil { // Find has compared the repo with the record
		return nil
	}
	mine := t.repo.ID == there.Fleet
	if t.repo.ID == "" {
		mine = t.repo.Name == there.Name && ownership.SameRepository(t.repo.URL, there.URL)
	}
	if !mine {
		return refuse(ownership.Describe(t.repo.Name, t.repo.ID, t.repo.Place()))
	}
	return nil
}

// FindDeclared is Find for commands that only look. In a fleet repo with a single management cluster it returns that one, even if it was
// not made yet. All these commands then report that with the same text.
func FindDeclared(store state.Store, name, dir string) (*Target, error) {
	t, err := find(store, name, dir)
	if name != "" || !errors.Is(err, ErrUnknownCluster) {
		return t, err
	}
	repo, other := ownership.RepoAt(dir)
	if other != nil || repo == nil || len(repo.Clusters) == 0 {
		return nil, err
	}
	if len(repo.Clusters) > 1 {
		return nil, diag.Usage("choose one with --management", "the fleet has several management clusters: %s", strings.Join(repo.Clusters, ", "))
	}
	return namedTarget(store, repo.Clusters[0], repo)
}

// FindDeclaredToAct is FindDeclared for commands that change the cluster, or keep something of it. Like Find it refuses a copy of the
// folder that the cluster follows: the keys, the places and the names that a copy declares may be others by now.
func FindDeclaredToAct(store state.Store, name, dir string) (*Target, error) {
	t, err := FindDeclared(store, name, dir)
	if err != nil {
		return nil, err
	}
	return t, t.CheckCopy()
}

// Host returns the host of the target. Without a record, which may have been lost, Host looks for the host that the fleet repo declares.
func (t *Target) Host(ctx context.Context) (host.Host, error) {
	h, err := t.findHost(ctx)
	return h, diag.About(t.Name, err)
}

func (t *Target) findHost(ctx context.Context) (host.Host, error) {
	if t.given != nil {
		return nil, diag.Errorf("leave --kubeconfig and --context out",
			"of the host of management cluster %s nothing is known but how its API server is reached", t.Name)
	}
	if t.Record != nil {
		return hosts.Remembered(ctx, t.Record, t.Cluster)
	}
	var declared v1alpha1.HostType
	if t.repo != nil {
		declared = t.repo.Hosts[t.Name]
	}
	if hosts.TraitsOf(v1alpha1.Host{Type: declared}, "").Elsewhere {
		// How to reach it only the record says: a kubeconfig that a repo names may run commands.
		return nil, t.elsewhere()
	}
	return hosts.Find(ctx, t.Name, declared, t.Cluster)
}

// NotHere tells whether this machine has nothing of the target: neither a record of it nor a host that could be it.
func (t *Target) NotHere(ctx context.Context) bool {
	if t.Record != nil || t.given != nil {
		return false
	}
	h, err := t.Host(ctx)
	if err != nil {
		return true
	}
	st, err := h.State(ctx)
	return err != nil || st == host.StateAbsent
}

// absent is the error of every command for a management cluster that does not exist.
func (t *Target) absent() error {
	if err := t.CheckKnown(); err != nil {
		return err
	}
	hint := "make it with `fleetctl init`"
	if t.Record == nil { // another machine's host is not seen from here
		hint += "; if another machine has made it, learn the way there: `fleetctl connect`"
	}
	return diag.NotReady(hint, "the management cluster %s does not exist", t.Name)
}

// elsewhere is the error if this machine does not know how to reach the cluster. The cluster may exist, for example if it is older than
// fleetctl.
func (t *Target) elsewhere() error {
	// Not every command with this hint has the flags.
	const reach = "say how it is reached: once for all with `fleetctl connect`, or with --kubeconfig or --context where the command has them"
	if t.repo != nil && slices.Contains(t.repo.Adopted, t.Name) {
		return diag.NotReady(reach, "this machine does not know how the management cluster %s is reached", t.Name)
	}
	return diag.NotReady("make it with `fleetctl init`; if it is there, "+reach, "the management cluster %s does not exist", t.Name)
}

// Kubeconfig returns the kubeconfig of the target, from its host. After a pivot it reaches the cluster that has taken over.
func (t *Target) Kubeconfig(ctx context.Context) ([]byte, error) {
	raw, err := t.kubeconfig(ctx)
	return raw, diag.About(t.Name, err)
}

func (t *Target) kubeconfig(ctx context.Context) ([]byte, error) {
	if t.given != nil {
		return hosts.Kubeconfig(t.given.Kubeconfig, t.given.Context)
	}
	if t.Pivoted() {
		raw, err := os.ReadFile(t.Cluster.Path(KubeconfigFile))
		return raw, diag.Wrap("read the kubeconfig of "+t.Record.PivotedTo, err, "")
	}
	h, err := t.Host(ctx)
	if err != nil {
		return nil, err
	}
	st, err := h.State(ctx)
	if err != nil {
		return nil, t.renewable(err)
	}
	switch st {
	case host.StateRunning:
		return h.Kubeconfig(ctx)
	case host.StateAbsent:
		return nil, t.absent()
	case host.StateStopped:
		return nil, diag.NotReady("start it with `fleetctl host start`", "the management cluster %s is stopped", t.Name)
	case host.StateBroken:
		return nil, diag.NotReady("finish it with `fleetctl init`", "the management cluster %s is half made", t.Name)
	case host.StateForeign:
	}
	return nil, ForeignError(ctx, h)
}

// renewable adds to the error of a management cluster that did not answer, or refused to, how this machine gets a new kubeconfig. Only a
// cluster that it was connected to has one that `fleetctl connect` replaces.
func (t *Target) renewable(err error) error {
	if t.Record == nil || !t.Record.Connected {
		return err
	}
	renew := "if it has a new kubeconfig: `fleetctl connect --management " + t.Name + " --kubeconfig FILE`"
	if hint := diag.Hint(err); hint != "" {
		return diag.Wrap("", err, hint+"; "+renew)
	}
	return diag.Wrap("", err, renew)
}

// Client returns a client of the target. A cluster of another fleet is an error.
func (t *Target) Client(ctx context.Context) (*kube.Client, error) {
	kubeconfig, err := t.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		return nil, err
	}
	return client, diag.About(t.Name, t.checkWhose(ctx, client))
}

const (
	// outlasts bounds how often an API server may end under one look at it.
	outlasts = 3
	// outlastTime is what its host gets to have it answer again.
	outlastTime = 2 * time.Minute
)

// Outlast calls look, and calls it again if the API server of the host ends meanwhile. An earlier command may have begun to stop the host
// when it was killed, and a host restarts an API server that died.
func Outlast(ctx context.Context, h host.Host, look func() error) error {
	for n := 1; ; n++ {
		err := look()
		if n == outlasts || !kube.IsLost(err) || ctx.Err() != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, outlastTime)
		_, startErr := h.Start(wait, nil)
		cancel()
		if startErr != nil {
			return errors.Join(err, startErr)
		}
	}
}
