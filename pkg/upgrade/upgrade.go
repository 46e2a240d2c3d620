// Package upgrade makes the next step of a workload cluster's upgrade: its control plane first, and its pools once the
// control plane is upgraded.
package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// upgradeLook bounds the look at a control plane before it, or its pools, are upgraded.
const upgradeLook = 15 * time.Second

// Options say what to upgrade.
type Options struct {
	// Cluster to upgrade, by name or environment/name.
	Cluster string
	fleetrepo.UpgradeOptions
	// SkipHealth makes the change without a look at the control plane.
	SkipHealth bool
}

// Next returns the edit that is the next step of a cluster's upgrade. Where this machine knows the management cluster it looks whether the
// control plane is as far as the files say, which is what the step stands on; where it does not, or the management cluster does not answer,
// a note says so. Errors of the edit: those of fleetrepo's Upgrade, and not ready for a control plane that is not there yet.
func Next(ctx context.Context, store state.Store, o Options) func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	return func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		e, err := r.Upgrade(o.Cluster, o.UpgradeOptions)
		if err != nil || o.SkipHealth {
			return e, err
		}
		c, err := r.Cluster(o.Cluster)
		if err != nil {
			return nil, err
		}
		if planned, err := e.Changes.Plan(r.Dir); err != nil || len(planned) == 0 {
			return e, err
		}
		cluster, unseen := controlPlaneOf(ctx, store, r, c)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if unseen != nil {
			e.Notes = append(e.Notes, fmt.Sprintf("Whether its control plane runs %s was not looked at: %v.", c.KubernetesVersion, unseen))
			return e, nil
		}
		if why := Holds(cluster, c.KubernetesVersion, o.Version); why != "" {
			return nil, diag.NotReady("wait until `fleetctl status` shows it there; --skip-health goes on without a look",
				"the control plane of cluster %s goes first: %s", c.Name, why)
		}
		return e, nil
	}
}

// controlPlaneOf looks at a declared cluster on its management cluster; nil where it is not made yet. The error says why it could not look.
func controlPlaneOf(ctx context.Context, store state.Store, r *fleetrepo.Repo, c *fleetrepo.Cluster) (*capi.Cluster, error) {
	target, err := management.Find(store.For(c.ManagementCluster), c.ManagementCluster, r.WorkTree)
	if err != nil {
		return nil, err
	}
	if !target.Known() {
		return nil, fmt.Errorf("this machine does not know the management cluster %s", c.ManagementCluster)
	}
	ctx, cancel := context.WithTimeout(ctx, upgradeLook)
	defer cancel()
	client, err := target.Client(ctx)
	if err != nil {
		return nil, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	return manager.Cluster(ctx, kube.Key{Namespace: c.Name, Name: c.Name})
}

// Holds says why a control plane that the files have at one version is not ready for the step to wanted; "" if it is. Pools follow when
// all of it runs that version. It moves on itself when none of it would leave a minor version out.
func Holds(cluster *capi.Cluster, declared, wanted string) string {
	if cluster == nil {
		return ""
	}
	to, err := semver.ParseTolerant(wanted)
	if err != nil {
		return "" // fleetrepo's Upgrade has refused it
	}
	pools := declared == wanted
	behind := slices.IndexFunc(cluster.ControlPlaneVersions, func(text string) bool {
		runs, err := semver.ParseTolerant(text)
		if err != nil || runs.Major != to.Major {
			return err == nil && runs.Major < to.Major
		}
		// Clouds say v1.36, or v1.36.3-gke.100.
		if runs.Pre = nil; strings.Count(text, ".") < 2 {
			runs.Patch = to.Patch
		}
		return pools && runs.LT(to) || runs.Minor+1 < to.Minor
	})
	r := cluster.ControlPlaneReplicas
	switch {
	case behind >= 0:
		return fmt.Sprintf("it runs %s, and the fleet repo has it at %s", strings.Join(cluster.ControlPlaneVersions, " and "), declared)
	case pools && r.UpToDate < r.Desired && r.Desired == 1:
		return "its node is not as the fleet repo has it"
	case pools && r.UpToDate < r.Desired:
		return fmt.Sprintf("%d of its %s %s as the fleet repo says", r.UpToDate, plain.Count(int(r.Desired), "node"), plain.Are(int(r.UpToDate)))
	}
	return ""
}
