package main

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// commands are what scripts can do besides testscript's own.
func commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"exits":          exits,
		"terminal":       terminal,
		"interrupt":      interrupt,
		"killing":        killing,
		"expand":         expand,
		"lock":           lock,
		"empty":          empty,
		"flip":           flip,
		"git-https":      gitHTTPS,
		"git-forge":      gitForge,
		"pull-requests":  pullRequests,
		"repositories":   repositories,
		"releases-made":  releasesMade,
		"git-ssh":        gitSSH,
		"git-seed":       gitSeed,
		"git-merge":      gitMerge,
		"git-authorize":  gitAuthorize,
		"unchanged":      unchanged,
		"silent-server":  silentServer,
		"silent-cluster": silentCluster,
		"called":         called,
		"flux-server":    fluxServer,
		"push":           pushImages,
		"registry":       registryServer,
		"chart":          chart,
		"releases":       releases,
		"hostile":        hostile,
		"api-server":     apiServer,
	}
}

// tb is the test of a script.
func tb(ts *testscript.TestScript) testing.TB {
	t, ok := ts.Value(testKey{}).(testing.TB)
	if !ok {
		ts.Fatalf("the script has no test")
	}
	return t
}

// arguments fails the script unless it gave a command that many.
func arguments(ts *testscript.TestScript, neg bool, args []string, atLeast int, usage string) {
	if neg || len(args) < atLeast {
		ts.Fatalf("usage: %s", usage)
	}
}

// exits runs a program and looks at its exit code, which is part of fleetctl's interface: exits CODE PROGRAM ARGUMENT…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "exits CODE PROGRAM [ARGUMENT…]")
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed := (*exec.ExitError)(nil)
		if !errors.As(err, &failed) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = failed.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s exits with %d, not %d", strings.Join(args[1:], " "), got, want)
	}
}

// terminal runs a program with its questions, and all else on standard error, at the terminal that `ttyin -stdin` has made:
// [!] terminal PROGRAM ARGUMENT…
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, false, args, 1, "terminal PROGRAM [ARGUMENT…]")
	err := ts.Exec("sh", append([]string{"-c", `exec "$@" 2>/dev/tty`, "sh"}, args...)...)
	if failed := err != nil; failed != neg {
		ts.Fatalf("%s: failed is %t, %v", strings.Join(args, " "), failed, err)
	}
}

// interrupt runs fleetctl, presses Ctrl-C while it waits for a Git server that never answers, and looks that it ends soon, with 130:
// interrupt ARGUMENT…. The server's URL takes the place of the argument SILENT.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "interrupt ARGUMENT…")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer silent.Close()
	if i := slices.Index(args, "SILENT"); i >= 0 {
		args[i] = "https://" + silent.Addr().String() + "/fleet.git"
	}
	c := program(ts, args)
	ts.Check(c.Start())
	connection, err := silent.Accept()
	ts.Check(err)
	defer connection.Close()
	pressed := time.Now()
	ts.Check(c.Process.Signal(os.Interrupt))
	failed := (*exec.ExitError)(nil)
	if err := c.Wait(); !errors.As(err, &failed) || failed.ExitCode() != diag.ExitInterrupted {
		ts.Fatalf("it ended with %v, not with exit code %d", err, diag.ExitInterrupted)
	}
	if took := time.Since(pressed); took > 5*time.Second { // 2s are promised; other tests run beside this one
		ts.Fatalf("it took %s to end", took)
	}
}

// expand replaces ${VARIABLES} in a file, as testscript does it in a line: expand FILE…
func expand(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "expand FILE…")
	for _, name := range args {
		content := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(content), 0o600))
	}
}

// lock is another fleetctl that works on a management cluster until the script ends: lock CLUSTER COMMAND
func lock(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "lock CLUSTER COMMAND")
	store := state.Store{Dir: filepath.Join(ts.Getenv("XDG_STATE_HOME"), "fleetctl")}
	unlock, err := store.Cluster(args[0]).Lock(args[1])
	ts.Check(err)
	ts.Defer(unlock)
}

// flip changes one bit in the middle of what a bundle, a folder, has under a name: flip BUNDLE NAME
func flip(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "flip BUNDLE NAME")
	open, err := bundle.Open(tb(ts).Context(), ts.MkAbs(args[0]))
	ts.Check(err)
	defer open.Close()
	entries := open.Index()
	i := slices.IndexFunc(entries, func(e bundle.Entry) bool { return e.Name == args[1] })
	if i < 0 {
		ts.Fatalf("%s is not in the bundle", args[1])
	}
	name := filepath.Join(ts.MkAbs(args[0]), "blobs", "sha256", strings.TrimPrefix(entries[i].Digest, "sha256:"))
	content, err := os.ReadFile(name)
	ts.Check(err)
	content[len(content)/2] ^= 1
	ts.Check(os.WriteFile(name, content, 0o600))
}

// releases copies testdata/releases into the script's folder, with images from the script's registry: releases FOLDER
func releases(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "releases FOLDER")
	ts.Check(writeReleases(ts.MkAbs(args[0]), cmp.Or(ts.Getenv("REGISTRY"), "registry.example.com")))
}

// writeReleases writes small releases of providers and of cert-manager to a folder. Their images are at host.
func writeReleases(dir, host string) error {
	from := filepath.Join("testdata", "releases")
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755),
			os.WriteFile(to, bytes.ReplaceAll(content, []byte("REGISTRY_HOST"), []byte(host)), 0o600))
	})
}

// empty fails unless a folder has nothing in it: empty FOLDER
func empty(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "empty FOLDER")
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, e := range entries {
		ts.Fatalf("%s has %s in it", args[0], e.Name())
	}
}
