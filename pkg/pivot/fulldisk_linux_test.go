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

// smallDisk returns a folder on a separate small disk, and a function that fills this disk to the last byte or frees it again.
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

// filesOf returns the files below a folder with their contents, without the file that fills the disk and without lock files.
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

// A pivot on a machine with a full disk fails before it changes the source, and leaves no half-written file. With room, the same command
// continues. The same holds if the disk is full after the take-over: this machine still has the kubeconfig of the target.
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
	refused("the kubeconfig of the target", p.keepTarget(ctx, e.Client, way))
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
	if unfinished, err := Unfinished(s.Cluster); err != nil || !unfinished {
		t.Errorf("a run after this one does not go on: %v, %v", unfinished, err)
	}
}

// A full disk never leaves a part of a snapshot.
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
