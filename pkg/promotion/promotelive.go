package promotion

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/management"
)

// Live is what an environment runs on a management cluster right after a promotion.
type Live struct {
	Environment       string `json:"environment"`
	ManagementCluster string `json:"managementCluster"`
	// Applied is the commit that the management cluster has applied. It is empty if there is none, or if nobody could
	// look.
	Applied string `json:"applied,omitempty"`
	// Arrived says that this is the commit of the tag, and that everything is healthy there.
	Arrived bool `json:"arrived"`
	// NotLookedAt says why nothing is known of the cluster. Missing says what differs from the tag. Both are empty if
	// Arrived is true.
	NotLookedAt string `json:"notLookedAt,omitempty"`
	Missing     string `json:"missing,omitempty"`
}

// live looks at the environments of the channel on all management clusters that are moved. A cluster that cannot be
// looked at is no error, because the change is made already.
func (p *run) live(ctx context.Context, environments []string, commit string) []Live {
	out := []Live{}
	for i := range p.repo.Fleet.Spec.ManagementClusters {
		m := &p.repo.Fleet.Spec.ManagementClusters[i]
		if p.opts.Cluster != "" && p.opts.Cluster != m.Name {
			continue
		}
		why := ""
		var looks []environmentLook
		target, err := management.Find(p.store, m.Name, p.repo.Dir)
		if err == nil && !target.Known() {
			why = "this machine does not know the management cluster"
		} else if looks, err = p.environmentsOn(ctx, m, environments, commit); err != nil {
			why = err.Error()
		}
		for j, name := range environments {
			one := Live{Environment: name, ManagementCluster: m.Name, NotLookedAt: why}
			if why == "" {
				one.Applied, one.Arrived = looks[j].Commit, len(looks[j].Missing) == 0
				if !one.Arrived {
					one.Missing = looks[j].Missing[0]
				}
			}
			out = append(out, one)
		}
	}
	return out
}
