//go:build integration

package pivot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// smallDisk is a folder on a disk of its own, and what fills that to the last byte or makes room again.
func smallDisk(t *testing.T) (dir string, full func(bool)) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatalf("mount a small disk, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	filler := filepath.Join(dir, "filler")
	return dir, func(full bool) {
		t.Helper()
		if !full {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			return
		}
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		for block := make([]byte, 64<<10); len(block) > 0; {
			if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
				block = block[:len(block)/2]
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// filesOf are the files below a folder, with what they hold, but for the filler of the disk and what is locked.
func filesOf(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "filler" || strings.HasSuffix(entry.Name(), "lock") {
			return err
		}
		content, err := os.ReadFile(name)
		all.WriteString(name + "\n" + string(content) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// A pivot whose machine's disk is full says so before the source has changed, and writes nothing by half; with room, the same goes on. So
// does one whose disk is full once the target has taken over: this machine still has the way there.
func TestPivotOnAFullDisk(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	dir, full := smallDisk(t)
	e.Deps.Store = state.Store{Dir: dir}
	if _, err := e.Take(ctx, t); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(ctx, e.Deps, e.Options(t, "admin"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, kubeconfig := kubetest.Start(t)
	p := NewMove(converge.NewRun(s), "platform")
	way := &handedTarget{Name: "platform/platform", Kubeconfig: kubeconfig}
	refused := func(story string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.ENOSPC) || !diag.IsOfDisk(err) || diag.Hint(err) == "" {
			t.Errorf("%s: got %v (%s)", story, err, diag.Hint(err))
		}
	}
	before := filesOf(t, dir)
	full(true)
	refused("the way to the target", p.keepTarget(ctx, e.Client, way))
	if now := filesOf(t, dir); now != before {
		t.Errorf("left behind: %s, was %s", now, before)
	}
	if _, err := e.Client.SecretValue(ctx, targetSecret, "target"); !kube.IsAbsent(err) {
		t.Errorf("the source has changed: %v", err)
	}
	full(false)
	if err := p.keepTarget(ctx, e.Client, way); err != nil {
		t.Fatalf("with room: %v", err)
	}
	if kept, err := readKept(s.Cluster); err != nil || kept.Name != way.Name || string(kept.Kubeconfig) != string(kubeconfig) {
		t.Errorf("it has kept %+v, %v", kept, err)
	}

	before = filesOf(t, dir)
	full(true)
	refused("the kubeconfig of the target", p.remember(&Target{handedTarget: way}))
	if now := filesOf(t, dir); now != before {
		t.Errorf("left behind: %s, was %s", now, before)
	}
	full(false)
	if err := p.remember(&Target{handedTarget: way}); err != nil {
		t.Fatalf("with room: %v", err)
	}
	r, err := s.Cluster.Load()
	if err != nil || r.PivotedTo != way.Name {
		t.Errorf("the record says %+v, %v", r, err)
	}
	if content, err := os.ReadFile(s.Cluster.Path(management.KubeconfigFile)); err != nil || string(content) != string(kubeconfig) {
		t.Errorf("the kubeconfig: %v", err)
	}
	if kept, err := readKept(s.Cluster); err != nil || kept != nil {
		t.Errorf("the way is kept twice: %+v, %v", kept, err)
	}
}

// A snapshot is there whole or not at all, also where its disk is full.
func TestBackupOnAFullDisk(t *testing.T) {
	dir, full := smallDisk(t)
	place, err := snapshot.NewFolder(dir, "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	const id = "20260101T000000Z-abcdef"
	sealed := []byte(strings.Repeat("x", 8<<10))
	full(true)
	if err := place.Save(t.Context(), id, sealed); !errors.Is(err, syscall.ENOSPC) || !diag.IsOfDisk(err) {
		t.Errorf("got %v", err)
	}
	if ids, err := place.List(t.Context()); err != nil || len(ids) > 0 || strings.Contains(filesOf(t, dir), "xxxx") {
		t.Errorf("left: %q, %v", ids, err)
	}
	full(false)
	if err := place.Save(t.Context(), id, sealed); err != nil {
		t.Fatalf("with room: %v", err)
	}
	if there, err := place.Load(t.Context(), id); err != nil || string(there) != string(sealed) {
		t.Errorf("it is there with %d bytes, %v", len(there), err)
	}
}
