//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The seed and the number of kills of TestKills. CI and `make e2e-embedded` kill 20 times, `make test-kill` and the nightly workflow 200
// times.
var (
	killSeed = flag.Uint64("seed", 0, "seed of TestKills; 0: one of its own, which it prints")
	kills    = flag.Int("kills", 20, "how often TestKills kills")
)

// chaos is a fleet in whose operations something is killed, and what its fleet repo has by now.
type chaos struct {
	*fleet
	seed  uint64
	rng   *rand.Rand
	round int
	up    bool                     // the management cluster is there, and runs unless stopped
	took  map[string]time.Duration // by operation: what it took the last time that nobody disturbed it
}

// operation is a command that runs while the test kills something. After a kill the test repeats the command until it comes to its end.
type operation struct {
	name string
	// weight is how often it is chosen, against the others.
	weight int
	// needs tells whether the management cluster has to be there, or must not be.
	needs bool
	args  func(c *chaos) []string
	// guess is what it takes, before it is known.
	guess time.Duration
	// done tells of a repetition that fails whether that is because the first try has done it all; nil: it has to succeed.
	done func(c *chaos, args []string) bool
	// leaves: the management cluster is there afterwards.
	leaves bool
	// runs: it wants a management cluster that runs, and says so where the kill has ended it. init starts it then, before the repetition.
	runs bool
	// repoOnly: it has nothing to do with the management cluster, which is whole when it has come to its end.
	repoOnly bool
}

var operations = []operation{
	{name: "init from nothing", weight: 1, args: func(*chaos) []string { return initArgs() }, guess: 15 * time.Second, leaves: true},
	{name: "init again", weight: 3, needs: true, args: func(*chaos) []string { return initArgs() }, guess: 3 * time.Second, leaves: true},
	{name: "edit", weight: 4, needs: true, args: func(c *chaos) []string {
		return []string{"tenant", "add", fmt.Sprintf("team-%d", c.round), "--commit"}
	}, guess: time.Second, done: committed("tenants/docker/common/%s"), leaves: true, repoOnly: true},
	{name: "secret encrypt", weight: 2, needs: true, args: func(c *chaos) []string {
		return []string{"secret", "encrypt", secretFile(c.round), "--from-literal", "password=hunter2", "--commit"}
	}, guess: time.Second, done: func(c *chaos, args []string) bool { return c.tracked(args[2]) }, leaves: true, repoOnly: true},
	{
		name: "secret rotate", weight: 2, needs: true, args: func(*chaos) []string { return []string{"secret", "rotate", "--commit"} },
		guess: time.Second, leaves: true, repoOnly: true,
	},
	{name: "secret rotate with a new key", weight: 2, needs: true, args: func(*chaos) []string {
		return []string{"secret", "rotate", "--new-key", "--commit"}
	}, guess: 2 * time.Second, leaves: true, runs: true},
	{
		name: "promote", weight: 2, needs: true, args: func(*chaos) []string { return []string{"promote", "--skip-health", "--commit"} },
		guess: time.Second, leaves: true, repoOnly: true,
	},
	{
		name: "host stop", weight: 1, needs: true, args: func(*chaos) []string { return []string{"host", "stop"} },
		guess: 2 * time.Second, leaves: true,
	},
	{
		name: "host start", weight: 2, needs: true, args: func(*chaos) []string { return []string{"host", "start"} },
		guess: 4 * time.Second, leaves: true,
	},
	{
		name: "teardown", weight: 1, needs: true, args: func(*chaos) []string { return []string{"teardown", "--yes"} }, guess: 4 * time.Second,
		done: func(c *chaos, _ []string) bool {
			left, err := os.ReadDir(filepath.Join(c.state, "clusters", c.name)) // the lock goes after all else
			return errors.Is(err, fs.ErrNotExist) || err == nil && !slices.ContainsFunc(left, func(e fs.DirEntry) bool { return e.Name() != "lock" })
		},
	},
}

func secretFile(round int) string {
	return fmt.Sprintf("providers/docker/v1/mgmt/secret-%d.sops.yaml", round)
}

// committed is for edits whose third word names what they make.
func committed(path string) func(*chaos, []string) bool {
	return func(c *chaos, args []string) bool { return c.tracked(fmt.Sprintf(path, args[2])) }
}

func (c *chaos) tracked(path string) bool {
	return c.git("ls-tree", "-r", "--name-only", "HEAD", path) != ""
}

// victim is a process that the test kills with SIGKILL.
type victim struct {
	name   string
	weight int
	// spares: the command lives on.
	spares bool
	kill   func(c *chaos, command *exec.Cmd) (what string)
}

var victims = []victim{
	{"the command", 5, false, func(_ *chaos, command *exec.Cmd) string {
		_ = syscall.Kill(command.Process.Pid, syscall.SIGKILL)
		return ""
	}},
	{"its process group", 3, false, func(_ *chaos, command *exec.Cmd) string {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		return ""
	}},
	{"the supervisor", 2, true, func(c *chaos, _ *exec.Cmd) string { return c.killOne(isSupervisor) }},
	{"the git server", 1, true, func(c *chaos, _ *exec.Cmd) string { return c.killOne(isGitServer) }},
	{"any program of the host", 3, true, func(c *chaos, command *exec.Cmd) string {
		table := processTable(c.t)
		below := family(table, func(pid int, p proc) bool { return p.belongsTo(c.base) && isSupervisor(p) })
		return c.killOne(func(p proc) bool {
			_, ok := below[p.pid]
			return ok && !isSupervisor(p) && p.pid != command.Process.Pid
		})
	}},
}

func isSupervisor(p proc) bool { return strings.Contains(p.command, " host run ") }
func isGitServer(p proc) bool  { return strings.Contains(p.command, " git-serve ") }

// killOne kills one of the fleet's processes that is wanted, and names it.
func (c *chaos) killOne(wanted func(proc) bool) string {
	c.t.Helper()
	var found []proc
	for _, p := range processTable(c.t) {
		if (p.belongsTo(c.base) || p.belongsTo(cache)) && wanted(p) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return "of which there was none"
	}
	slices.SortFunc(found, func(a, b proc) int { return strings.Compare(a.name, b.name) })
	one := found[c.rng.IntN(len(found))]
	_ = syscall.Kill(one.pid, syscall.SIGKILL) // it may have ended by itself
	return one.name
}

func choose[T any](rng *rand.Rand, from []T, weight func(T) int) T {
	sum := 0
	for _, each := range from {
		sum += weight(each)
	}
	at := rng.IntN(sum)
	for _, each := range from {
		if at -= weight(each); at < 0 {
			return each
		}
	}
	return from[len(from)-1]
}

// TestKills kills commands, hosts and their programs at random, lets a run go to its end, and then checks the result from outside.
func TestKills(t *testing.T) {
	t.Run(onEmbedded.name, func(t *testing.T) {
		seed := *killSeed
		if seed == 0 {
			seed = uint64(time.Now().UnixNano()) % 1_000_000
		}
		t.Logf("seed %d; again with: make test-kill SEED=%d KILLS=%d", seed, seed, *kills)
		c := &chaos{fleet: newFleetOn(t, onEmbedded, "e2e-kills"), seed: seed, took: map[string]time.Duration{}}
		c.prepare()
		counts := map[string]int{}
		for c.round = 1; c.round <= *kills; c.round++ {
			c.rng = rand.New(rand.NewPCG(seed, uint64(c.round)))
			counts[c.one()]++
			if t.Failed() {
				t.Fatalf("after kill %d of %d; again with: make test-kill SEED=%d KILLS=%d", c.round, *kills, seed, c.round)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			t.Logf("%4d kills in %s", counts[name], name)
		}
		if c.up { // the last operation may have been its teardown
			c.finish([]string{"teardown", "--yes"}, nil)
		}
		c.nothingLeft()
	})
}

// prepare makes the fleet: with production that follows tags, and something encrypted.
func (c *chaos) prepare() {
	c.t.Helper()
	c.ok(initArgs()...)
	c.git("config", "user.name", "e2e")
	c.git("config", "user.email", "e2e@example.com")
	c.ok("environment", "add", "production", "--commit")
	c.ok("channel", "add", "release", "--environment", "production", "--commit")
	c.ok("promote", "--skip-health", "--commit")
	c.ok("secret", "encrypt", secretFile(0), "--from-literal", "password=hunter2", "--commit")
	c.up = true
	c.whole()
}

// one is one operation with one kill in it, a run to the end, and a look. It returns the operation's name.
func (c *chaos) one() string {
	c.t.Helper()
	fit := slices.DeleteFunc(slices.Clone(operations), func(o operation) bool { return o.needs != c.up })
	op := choose(c.rng, fit, func(o operation) int { return o.weight })
	who := choose(c.rng, victims, func(v victim) int { return v.weight })
	args := op.args(c)
	limit := c.took[op.name]
	if limit == 0 {
		limit = op.guess
	}
	if op.name == "host start" {
		c.ok("host", "stop")
	}
	after := time.Duration(c.rng.Float64() * float64(limit))
	cmd := c.command(args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var how string
	select {
	case err := <-ended:
		how = fmt.Sprintf("it had ended before (%v)", err)
		c.took[op.name] = time.Since(began)
	case <-time.After(after):
		how = who.kill(c, cmd)
		select {
		case err := <-ended:
			if err == nil {
				how += ": it went on to the end"
			} else if who.spares && strings.HasPrefix(op.name, "init") {
				c.t.Errorf("kill %d: init does not start again what ends under it: %v\n%s", c.round, err, said.String())
			}
		case <-time.After(5 * time.Minute):
			_ = cmd.Process.Kill()
			c.t.Errorf("%s did not end within five minutes of the kill:\n%s", op.name, said.String())
			if err := <-ended; err == nil {
				c.t.Error("it was killed, and ended well")
			}
		}
	}
	fmt.Fprintf(os.Stderr, "    kill %d of %d: %s, after %.2fs %s %s\n", c.round, *kills, op.name, after.Seconds(), who.name, how)
	if op.runs && who.spares {
		c.finish(initArgs(), nil)
	}
	c.finish(args, func() bool { return op.done != nil && op.done(c, args) })
	c.up = op.leaves
	if !c.up {
		c.nothingLeft()
		return op.name
	}
	if !op.repoOnly || who.spares {
		c.finish(initArgs(), nil)
	}
	c.whole()
	return op.name
}

// finish runs a command to its end.
func (c *chaos) finish(args []string, done func() bool) {
	c.t.Helper()
	out, err := c.command(args...).CombinedOutput()
	if err != nil && (done == nil || !done()) {
		c.t.Errorf("kill %d: run to the end, fleetctl %s: %v\n%s", c.round, strings.Join(args, " "), err, out)
	}
}

// nothingLeft reports everything that a teardown has left on this machine.
func (c *chaos) nothingLeft() {
	c.t.Helper()
	if left := leftOnMachine(c.fleet); len(left) > 0 {
		c.t.Errorf("kill %d: left behind:\n%s", c.round, strings.Join(left, "\n"))
	}
}

// whole looks from outside whether all is as it should be.
func (c *chaos) whole() {
	c.t.Helper()
	c.repoWhole()
	c.stateWhole()
	c.processesWhole()
	c.secretsWhole()
	eventually(c.t, "all is Ready", 2*time.Minute, func() string {
		st, code := c.status()
		if code == 0 {
			return ""
		}
		return fmt.Sprintf("%+v", st.Problems)
	})
}

// repoWhole looks at the fleet repo as git does.
func (c *chaos) repoWhole() {
	c.t.Helper()
	if out, err := exec.Command("git", "-C", c.dir, "fsck", "--strict", "--no-dangling").CombinedOutput(); err != nil ||
		len(bytes.TrimSpace(out)) > 0 {
		c.t.Errorf("git fsck: %v\n%s", err, out)
	}
	if dirty := c.git("status", "--porcelain", "--ignored"); dirty != "" {
		c.t.Errorf("not committed, or left behind:\n%s", dirty)
	}
	for _, pattern := range []string{"*.lock", "refs/heads/*.lock", "*.fleetctl-tmp", ".*.fleetctl-tmp", "MERGE_HEAD"} {
		found, err := filepath.Glob(filepath.Join(c.dir, ".git", pattern))
		if err != nil {
			c.t.Fatal(err)
		}
		for _, path := range found {
			if filepath.Base(path) != "fleetctl.lock" { // the kernel's lock on it is what counts
				c.t.Errorf("left behind: %s", path)
			}
		}
	}
	if out, err := c.command("validate").CombinedOutput(); err != nil {
		c.t.Errorf("validate: %v\n%s", err, out)
	}
}

// processesWhole looks for what runs that nobody has to answer for.
func (c *chaos) processesWhole() {
	c.t.Helper()
	table := processTable(c.t)
	roots := map[string]int{}
	for _, p := range table {
		if !p.belongsTo(c.base) {
			continue
		}
		if isSupervisor(p) && !isSupervisor(table[p.parent]) { // with a network of its own it is two, one inside the other
			roots["supervisor"]++
		}
		if isGitServer(p) {
			roots["git server"]++
		}
	}
	if roots["supervisor"] != 1 || roots["git server"] != 1 {
		c.t.Errorf("run: %v, want one of each", roots)
	}
	ours := family(table, func(_ int, p proc) bool { return p.belongsTo(c.base) && (isSupervisor(p) || isGitServer(p)) })
	for pid, what := range processesOf(c.t, c.base, cache) {
		if _, ok := ours[pid]; !ok && table[pid].command != "" {
			c.t.Errorf("nobody's process: %d %s", pid, what)
		}
	}
}

// secretsWhole decrypts every encrypted file of the fleet repo, with the age key in the state folder.
func (c *chaos) secretsWhole() {
	c.t.Helper()
	for _, name := range lines(c.git("ls-files", "*?.sops.yaml")) {
		cmd := c.command("secret", "edit", name)
		cmd.Env = append(cmd.Env, "EDITOR=/bin/cat")
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("kind: Secret")) || bytes.Contains(out, []byte("ENC[")) {
			c.t.Errorf("decrypt %s: %v\n%s", name, err, out)
		}
	}
}
