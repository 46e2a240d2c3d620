package main

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The seed of the moments at which scripts kill, and how often each does.
var (
	killSeed = flag.Uint64("seed", 0, "seed of the script command killing; 0: one of its own, which it prints")
	kills    = flag.Int("kills", 5, "how often the script command killing kills")
)

// program is fleetctl with args, as a script runs it.
func program(ts *testscript.TestScript, args []string) *exec.Cmd {
	own, _, _ := strings.Cut(ts.Getenv("PATH"), string(filepath.ListSeparator))
	c := exec.CommandContext(tb(ts).Context(), filepath.Join(own, "fleetctl"), args...)
	c.Dir = ts.MkAbs(".")
	c.Stdout, c.Stderr = ts.Stdout(), ts.Stderr()
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NO_COLOR"} {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	return c
}

// killing runs fleetctl again and again and kills it with SIGKILL at random moments while it makes PATH, which is removed where it came to
// the end before: killing PATH ARGUMENT…
func killing(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "killing PATH ARGUMENT…")
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	ts.Logf("%d kills from seed %d", *kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	limit := time.Second // until it is known what it takes
	for range *kills {
		c := program(ts, args[1:])
		began := time.Now()
		ts.Check(c.Start())
		timer := time.AfterFunc(time.Duration(rng.Float64()*float64(limit)), func() { _ = c.Process.Kill() }) // or it has just ended
		err := c.Wait()
		timer.Stop()
		switch {
		case err == nil:
			limit = time.Since(began)
			ts.Check(os.RemoveAll(ts.MkAbs(args[0])))
		case c.ProcessState.ExitCode() != -1:
			ts.Fatalf("it failed instead of being killed: %v", err)
		}
	}
}
