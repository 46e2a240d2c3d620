package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// No package of ours does work at the program's start, such as compiling a pattern with the letters of all languages: every command would
// pay for it. Bytes are counted, because time depends on what else the machine does.
func TestStartDoesNoWork(t *testing.T) {
	const (
		own   = "github.com/fleetctl/fleetctl/"
		limit = 1_500_000
	)
	line := regexp.MustCompile(`(?m)^init (\S+) @.* ms clock, (\d+) bytes`)
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	run.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	seen := 0
	for _, found := range line.FindAllStringSubmatch(string(out), -1) {
		bytes, err := strconv.Atoi(found[2])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(found[1], own) || found[1] == own+"cmd/fleetctl/internal/start" { // that one is there to take room
			continue
		}
		if seen++; bytes > limit {
			t.Errorf("%s takes %d bytes at the start; make its variables when they are needed, with sync.OnceValue", found[1], bytes)
		}
	}
	if seen < 10 {
		t.Errorf("%d packages were seen:\n%s", seen, out)
	}
}
