package kind

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kind/pkg/log"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

func TestClassify(t *testing.T) {
	mark := []engine.Mount{{Source: markSource, Destination: "/lib/modules"}, {Source: markSource, Destination: markTarget}}
	ours := func(status string, running, started bool) engine.Container {
		return engine.Container{Name: "m-control-plane", Status: status, Running: running, Started: started, Mounts: mark}
	}
	theirs := engine.Container{Name: "m-worker", Status: "running", Running: true, Started: true}
	for name, tc := range map[string]struct {
		containers []engine.Container
		want       host.State
	}{
		"nothing":                       {nil, host.StateAbsent},
		"running":                       {[]engine.Container{ours("running", true, true)}, host.StateRunning},
		"after a reboot":                {[]engine.Container{ours("exited", false, true)}, host.StateStopped},
		"paused":                        {[]engine.Container{ours("paused", true, true)}, host.StateStopped},
		"killed before the first start": {[]engine.Container{ours("created", false, false)}, host.StateBroken},
		"somebody else's":               {[]engine.Container{theirs}, host.StateForeign},
		"stopped and somebody else's":   {[]engine.Container{ours("exited", false, true), theirs}, host.StateForeign},
	} {
		t.Run(name, func(t *testing.T) {
			if got := classify(tc.containers); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNewRefusesNames(t *testing.T) {
	for _, name := range []string{"", "Big", "under_score", "-dash", "semi;colon", strings.Repeat("a", maxName+1)} {
		if _, err := New(t.Context(), name, Options{StateDir: t.TempDir(), Engine: &engine.Engine{}}); diag.Code(err) != diag.ExitUsage {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := New(t.Context(), "mgmt-1.x", Options{StateDir: t.TempDir(), Engine: &engine.Engine{}}); err != nil {
		t.Error(err)
	}
}

func TestConfigCarriesTheMark(t *testing.T) {
	h := &Host{name: "m"}
	config := h.config("img", host.CreateOptions{ExtraMounts: []host.Mount{{HostPath: "/run/e.sock", ContainerPath: "/var/run/docker.sock"}}})
	var c engine.Container
	for _, m := range config.Nodes[0].ExtraMounts {
		c.Mounts = append(c.Mounts, engine.Mount{Source: m.HostPath, Destination: m.ContainerPath})
	}
	if !marked(c) {
		t.Error("a node that we make does not count as ours")
	}
	if last := c.Mounts[len(c.Mounts)-1]; last.Destination != "/var/run/docker.sock" {
		t.Errorf("extra mount: %+v", last)
	}
}

func TestPipeReportsTheFirstCause(t *testing.T) {
	wrong := errors.New("digest of layer is wrong")
	stumbled := errors.New("unexpected end of archive")
	full := errors.New("no space left on device")
	for name, tc := range map[string]struct {
		write func(io.Writer) error
		read  func(io.Reader) error
		want  error
	}{
		"all well": {
			func(w io.Writer) error { _, err := io.WriteString(w, "ab"); return err },
			func(r io.Reader) error {
				data, err := io.ReadAll(r)
				if err == nil && string(data) != "ab" {
					return errors.New("read " + string(data))
				}
				return err
			}, nil,
		},
		"the writer finds a wrong digest": {
			func(w io.Writer) error { _, _ = io.WriteString(w, "a"); return wrong },
			func(r io.Reader) error { _, _ = io.ReadAll(r); return stumbled }, wrong,
		},
		"the reader's disk is full": {
			func(w io.Writer) error { _, err := io.Copy(w, bytes.NewReader(make([]byte, 1<<20))); return err },
			func(r io.Reader) error { _, _ = io.ReadFull(r, make([]byte, 10)); return full }, full,
		},
		"the reader stops early and says nothing": {
			func(w io.Writer) error { _, err := io.Copy(w, bytes.NewReader(make([]byte, 1<<20))); return err },
			func(io.Reader) error { return nil }, errReaderGone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := pipe(t.Context(), tc.write, tc.read); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestAwaitCreationWaitsForAnInterruptedCall(t *testing.T) {
	creating := make(chan struct{})
	h := &Host{name: "m", creating: creating}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := h.awaitCreation(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while kind runs: %v", err)
	}
	close(creating)
	if err := h.awaitCreation(t.Context()); err != nil {
		t.Errorf("after kind ended: %v", err)
	}
}

func TestLoggerTellsUsersLinesOnly(t *testing.T) {
	var got []string
	l := logger{func(s string) { got = append(got, s) }}
	l.V(0).Infof(" • %s  ...\n", "Preparing nodes 📦 ")
	l.V(0).Infof(" ✓ %s\n", "Preparing nodes 📦 ")
	l.V(1).Info("debugging")
	l.Warn("cgroup v1 is deprecated")
	l.V(0).Info("")
	want := "Preparing nodes|Preparing nodes|cgroup v1 is deprecated"
	if strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
	if l.V(1).Enabled() || !l.V(0).Enabled() || (logger{}).V(log.Level(0)).Enabled() {
		t.Error("wrong verbosity")
	}
	logger{}.Warn("nobody listens")
}

func TestStateDir(t *testing.T) {
	d := stateDir(filepath.Join(t.TempDir(), "clusters", "m"))
	if r, err := d.read(); err != nil || r.Network != "" {
		t.Errorf("nothing there: %+v, %v", r, err)
	}
	if err := d.write(record{Network: "kind"}); err != nil {
		t.Fatal(err)
	}
	if r, err := d.read(); err != nil || r.Network != "kind" {
		t.Errorf("got %+v, %v", r, err)
	}
	info, err := os.Stat(d.path(recordFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(d.path("journal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.remove(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(string(d)); err != nil || len(entries) != 1 || entries[0].Name() != "journal" {
		t.Errorf("somebody else's file is not alone: %v, %v", entries, err)
	}
	if err := os.WriteFile(d.path(recordFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.read(); err == nil || !strings.Contains(err.Error(), recordFile) {
		t.Errorf("a broken record: %v", err)
	}
}

func TestNodeImage(t *testing.T) {
	if got := NodeImage("v1.36.3"); got != "kindest/node:v1.36.3" {
		t.Errorf("got %s", got)
	}
	if got := NodeImage(""); !strings.HasPrefix(got, "kindest/node:v1.") || strings.Contains(got, "@") {
		t.Errorf("got %s for no version", got)
	}
	for ref, want := range map[string]bool{
		"docker.io/kindest/node:v1.36.3":     true,
		"docker.io/kindest/node@sha256:abc":  true,
		"docker.io/kindest/node":             false,
		"docker.io/kindest/node-other:v1":    false,
		"docker.io/kindest/kindnetd:v1":      false,
		"registry.example.org/kindest/node:": false,
	} {
		if got := isNodeImage(ref); got != want {
			t.Errorf("isNodeImage(%q) = %t", ref, got)
		}
	}
}

func TestListed(t *testing.T) {
	got := listed("REF TYPE DIGEST SIZE PLATFORMS LABELS\n" +
		"docker.io/a:1   application/vnd.oci.image.manifest.v1+json sha256:aa 1.0 MiB linux/amd64 -\n\n" +
		"docker.io/b:1   application/vnd.oci.image.index.v1+json    sha256:bb 1.0 MiB linux/amd64 -\n")
	if got["docker.io/a:1"] != "sha256:aa" || got["docker.io/b:1"] != "sha256:bb" {
		t.Errorf("listed %v", got)
	}
}
