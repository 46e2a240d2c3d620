package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// Target is a management cluster that an earlier command made, as the commands that look at it or remove it find it again.
type Target struct {
	Name    string
	Cluster state.Cluster
	// Record is nil where this machine remembers nothing of it.
	Record *state.Record

	// repo is the fleet repo that the command runs in; nil where it runs in none, or in one that has no such management cluster.
	repo *repoOf
}

// ErrUnknownCluster says that this machine knows no such management cluster.
var ErrUnknownCluster = errors.New("no such management cluster is known on this machine")

// ErrOtherFleet says that a management cluster is another fleet's than the one that is worked with.
var ErrOtherFleet = errors.New("belongs to another fleet")

// FindTarget finds the management cluster called name; with an empty name it is the one of the fleet repo that dir is in or, where dir is in none,
// the only one that there is. Another fleet's cluster of the name that the fleet repo gives its own is an ErrOtherFleet.
func FindTarget(store state.Store, name, dir string) (*Target, error) {
	repo, err := repoAt(dir)
	if err != nil {
		return nil, err
	}
	if name != "" {
		return namedTarget(store, name, repo)
	}
	records, err := store.List()
	if err != nil {
		return nil, err
	}
	here := records[:0:0]
	for _, r := range records {
		mine := r.Repo == dir
		if repo != nil && repo.declares(r.Name) {
			mine = repo.owns(&r)
		}
		if mine {
			here = append(here, r)
		}
	}
	if len(here) == 0 && repo != nil {
		for i := range records {
			if repo.declares(records[i].Name) {
				return nil, repo.notOurs(&records[i])
			}
		}
	}
	if len(here) == 0 && repo == nil {
		here = records
	}
	switch len(here) {
	case 0:
		return nil, diag.Wrap("find the management cluster", ErrUnknownCluster, "run `fleetctl init`, or name one with --cluster")
	case 1:
		return newTarget(store, &here[0], repo), nil
	}
	names := make([]string, 0, len(here))
	for _, r := range here {
		names = append(names, r.Name)
	}
	return nil, diag.Usage("choose one with --cluster", "this machine has several management clusters: %s", strings.Join(names, ", "))
}

func namedTarget(store state.Store, name string, repo *repoOf) (*Target, error) {
	if name != filepath.Base(name) || name == "." || name == ".." { // it is a folder's name too
		return nil, diag.Usage("give the name of a management cluster, as in fleet.yaml", "%.80q cannot be the name of a management cluster", name)
	}
	if repo != nil && !repo.declares(name) {
		repo = nil // it is not about this repo
	}
	t := &Target{Name: name, Cluster: store.Cluster(name), repo: repo}
	r, err := t.Cluster.Load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return t, nil
	case err != nil:
		return nil, err
	case repo != nil && !repo.owns(r):
		return nil, repo.notOurs(r)
	}
	t.Record = r
	return t, nil
}

func newTarget(store state.Store, r *state.Record, repo *repoOf) *Target {
	if repo != nil && !repo.declares(r.Name) {
		repo = nil
	}
	return &Target{Name: r.Name, Cluster: store.Cluster(r.Name), Record: r, repo: repo}
}

// checkWhose refuses the cluster that client reaches where it is another fleet's than what this machine remembers, and the repo here, say. One
// that knows no fleet was made before clusters did.
func (t *Target) checkWhose(ctx context.Context, client *kube.Client) error {
	there, err := readClaim(ctx, client)
	if err != nil || there == nil {
		return err
	}
	refuse := func(here string) error {
		return diag.Errorf("work with it from its own fleet repo, or in no fleet repo at all with --cluster; "+chooseNameHint,
			"the cluster %s %w: %s; this is %s", t.Name, ErrOtherFleet, there, here)
	}
	if r := t.Record; r != nil && (r.FleetID != "" && r.FleetID != there.fleet || r.FleetID == "" && r.Fleet != there.name || r.Name != there.cluster) {
		return refuse(describeFleet(r.Fleet, r.FleetID, cmp.Or(r.GitURL, r.Repo)) + ", as management cluster " + r.Name)
	}
	if t.repo == nil || t.Record != nil { // FindTarget has compared the repo with the record
		return nil
	}
	mine := t.repo.id == there.fleet
	if t.repo.id == "" {
		mine = t.repo.name == there.name && sameRepository(t.repo.url, there.url)
	}
	if !mine {
		return refuse(describeFleet(t.repo.name, t.repo.id, t.repo.place()))
	}
	return nil
}

// FindDeclared is FindTarget for commands that only look: in a fleet repo with a single management cluster it is that one, also where nobody has made it
// yet. They then say so, each in the same words.
func FindDeclared(store state.Store, name, dir string) (*Target, error) {
	t, err := FindTarget(store, name, dir)
	if name != "" || !errors.Is(err, ErrUnknownCluster) {
		return t, err
	}
	repo, other := repoAt(dir)
	if other != nil || repo == nil || len(repo.clusters) == 0 {
		return nil, err
	}
	if len(repo.clusters) > 1 {
		return nil, diag.Usage("choose one with --cluster", "the fleet has several management clusters: %s", strings.Join(repo.clusters, ", "))
	}
	return namedTarget(store, repo.clusters[0], repo)
}

// Host of the target. Without a record it is looked for, as what the fleet repo declares: the state folder may have been lost.
func (t *Target) Host(ctx context.Context) (host.Host, error) {
	if t.Record != nil {
		return hosts.Remembered(ctx, t.Record, t.Cluster)
	}
	var declared v1alpha1.HostType
	if t.repo != nil {
		declared = t.repo.hosts[t.Name]
	}
	switch declared {
	case v1alpha1.HostExisting, v1alpha1.HostWorkload:
		// How to reach it only the record says: a kubeconfig that a repo names may run commands.
		return nil, t.absent()
	case v1alpha1.HostEmbedded:
		return hosts.New(ctx, t.Name, v1alpha1.Host{Type: declared}, t.Cluster, "")
	case v1alpha1.HostKind:
	}
	return hosts.Find(ctx, t.Name, t.Cluster)
}

// absent is the error of every command that looks at a management cluster which is not there.
func (t *Target) absent() error {
	return diag.NotReady("make it with `fleetctl init`", "the management cluster %s does not exist", t.Name)
}

// Kubeconfig of the target, from its host; after a pivot it is the one of the cluster that took over.
func (t *Target) Kubeconfig(ctx context.Context) ([]byte, error) {
	if t.pivoted() {
		raw, err := os.ReadFile(t.Cluster.Path(kubeconfigFile))
		return raw, diag.Wrap("read the kubeconfig of "+t.Record.PivotedTo, err, "")
	}
	h, err := t.Host(ctx)
	if err != nil {
		return nil, err
	}
	st, err := h.State(ctx)
	if err != nil {
		return nil, err
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
	return nil, foreignError(ctx, h)
}

// Client of the target. A cluster that belongs to another fleet is an error.
func (t *Target) Client(ctx context.Context) (*kube.Client, error) {
	kubeconfig, err := t.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		return nil, err
	}
	return client, t.checkWhose(ctx, client)
}

// KubeconfigOptions say which kubeconfig is wanted.
type KubeconfigOptions struct {
	Target *Target
	// Workload is NAME or NAMESPACE/NAME of a workload cluster; empty: the management cluster itself.
	Workload string
	// Declared says that the fleet repo has that workload cluster: where it is not there, it is not there yet.
	Declared bool
	// MergeInto is a kubeconfig file that gets a context for it.
	MergeInto string
	// OutputFile is a private file that it is written to.
	OutputFile string
}

// Kubeconfig returns a kubeconfig for the management cluster or one of its workload clusters.
func Kubeconfig(ctx context.Context, _ Deps, o KubeconfigOptions) ([]byte, error) {
	content, err := o.Target.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	name := o.Target.Name
	if o.Workload != "" {
		client, err := kube.New(content, kube.Options{})
		if err != nil {
			return nil, err
		}
		manager, err := capi.New(client)
		if err != nil {
			return nil, err
		}
		cluster, err := findCluster(ctx, manager, o.Workload)
		if o.Declared && diag.Code(err) == diag.ExitUsage {
			return nil, diag.NotReady("`fleetctl status` shows what Flux has applied", "the management cluster %s has not made cluster %s yet", o.Target.Name, o.Workload)
		}
		if err != nil {
			return nil, err
		}
		content, err = manager.WorkloadKubeconfig(ctx, cluster.Key())
		if kube.IsAbsent(err) {
			return nil, diag.NotReady("`fleetctl status` shows how far it is", "cluster %s has no kubeconfig yet", cluster.FullName())
		}
		if err != nil {
			return nil, err
		}
		name = cluster.Name
	}
	if o.OutputFile != "" {
		return content, kube.WriteKubeconfig(o.OutputFile, content)
	}
	if o.MergeInto == "" {
		return content, nil
	}
	if err := kube.MergeKubeconfig(ctx, o.MergeInto, contextName(name), content); err != nil {
		return nil, err
	}
	if o.Workload == "" && o.Target.Record != nil {
		r := *o.Target.Record
		r.MergedInto = o.MergeInto
		return content, o.Target.Cluster.Save(r)
	}
	return content, nil
}

// findCluster finds a workload cluster by NAME or NAMESPACE/NAME.
func findCluster(ctx context.Context, manager *capi.Manager, wanted string) (*capi.Cluster, error) {
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	var found []capi.Cluster
	for _, c := range clusters {
		if wanted == c.Name || wanted == c.FullName() {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 1:
		return &found[0], nil
	case 0:
		hint := "there are none"
		if len(clusters) > 0 {
			hint = "there are: " + strings.Join(fullNames(clusters), ", ")
		}
		return nil, diag.Usage(hint, "no workload cluster %s", wanted)
	}
	return nil, diag.Usage("write NAMESPACE/NAME: "+strings.Join(fullNames(found), " or "), "there are %d workload clusters called %s", len(found), wanted)
}

// fullNames are the clusters as NAMESPACE/NAME.
func fullNames(clusters []capi.Cluster) []string {
	names := make([]string, 0, len(clusters))
	for _, c := range clusters {
		names = append(names, c.FullName())
	}
	return names
}

// WorkloadNames lists the workload clusters of the target as NAMESPACE/NAME.
func WorkloadNames(ctx context.Context, t *Target) ([]string, error) {
	client, err := t.Client(ctx)
	if err != nil {
		return nil, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	return fullNames(clusters), nil
}
