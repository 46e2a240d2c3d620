package converge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
)

// Upgraded is a provider, cert-manager or Flux that init brings from one version to another.
type Upgraded struct {
	Name string `json:"name"`
	// Type is empty for cert-manager and for Flux.
	Type string `json:"type,omitempty"`
	From string `json:"from"`
	To   string `json:"to"`
}

const fluxName = "flux"

// IsFlux tells whether it is Flux that is upgraded.
func (u Upgraded) IsFlux() bool { return u.Name == fluxName && u.Type == "" }

// String is "core provider cluster-api v1.13.1 to v1.14.2".
func (u Upgraded) String() string {
	name := u.Name
	if u.Type != "" {
		name = u.Type + " provider " + u.Name
	}
	return fmt.Sprintf("%s %s to %s", name, u.From, u.To)
}

func upgradedOf(all []releases.Upgrade) []Upgraded {
	var out []Upgraded
	for _, u := range all {
		out = append(out, Upgraded{Name: u.Name, Type: string(u.Type), From: u.From, To: u.Version})
	}
	return out
}

// fluxUpgrade is what brings Flux on a cluster to the version of fleet.yaml; nil where it runs in that version, or does not run.
func fluxUpgrade(ctx context.Context, s *session.Session, system *flux.System) ([]Upgraded, error) {
	wanted := s.Fleet.Spec.Flux.Version
	from, err := system.OtherVersion(ctx, wanted)
	if from == "" || err != nil {
		return nil, err
	}
	return []Upgraded{{Name: fluxName, From: from, To: wanted}}, nil
}

// PlanUpgrades is what a dry run says of the versions on a cluster that is there; nil where nothing would be upgraded. Flux comes last, and
// is upgraded beside the others. What could not be upgraded is the error that init would give.
func PlanUpgrades(ctx context.Context, s *session.Session, v *resolve.Versions) ([]Upgraded, error) {
	there, err := standing.ForDryRun(ctx, s)
	if there == nil || err != nil {
		return nil, err
	}
	manager, err := capi.New(there.Client)
	if err != nil {
		return nil, err
	}
	upgrades, err := manager.Upgrades(ctx, v.Source, v.Providers)
	if err != nil {
		return nil, err
	}
	ofFlux, err := fluxUpgrade(ctx, s, flux.NewSystem(there.Client))
	return append(upgradedOf(upgrades), ofFlux...), err
}

// The snapshots of a management cluster that are kept on this machine, and how many of them: each holds Secrets.
const (
	snapshotsDir  = "snapshots"
	snapshotsKept = 5
)

// keepSnapshot writes what belongs to the Clusters to a private file of this machine, before something that acts on it is replaced. A
// cluster without any needs none, and gets no name of a file.
func keepSnapshot(
	ctx context.Context,
	s *session.Session,
	manager *capi.Manager,
	upgrades []releases.Upgrade,
	detail func(string),
) (name string, err error) {
	detail("taking a snapshot of the Cluster API objects")
	content, objects, err := manager.Snapshot(ctx)
	if err != nil || objects == 0 {
		return "", err
	}
	dir := s.Cluster.Path(snapshotsDir)
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("keep a snapshot: %w", err)
	}
	_ = atomicfile.Sweep(dir) // what a killed run left of an earlier snapshot, which has Secrets
	header := fmt.Sprintf("# %s of management cluster %s before %s\n", plain.Count(objects, "object"), s.Mgmt.Name, names(upgrades))
	name = filepath.Join(dir, "before-upgrade-"+time.Now().UTC().Format("20060102T150405Z")+".yaml")
	if err := atomicfile.Write(name, append([]byte(header), content...), 0o600); err != nil {
		return "", fmt.Errorf("keep a snapshot: %w", err)
	}
	return name, pruneSnapshots(dir)
}

func names(upgrades []releases.Upgrade) string {
	all := make([]string, 0, len(upgrades))
	for _, u := range upgrades {
		all = append(all, u.String())
	}
	return strings.Join(all, ", ")
}

// pruneSnapshots removes all but the newest.
func pruneSnapshots(dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name, and that by time
	if err != nil {
		return fmt.Errorf("look for old snapshots: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".yaml") })
	var errs []error
	for _, e := range entries[:max(len(entries)-snapshotsKept, 0)] {
		errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}
