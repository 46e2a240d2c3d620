package management

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// HostInfo is what this machine knows of a management cluster's host.
type HostInfo struct {
	Name      string `json:"name"`
	Fleet     string `json:"fleet"`
	Type      string `json:"type"`
	State     string `json:"state"`
	Ephemeral bool   `json:"ephemeral,omitempty"`
	PivotedTo string `json:"pivotedTo,omitempty"`
	Repo      string `json:"repo"`
	// Error is why its state is unknown.
	Error string `json:"error,omitempty"`
	// Trouble is what keeps a host that runs from working, as far as its host can tell.
	Trouble string `json:"trouble,omitempty"`
}

// HostList is the hosts of this machine.
type HostList struct {
	FormatVersion string     `json:"formatVersion"`
	Hosts         []HostInfo `json:"hosts"`
}

// HostResult is what a command did to a host.
type HostResult struct {
	FormatVersion string `json:"formatVersion"`
	HostInfo
	Changed   bool     `json:"changed"`
	Leftovers []string `json:"leftovers,omitempty"`
}

// Moved tells whether the management cluster was pivoted away and its host is gone: what is left here serves the fleet repo.
func (r *HostResult) Moved() bool { return r.PivotedTo != "" && r.State == string(host.StateAbsent) }

// unknownState stands for that of a host that cannot be looked at.
const unknownState = "unknown"

// ListHosts looks at all hosts that this machine remembers. Of a record that cannot be read it tells the name and the error.
func ListHosts(ctx context.Context, deps Deps) (*HostList, error) {
	records, damaged, err := deps.Store.All()
	if err != nil {
		return nil, err
	}
	list := &HostList{FormatVersion: "1", Hosts: []HostInfo{}}
	for _, r := range records {
		t := &Target{Name: r.Name, Cluster: deps.Store.Cluster(r.Name), Record: &r}
		list.Hosts = append(list.Hosts, t.info(ctx))
	}
	for name, err := range damaged {
		list.Hosts = append(list.Hosts, HostInfo{Name: name, State: unknownState, Error: diag.InLine(err)})
	}
	slices.SortFunc(list.Hosts, func(a, b HostInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// info looks at the target's host.
func (t *Target) info(ctx context.Context) HostInfo {
	info := HostInfo{Name: t.Name, State: unknownState}
	if r := t.Record; r != nil {
		info.Fleet, info.Type, info.Repo, info.Ephemeral, info.PivotedTo = r.Fleet, r.HostType, r.Repo, r.Ephemeral, r.PivotedTo
	}
	h, err := t.Host(ctx)
	if err == nil {
		var st host.State
		if st, err = h.State(ctx); err == nil {
			info.State = string(st)
			if trouble := troubleOf(h); trouble != nil {
				info.Trouble = trouble.Error()
			}
		}
	}
	if err != nil {
		info.Error = err.Error()
	}
	return info
}

// troubleOf is what a host can tell of itself although its API server may not answer.
func troubleOf(h host.Host) error {
	if c, ok := h.(host.Complainer); ok {
		return c.Trouble()
	}
	return nil
}

// Pivoted tells whether another cluster has taken over. Its Flux reads a fleet repo without a remote from this machine all the same.
func (t *Target) Pivoted() bool { return t.Record != nil && t.Record.PivotedTo != "" }

// onHost takes the target's lock and calls a function with its host. Without a host it calls the function only after a pivot. command is
// the text that another process sees while it waits for the lock.
func onHost(
	ctx context.Context,
	t *Target,
	command string,
	work func(h host.Host, st host.State) (changed bool, leftovers []string, err error),
) (*HostResult, error) {
	h, err := t.Host(ctx)
	if err != nil {
		return nil, err
	}
	st, err := h.State(ctx)
	if err != nil {
		return nil, err
	}
	result := &HostResult{FormatVersion: "1"}
	if st == host.StateAbsent && !t.Pivoted() {
		if err := t.CheckKnown(); err != nil {
			return nil, err
		}
		result.HostInfo = t.info(ctx)
		return result, nil
	}
	unlock, err := t.Cluster.Lock(command)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := t.Reload(); err != nil { // as it is now that nobody else works on it
		return nil, err
	}
	if h, err = t.Host(ctx); err != nil {
		return nil, err
	}
	if st, err = h.State(ctx); err != nil {
		return nil, err
	}
	if st == host.StateForeign {
		return nil, ForeignError(ctx, h)
	}
	if result.Changed, result.Leftovers, err = work(h, st); err != nil {
		return nil, err
	}
	result.HostInfo = t.info(ctx)
	return result, nil
}

// StartHost starts a stopped host with all its data, also after a reboot, and the server of its fleet repo. After a pivot it starts only
// the server.
func StartHost(ctx context.Context, deps Deps, t *Target) (*HostResult, error) {
	result, err := onHost(ctx, t, "fleetctl host start", func(h host.Host, st host.State) (bool, []string, error) {
		if st == host.StateAbsent {
			served, err := t.ServeAgain(ctx, deps)
			return served, nil, err
		}
		if st == host.StateBroken {
			return false, nil, diag.NotReady("finish it with `fleetctl init`", "the management cluster %s is half made", t.Name)
		}
		if err := t.checkRestart(ctx, deps.Store, h, InMemoryPort); err != nil {
			return false, nil, err
		}
		step := deps.Report.Start("start management cluster")
		if err := h.Create(ctx, host.CreateOptions{Detail: step.Detail}); err != nil {
			step.Fail(err)
			return false, nil, err
		}
		step.Done()
		if err := Outlast(ctx, h, func() error { return t.keepAccess(ctx, h) }); err != nil {
			return false, nil, err
		}
		served, err := t.ServeAgain(ctx, deps)
		return served || st != host.StateRunning, nil, err
	})
	if err == nil && result.State == string(host.StateAbsent) && !t.Pivoted() {
		return nil, t.absent()
	}
	return result, err
}

// keepAccess writes the kubeconfig anew: certificates may have been renewed, and a port that somebody took is another one now.
func (t *Target) keepAccess(ctx context.Context, h host.Host) error {
	kubeconfig, err := h.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		return err
	}
	if err := t.checkWhose(ctx, client); err != nil {
		return err
	}
	if err := kube.WriteKubeconfig(t.Cluster.Path(KubeconfigFile), kubeconfig); err != nil {
		return err
	}
	if t.Record == nil || t.Record.MergedInto == "" {
		return nil
	}
	return kube.MergeKubeconfig(ctx, t.Record.MergedInto, ContextName(t.Name), kubeconfig)
}

// ServeAgain starts the server of a fleet repo without a remote where there was one.
func (t *Target) ServeAgain(ctx context.Context, deps Deps) (bool, error) {
	dir := t.Cluster.Path(GitServeDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	was, err := gitserve.Status(ctx, dir)
	if err != nil || was.RepoDir == "" {
		return false, err
	}
	_, started, err := gitserve.Ensure(ctx, gitserve.Spec{
		StateDir: dir, RepoDir: was.RepoDir, Listen: was.Listen, Started: true, Executable: deps.Executable, Args: []string{"git-serve", dir},
	})
	return started, err
}

// stopServing ends what serves the target's fleet repo, and tells whether it ran.
func (t *Target) stopServing(ctx context.Context) (bool, error) {
	was, err := gitserve.Status(ctx, t.Cluster.Path(GitServeDir))
	if err != nil {
		return false, err
	}
	return was.Running, gitserve.Stop(ctx, t.Cluster.Path(GitServeDir))
}

// StopHost ends a host's processes and the server of its fleet repo. The host's data stay. After a pivot it ends only the server.
func StopHost(ctx context.Context, t *Target) (*HostResult, error) {
	return onHost(ctx, t, "fleetctl host stop", func(h host.Host, st host.State) (bool, []string, error) {
		if st == host.StateAbsent {
			ran, err := t.stopServing(ctx)
			return ran, nil, err
		}
		s, ok := h.(host.Stopper)
		if !ok {
			return false, nil, diag.Usage("stop its container, or the cluster itself, with its own tools",
				"fleetctl does not stop the host of management cluster %s", t.Name)
		}
		if err := s.Stop(ctx); err != nil {
			return false, nil, err
		}
		return st == host.StateRunning, nil, gitserve.Stop(ctx, t.Cluster.Path(GitServeDir))
	})
}

// DeleteHost removes a host with all its data. It refuses if workload clusters exist only there, or if that cannot be found out, unless
// force is set. Such clusters are then left without a management cluster. The fleet repo and the state folder stay.
func DeleteHost(ctx context.Context, t *Target, force bool) (*HostResult, error) {
	if t.Record != nil && t.Record.Connected {
		return nil, diag.Errorf("delete it there; `fleetctl connect --forget` forgets the way",
			"the host of management cluster %s is another machine's", t.Name)
	}
	return onHost(ctx, t, "fleetctl host delete", func(h host.Host, st host.State) (bool, []string, error) {
		if st == host.StateAbsent {
			return false, nil, nil
		}
		if !force {
			if err := Outlast(ctx, h, func() error { return t.mayDelete(ctx, st) }); err != nil {
				return false, nil, err
			}
		}
		if err := gitserve.Stop(ctx, t.Cluster.Path(GitServeDir)); err != nil {
			return false, nil, err
		}
		left, err := h.Delete(ctx)
		return true, left, err
	})
}

func (t *Target) mayDelete(ctx context.Context, st host.State) error {
	if t.Pivoted() || st == host.StateBroken {
		return nil
	}
	if st != host.StateRunning {
		return diag.Errorf("start it with `fleetctl host start`, so that it can be asked; --force deletes it anyway",
			"the management cluster %s is %s: nobody can tell whether workload clusters live only there", t.Name, st)
	}
	client, err := t.Client(ctx)
	if err != nil {
		return err
	}
	clusters, err := Clusters(ctx, client)
	if err != nil {
		return diag.Wrap("list the workload clusters of "+t.Name, err, "--force deletes it anyway")
	}
	if len(clusters) > 0 {
		return diag.Errorf("delete or move them first (see `fleetctl teardown --help`); --force leaves them without a management cluster, and "+
			"`fleetctl init` would make them a second time: take a snapshot before that (`fleetctl backup`), and come back with `fleetctl restore`",
			"workload clusters live only on the management cluster %s: %s", t.Name, strings.Join(FullNames(clusters), ", "))
	}
	return t.stillEmpty(ctx, client)
}

// stillEmpty suspends Flux, which may be about to make a Cluster, and looks again; where there is one, Flux goes on.
func (t *Target) stillEmpty(ctx context.Context, client *kube.Client) error {
	system := flux.NewSystem(client)
	suspended, err := system.Suspend(ctx)
	if err == nil {
		var now []capi.Cluster
		if now, err = Clusters(ctx, client); err == nil {
			err = Appeared(t.Name, nil, now, "before Flux was suspended")
		}
	}
	if err != nil && len(suspended) > 0 {
		_, resumeErr := system.ResumeOnly(context.WithoutCancel(ctx), suspended)
		err = errors.Join(err, resumeErr)
	}
	return err
}
