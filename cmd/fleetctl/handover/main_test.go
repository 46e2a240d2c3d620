//go:build e2e

// Package handover proves that a hand-over between two management clusters can be interrupted at any moment, on any side: real API
// servers without controllers, a proxy before each that ends the program at a write of its choice, and a reader of both sides that
// knows nothing of the product's code. `make test-handover` builds what it needs; what is missing is an error, never a skipped test.
package handover

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
)

// envPrograms names the folder with etcd, kube-apiserver and clusterctl.
const envPrograms = "FLEETCTL_E2E_PROGRAMS"

var (
	kills  = flag.Int("kills", 300, "how often a program is killed, in all")
	worlds = flag.Int("worlds", 2, "how many pairs of management clusters work side by side")
	seed   = flag.Uint64("seed", 0, "of what is left to chance; 0 takes a new one")
)

func TestMain(m *testing.M) {
	if verb := os.Getenv(envVerb); verb != "" {
		os.Exit(be(verb, os.Args[1:]))
	}
	flag.Parse()
	// Of what the API servers would do, a quarter is to collect garbage; there is memory enough.
	if err := os.Setenv("GOGC", "400"); err != nil {
		panic(err)
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	os.Exit(m.Run())
}

func programs(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(envPrograms)
	if dir == "" {
		t.Fatalf("%s names no folder with the programs: run `make test-handover`", envPrograms)
	}
	return dir
}
