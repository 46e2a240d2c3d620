package promotion

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
)

// promoteLook bounds the look at one management cluster.
const promoteLook = 30 * time.Second

const skipHealthHint = "wait for it, correct it, or promote without this check with --skip-health"

// checkHealth checks that the environments that follow the branch are healthy at the newest commit, on every management
// cluster that has them. It returns their names. The error lists everything that is not healthy.
func (p *run) checkHealth(ctx context.Context) ([]string, error) {
	lower := p.repo.Fleet.EnvironmentsOf(v1alpha1.MainChannel)
	var missing []string
	for i := range p.repo.Fleet.Spec.ManagementClusters {
		m := &p.repo.Fleet.Spec.ManagementClusters[i]
		if len(lower) == 0 {
			break
		}
		looks, err := p.environmentsOn(ctx, m, lower, p.head)
		if err != nil {
			hint := skipHealthHint
			if own := diag.Hint(err); own != "" {
				hint = own + "; or promote without a look with --skip-health"
			}
			return nil, diag.Wrap("look at management cluster "+m.Name, err, hint)
		}
		for _, l := range looks {
			for _, reason := range l.Missing {
				missing = append(missing, fmt.Sprintf("environment %s on %s: %s", l.Environment, m.Name, reason))
			}
		}
	}
	if len(missing) > 0 {
		return nil, diag.NotReady(skipHealthHint, "%w %.12s:\n  %s", errNotHealthy, p.head, strings.Join(missing, "\n  "))
	}
	return lower, nil
}

// environmentLook is the state of an environment on one management cluster.
type environmentLook struct {
	Environment string
	flux.Applied
}

// environmentsOn looks at environments on a management cluster: what its Flux has applied, and whether their clusters
// are up. commit is the commit that they should have; "" accepts the present one.
func (p *run) environmentsOn(
	ctx context.Context,
	m *v1alpha1.ManagementCluster,
	environments []string,
	commit string,
) ([]environmentLook, error) {
	looking, cancel := context.WithTimeout(ctx, promoteLook)
	defer cancel()
	target, err := management.Find(p.store, m.Name, p.repo.Dir)
	if err != nil {
		return nil, err
	}
	client, err := target.Client(looking)
	if err != nil {
		return nil, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	declared, _, err := p.repo.Clusters()
	if err != nil {
		return nil, err
	}
	system := flux.NewSystem(client)
	looks := make([]environmentLook, len(environments))
	var clusters []capi.Cluster
	var group errgroup.Group
	group.Go(func() (err error) {
		clusters, err = manager.Clusters(looking)
		return err
	})
	for i, name := range environments {
		group.Go(func() error {
			var err error
			looks[i], err = p.lookAt(looking, system, m, name, commit)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var up []fleetrepo.Cluster
	for _, d := range declared {
		i := slices.Index(environments, d.Environment)
		if i < 0 || d.ManagementCluster != m.Name {
			continue
		}
		if why := notAvailable(clusters, d); why != "" {
			looks[i].Missing = append(looks[i].Missing, fmt.Sprintf("cluster %s: %s", d.Name, why))
			continue
		}
		up = append(up, d)
	}
	p.lookInside(ctx, manager, up, looks, commit)
	return looks, nil
}

// lookAt looks at the Kustomizations of an environment, in each cloud in which the management cluster has the
// environment.
func (p *run) lookAt(
	ctx context.Context, system *flux.System, m *v1alpha1.ManagementCluster, environment, commit string,
) (environmentLook, error) {
	look := environmentLook{Environment: environment}
	for i, name := range p.repo.AppliedBy(m, environment) {
		applied, err := system.Applied(ctx, name, commit)
		if err != nil {
			return look, err
		}
		if i == 0 {
			look.Commit = applied.Commit
			commit = cmp.Or(commit, applied.Commit)
		}
		look.Missing = append(look.Missing, applied.Missing...)
	}
	return look, nil
}

// notAvailable says why a declared cluster is not up, or differs from its file; "" if neither is so.
func notAvailable(clusters []capi.Cluster, d fleetrepo.Cluster) string {
	i := slices.IndexFunc(clusters, func(c capi.Cluster) bool { return c.Namespace == d.Name && c.Name == d.Name })
	if i < 0 {
		return "it does not exist yet"
	}
	switch c := clusters[i]; {
	case !c.Available:
		return cmp.Or(c.Reason, "it is not available")
	case c.RollingOut != "":
		return "it is rolling out: " + c.RollingOut
	default:
		return upgrade.Holds(&c, d.KubernetesVersion, d.KubernetesVersion)
	}
}
