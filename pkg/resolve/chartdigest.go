package resolve

import (
	"context"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/progress"
)

// chartPatience bounds the look for one chart over the network. An edit of files must not wait for a network that is not there, and
// `fleetctl lock` can look again with more patience.
const chartPatience = 5 * time.Second

// Charts finds the digests of features' charts for an edit. Close it.
type Charts struct {
	reader *components.Reader
	report progress.Reporter
	// bundled means that the charts come from a bundle, and not over the network.
	bundled bool
	// patience bounds the look for one chart over the network.
	patience time.Duration
	found    map[v1alpha1.LockedFeature]foundChart
}

type foundChart struct {
	sha256 string
	err    error
}

// OpenCharts returns Charts that look in the offline bundle bundleFile or, if that is "", over the network. They keep archives in cacheDir,
// from which validate renders them. Errors: a bundle that cannot be read.
func OpenCharts(ctx context.Context, report progress.Reporter, bundleFile, cacheDir string) (*Charts, error) {
	reader, err := components.Open(ctx, bundleFile, cacheDir)
	if err != nil {
		return nil, err
	}
	return &Charts{
		reader: reader, report: report, bundled: bundleFile != "", patience: chartPatience, found: map[v1alpha1.LockedFeature]foundChart{},
	}, nil
}

// Close removes what a bundle was unpacked to.
func (c *Charts) Close() error { return c.reader.Close() }

// Digest returns the digest of a chart's archive, as `fleetctl lock` would write it. It looks once for a chart, because an edit may be made
// several times. Errors: the bundle has no such chart, or it could not be fetched within a few seconds.
func (c *Charts) Digest(ctx context.Context, f v1alpha1.LockedFeature) (sha256 string, err error) {
	if known, ok := c.found[f]; ok {
		return known.sha256, known.err
	}
	if !c.bundled {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.patience)
		defer cancel()
	}
	step := c.report.Start("read the chart of feature " + f.Name)
	locked, err := c.reader.LockChart(ctx, f)
	if err != nil {
		step.Stop() // without its digest the feature is added all the same, and a note has the error
	} else {
		step.Done()
	}
	c.found[f] = foundChart{locked.SHA256, err}
	return locked.SHA256, err
}
