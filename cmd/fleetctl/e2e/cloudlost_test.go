//go:build e2e && clouds

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestAWSRunnerLost: a pipeline's runner dies with its ephemeral management cluster while machines are being made in AWS. A new
// runner goes on from the snapshot to the permanent management cluster, and makes no machine a second time.
func TestAWSRunnerLost(t *testing.T) {
	p := newPivotOnAWS(t, "e2e-lost")
	place := filepath.Join(p.base, "snapshots")
	var there []string
	key := ""
	p.plays([]act{
		{"a fleet repo with two clusters in AWS, and a place for snapshots", func(*testing.T) {
			p.declaresFleetWith(fmt.Sprintf("  snapshots: {to: %q}\n", place))
		}},
		{"the runner dies when there are machines, and a snapshot has them", func(t *testing.T) {
			p.dies(t, place)
			there, key = p.aws.left(t), p.ageKey(p.lost())
			t.Logf("AWS has %v, by %v", kinds(there), p.aws.made(t))
		}},
		{"a new one asks first", func(*testing.T) {
			p.fails(1, []string{"--source-is-gone"}, append(p.bootstrap(), "--age-key-file", key)...)
		}},
		{"and goes on from the snapshot, to the end", func(t *testing.T) {
			p.bootstrapsWith(t, "--age-key-file", key, "--source-is-gone")
			now := p.aws.left(t)
			for _, one := range there {
				if !slices.Contains(now, one) {
					t.Errorf("%s was made before, and is not there any more", one)
				}
			}
		}},
		{"nothing is there twice, and nothing was made twice", p.hasNothingTwice},
		{"no credential is anywhere", p.keepsSecrets},
		{"a commit scales both through the provider that runs on one of them", p.scalesBoth},
		{"a commit removes the other, with all that it had", p.removesShop},
		{"another management cluster takes it over and takes it down, which leaves the account empty", p.undoes},
	})
}

// dies runs bootstrap until both clusters have a machine in AWS and a snapshot has what makes them, and ends all that the runner runs and
// knows.
func (p *pivotOnAWS) dies(t *testing.T, place string) {
	t.Helper()
	r := p.begin(p.bootstrap()...)
	newest := func() string {
		files, err := filepath.Glob(filepath.Join(place, p.name, "*"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(files)
		if len(files) == 0 {
			return ""
		}
		return files[len(files)-1]
	}
	eventually(t, "both clusters have a machine", 10*time.Minute, func() string {
		r.alive()
		if have := kinds(p.aws.left(t)); have["instance"] < 2 || have["load-balancer"] < 2 {
			return fmt.Sprint(have)
		}
		return ""
	})
	last := newest()
	for range 2 { // the first of them may have been begun before
		eventually(t, "one more snapshot is kept", 2*time.Minute, func() string {
			r.alive()
			if now := newest(); now != last {
				last = now
				return ""
			}
			return "not yet"
		})
	}
	r.kill()
	kill(t, processesOf(t, p.base))
	p.forgets()
}
