package cmd

import (
	"strings"
	"testing"
)

// The command that brings a pause to Git, and the one that ends it, change what this run has changed: no other environment or cluster.
// Each of them parses.
func TestPauseNowNamesTheSameChange(t *testing.T) {
	isolate(t)
	const local = "../../examples/laptop" // a fleet repo without a remote
	for line, want := range map[string]struct{ repo, inGit, ending string }{
		"feature pause ingress --environment prod --now": {
			exampleRepo, "fleetctl feature pause ingress --environment prod --push",
			"fleetctl feature resume ingress --now --environment prod",
		},
		"feature resume ingress --cluster shop,shop-dev --now": {
			exampleRepo, "fleetctl feature resume ingress --cluster shop,shop-dev --push",
			"fleetctl feature resume ingress --now --cluster shop,shop-dev",
		},
		"feature pause ingress --on-management --now": {
			exampleRepo, "fleetctl feature pause ingress --on-management --push",
			"fleetctl feature resume ingress --now --on-management",
		},
		"feature suspend ingress --on-management=mgmt-aws --now": {
			exampleRepo, "fleetctl feature pause ingress --on-management=mgmt-aws --push",
			"fleetctl feature resume ingress --now --on-management=mgmt-aws",
		},
		"cluster pause prod/shop --now": {
			exampleRepo, "fleetctl cluster pause prod/shop --push", "fleetctl cluster resume prod/shop --now",
		},
		"environment resume dev --now --management mgmt-aws": {
			exampleRepo, "fleetctl environment resume dev --push", "fleetctl environment resume dev --now --management mgmt-aws",
		},
		"environment pause dev --now": {local, "fleetctl environment pause dev --commit", "fleetctl environment resume dev --now"},
		"channel pause main --now":    {exampleRepo, "", "fleetctl channel resume main --now"},
		"channel resume main --now":   {local, "", "fleetctl channel resume main --now"},
		"channel pause release --now": {exampleRepo, "fleetctl channel pause release --push", "fleetctl channel resume release --now"},
	} {
		o, f, err := parsed(t, "", append([]string{"-C", want.repo}, strings.Fields(line)...)...)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		repo, err := f.fleetRepo()
		if err != nil {
			t.Fatal(err)
		}
		pause, ok := o.(*pauseOptions)
		if !ok {
			t.Fatalf("%s: options are %T", line, o)
		}
		for got, want := range map[string]string{pause.inGit(f, repo): want.inGit, pause.ending(f): want.ending} {
			if got != want {
				t.Errorf("%s: got %q, want %q", line, got, want)
			}
			if again := strings.Fields(got); len(again) > 0 {
				if _, _, err := parsed(t, "", append([]string{"-C", exampleRepo}, again[1:]...)...); err != nil {
					t.Errorf("%s: %q: %v", line, got, err)
				}
			}
		}
	}
}
