package lifecycle

import (
	"errors"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/drain"
	"github.com/fleetctl/fleetctl/pkg/leaving"
)

// What is deleted without being drained says why, and what it has in its cloud as far as anybody knows.
func TestPlanned(t *testing.T) {
	items := []drain.Item{{What: drain.LoadBalancer, Object: "Service default/web"}}
	for name, test := range map[string]struct {
		inside   leaving.Inside
		skip     bool
		want     []string
		not      string
		stays    bool
		notAsked bool
	}{
		"drained":       {inside: leaving.Inside{Items: items}},
		"nothing there": {inside: leaving.Inside{}, skip: true},
		"--skip-drain":  {inside: leaving.Inside{Items: items}, skip: true, want: []string{"because of --skip-drain"}, stays: true},
		"being deleted": {
			inside: leaving.Inside{Items: items, Cluster: capi.Cluster{Deleting: true}},
			want:   []string{"is being deleted already"}, stays: true,
		},
		"dead": {
			inside: leaving.Inside{Dead: errors.New("refused")},
			want:   []string{"is not known, and stays there: refused"}, notAsked: true,
		},
		"dead, being deleted": {
			inside: leaving.Inside{Dead: errors.New("refused"), Cluster: capi.Cluster{Deleting: true}},
			want:   []string{"was not drained before"}, notAsked: true,
		},
		"says nothing": {
			inside: leaving.Inside{Untold: errors.New("forbidden")},
			want:   []string{"is not known, and stays there: forbidden"}, notAsked: true,
		},
		"says a part": {
			inside: leaving.Inside{Untold: errors.New("forbidden"), Items: items},
			want:   []string{"is not known, and stays there: forbidden", "Service default/web"}, not: "being deleted", notAsked: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			td := &teardown{opts: TeardownOptions{SkipDrain: test.skip}, result: &TeardownResult{}}
			c := td.planned(&test.inside)
			if len(test.want) == 0 && c.NotDrained != "" || test.not != "" && strings.Contains(c.NotDrained, test.not) {
				t.Errorf("it says %q", c.NotDrained)
			}
			for _, want := range test.want {
				if !strings.Contains(c.NotDrained, want) {
					t.Errorf("it does not say %q: %q", want, c.NotDrained)
				}
			}
			td.result.Plan = &TeardownPlan{Clusters: []TeardownCluster{c}}
			left, notAsked := td.leftIn()
			if (len(left) > 0) != test.stays || (len(notAsked) > 0) != test.notAsked {
				t.Errorf("left %q, not asked %q", left, notAsked)
			}
		})
	}
}
