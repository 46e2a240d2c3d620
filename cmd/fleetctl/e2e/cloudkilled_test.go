//go:build e2e && clouds

package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bootstrapKills is how often TestAWSBootstrapKilled kills; its seed is that of TestKills. `make e2e-clouds` kills as often as the default,
// `make test-kill-clouds` KILLS times.
var bootstrapKills = flag.Int("bootstrap-kills", 10, "how often TestAWSBootstrapKilled kills")

// killPhase is a part of a bootstrap, with the moments in it that a kill can wait for.
type killPhase struct {
	name string
	// steps are the steps of the bootstrap of which one has to begin.
	steps []string
	// made and nodes say, if not 0, of how many things that the cloud has made, or of how many machines that have joined, a number is
	// chosen that has to be there, too.
	made, nodes int
}

// killPhases are all parts of a bootstrap, in their order. Two clusters are 76 things in the cloud, with four machines.
var killPhases = []killPhase{
	{name: "the host starts", steps: []string{"check this machine", "choose versions", "create management cluster", "reach its API server"}},
	{name: "providers and Flux come", steps: []string{
		"install providers", "install Flux", "commit and push", "connect Flux to the fleet repo", "wait for Flux to apply it",
	}},
	{name: "the cloud makes the clusters", steps: []string{"wait for the declared clusters"}, made: 60},
	{name: "machines boot and join", steps: []string{"wait for the declared clusters"}, nodes: 4},
	{name: "the target gets what it needs", steps: []string{
		"reach the target cluster", "install providers on the target", "install Flux on the target", "have the target read the fleet repo",
		"have the target reach the clouds",
	}},
	{name: "the work changes hands", steps: []string{"hand the work over"}},
	{name: "the target takes up the work", steps: []string{
		"name the target in the fleet repo", "wait for the target's Flux to apply it", "wait until the clusters are as they were",
	}},
	{name: "the key is taken off", steps: []string{"take the bootstrap credentials off the target"}},
	{name: "the host goes", steps: []string{"delete bootstrap cluster"}},
}

// killMoment is when a bootstrap is killed.
type killMoment struct {
	phase, step string
	made, nodes int
	// after is how long it goes on from there.
	after time.Duration
	// host: all that runs on this machine ends at once, as when the runner is restarted.
	host bool
}

func (m killMoment) String() string {
	text := fmt.Sprintf("%s: %.2fs after %q", m.phase, m.after.Seconds(), m.step)
	if m.made > 0 {
		text += fmt.Sprintf(", when AWS has made %d things", m.made)
	}
	if m.nodes > 0 {
		text += fmt.Sprintf(", when %d machines have joined", m.nodes)
	}
	if m.host {
		text += ", with all that runs on the machine"
	}
	return text
}

// chooseKills spreads so many kills over all phases, in their order. Numbers that have to be there grow from one kill to the next.
func chooseKills(seed uint64, kills int) []killMoment {
	all := make([]killMoment, 0, kills)
	var made, nodes int
	for i := range kills {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		phase := killPhases[i*len(killPhases)/kills]
		m := killMoment{
			phase: phase.name, step: phase.steps[rng.IntN(len(phase.steps))], after: time.Duration(rng.IntN(1500)) * time.Millisecond,
			host: rng.IntN(2) == 0,
		}
		if phase.made > made {
			made += 1 + rng.IntN(phase.made-made)
			m.made = made
		}
		if phase.nodes > nodes {
			nodes += 1 + rng.IntN(phase.nodes-nodes)
			m.nodes = nodes
		}
		all = append(all, m)
	}
	return all
}

// TestAWSBootstrapKilled: the bootstrap of TestAWSPivot is killed at random in all of its phases, and sometimes its machine restarts. The
// same command goes on each time, to the end: AWS was asked for nothing twice, and one management cluster is there.
func TestAWSBootstrapKilled(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	t.Logf("seed %d; again with: make test-kill-clouds SEED=%d KILLS=%d", seed, seed, *bootstrapKills)
	p := newPivotOnAWS(t, "e2e-killed")
	acts := []act{{"a fleet repo with two clusters in AWS, and a place for snapshots", func(*testing.T) {
		p.declaresFleetWith(fmt.Sprintf("  snapshots: {to: %q}\n", filepath.Join(p.base, "snapshots")))
	}}}
	ended := false
	for i, m := range chooseKills(seed, *bootstrapKills) {
		acts = append(acts, act{fmt.Sprintf("kill %d, %s", i+1, m), func(t *testing.T) {
			if ended {
				t.Logf("bootstrap has come to its end before")
				return
			}
			ended = !p.killedAt(t, m)
		}})
	}
	p.plays(append(acts, []act{
		{"the same command comes to its end", p.bootstraps},
		{"nothing is there twice, and nothing was made twice", p.hasNothingTwice},
		{"there is one management cluster", p.isOne},
		{"the key of the bootstrap is off the permanent one, and fleet.yaml says so", p.hasNoKey},
		{"no credential is anywhere", p.keepsSecrets},
		{"a commit scales both through the provider that runs on one of them", p.scalesBoth},
		{"a commit removes the other, with all that it had", p.removesShop},
		{"another management cluster takes it over and takes it down, which leaves the account empty", p.undoes},
	}...))
	if t.Failed() {
		t.Logf("again with: make test-kill-clouds SEED=%d KILLS=%d", seed, *bootstrapKills)
	}
}

// killedAt runs bootstrap until that moment, and kills it. It returns false where bootstrap has come to its end by then, which it has to do
// well.
func (p *pivotOnAWS) killedAt(t *testing.T, m killMoment) bool {
	t.Helper()
	r := &running{t: t, cmd: p.command(p.bootstrap()...), ended: make(chan error, 1)}
	began := make(chan struct{}, 1)
	r.progress = &echo{t: t, line: func(line string) {
		p.counts(t, line)
		if strings.HasPrefix(line, "… "+m.step) {
			select {
			case began <- struct{}{}:
			default:
			}
		}
	}}
	r.cmd.Stderr = r.progress
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	killed := p.waitsFor(t, r, began, m)
	p.hears(r.progress.String())
	if !killed {
		return false
	}
	if m.host {
		p.losesPower(t)
	}
	return true
}

// waitsFor kills the command at that moment. It returns false where the command has come to its end by then.
func (p *pivotOnAWS) waitsFor(t *testing.T, r *running, began <-chan struct{}, m killMoment) bool {
	t.Helper()
	ended := func(err error) bool {
		if err != nil {
			t.Fatalf("it ended before it was killed: %v\n%s", err, r.progress)
		}
		t.Log("it has come to its end before")
		return false
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for begun := false; !begun || !p.hasCome(t, m); {
		select {
		case err := <-r.ended:
			return ended(err)
		case <-began:
			begun = true
		case <-look.C:
		}
	}
	select {
	case err := <-r.ended:
		return ended(err)
	case <-time.After(m.after):
	}
	_ = r.cmd.Process.Kill() // it may have ended just now
	if err := <-r.ended; err == nil || r.cmd.ProcessState.Exited() {
		return ended(err)
	}
	return true
}

// hasCome tells whether AWS has made, and has, what a kill waits for.
func (p *pivotOnAWS) hasCome(t *testing.T, m killMoment) bool {
	t.Helper()
	if m.made > 0 && total(p.aws.made(t)) < m.made {
		return false
	}
	joined := 0
	for _, event := range p.booter.events(0) {
		if !event.ended {
			joined++
		}
	}
	return joined >= m.nodes
}

func total(made map[string]int) (sum int) {
	for _, n := range made {
		sum += n
	}
	return sum
}

// losesPower ends all that runs on this machine, and not what runs in AWS. What is started meanwhile ends, too.
func (p *pivotOnAWS) losesPower(t *testing.T) {
	t.Helper()
	eventually(t, "all is off", time.Minute, func() string {
		running := processesOf(t, p.base)
		kill(t, running)
		return told(running)
	})
}

// isOne requires that only one of all clusters manages others, and that this machine knows of one management cluster.
func (p *pivotOnAWS) isOne(t *testing.T) {
	if running := processesOf(t, p.base); len(running) > 0 { // what runs on the machines in AWS has its programs from the same store
		t.Errorf("left behind on this machine:\n%s", told(running))
	}
	for _, pattern := range []string{filepath.Join(p.temp, "*"), filepath.Join(p.state, "clusters", "*", "embedded", "*")} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left behind on this machine: %v, %v", left, err)
		}
	}
	if known, err := filepath.Glob(filepath.Join(p.state, "clusters", "*")); err != nil || len(known) != 1 {
		t.Errorf("this machine knows %v, %v", known, err)
	}
	for _, name := range []string{platform, "shop"} {
		groups, err := p.workload(name).APIGroups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		manages := false
		for _, group := range groups {
			manages = manages || group == "cluster.x-k8s.io"
		}
		if manages != (name == platform) {
			t.Errorf("%s has Cluster API: %v", name, manages)
		}
	}
}
