package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/handover"
)

// onlyHere are the Clusters that nothing else manages. What another management cluster of the fleet has taken over, as those clusters say themselves, is no
// reason to keep this one, and nothing that it may delete.
func (t *teardown) onlyHere(ctx context.Context, clusters []capi.Cluster) ([]capi.Cluster, error) {
	record := t.opts.Target.Record
	if record == nil {
		return clusters, nil
	}
	elsewhere, err := handover.ManagedElsewhere(ctx, t.client, clusters, record.FleetID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(clusters), func(c capi.Cluster) bool {
		by, is := elsewhere[c.FullName()]
		if is && !t.told[c.FullName()] {
			if t.told == nil {
				t.told = map[string]bool{}
			}
			t.told[c.FullName()] = true
			t.Report.Warn(fmt.Sprintf("%s is managed by %s by now: what %s still has of it is left as it is", c.FullName(), by, t.opts.Target.Name))
		}
		return is
	}), nil
}
