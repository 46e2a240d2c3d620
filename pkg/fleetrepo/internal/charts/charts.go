// Package charts compares and merges the files of three versions of one chart: the team's, the one that fleetctl wrote,
// and this fleetctl's. It knows files, and neither a repository nor its history.
package charts

import (
	"github.com/blang/semver/v4"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// State compares a chart of the repo with this fleetctl's chart.
type State string

// The states of a chart.
const (
	// Current means that the chart has everything new. Its team may have changed it.
	Current State = "current"
	// Behind means that this fleetctl has something new for the chart.
	Behind State = "behind"
	// Ahead means that a newer fleetctl than this one wrote the chart.
	Ahead State = "ahead"
	// Own means that the chart belongs to the team: fleetctl has no chart of that name, or fleet.lock has no record of
	// it.
	Own State = "own"
)

// Chart is a chart of the fleet repo.
type Chart struct {
	Name string `json:"name"`
	// Fleetctl is the version of fleetctl that wrote the chart.
	Fleetctl string `json:"fleetctl,omitempty"`
	State    State  `json:"state"`
	// Changed says that the team has changed the chart since.
	Changed bool `json:"changed"`
}

// Compare compares a chart with the files have to its record in fleet.lock and to the files of this fleetctl's chart. locked and brought
// may be nil.
func Compare(name string, have []manifest.File, locked *v1alpha1.LockedChart, brought []manifest.File) Chart {
	c := Chart{Name: name, State: Own}
	switch mine := version.Get().Version; {
	case brought == nil:
	case locked == nil:
		// It does not matter where this chart comes from, and nothing says it.
		if scaffold.Digest(have) == scaffold.Digest(brought) {
			c.Fleetctl, c.State = mine, Current
		}
	default:
		c.Fleetctl, c.State, c.Changed = locked.Fleetctl, Behind, scaffold.Digest(have) != locked.SHA256
		if scaffold.Digest(brought) == locked.SHA256 {
			c.State = Current
		} else if newer(locked.Fleetctl, mine) {
			c.State = Ahead
		}
	}
	return c
}

// newer tells whether version a is later than version b. It is false for builds that are not releases.
func newer(a, b string) bool {
	va, err := semver.ParseTolerant(a)
	if err != nil {
		return false
	}
	vb, err := semver.ParseTolerant(b)
	return err == nil && va.GT(vb)
}
