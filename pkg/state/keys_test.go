package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Many that add a line to what is there lose none.
func TestLockKeys(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	const many = 20
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			unlock, err := s.LockKeys(t.Context(), "acme")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			there, err := os.ReadFile(s.KeyFile("acme"))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
			if err := s.WriteKeys("acme", append(there, byte('a'+i), '\n')); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	content, err := os.ReadFile(s.KeyFile("acme"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(content))
	slices.Sort(lines)
	if got := strings.Join(lines, ""); got != "abcdefghijklmnopqrst" {
		t.Errorf("there are %q", got)
	}
}

// The lock of the keys can be taken by who holds that of the secrets, and who waits for one ends with their context.
func TestLockSecrets(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	unlock, err := s.LockSecrets(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	inner, err := s.LockKeys(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	inner()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.LockSecrets(ctx, "acme"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	other, err := s.LockSecrets(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	other()
}

func TestKeepEdit(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "state")}
	one, err := s.KeepEdit("acme", "apps/db.sops.yaml", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.KeepEdit("acme", "apps/db.sops.yaml", []byte("2"))
	if err != nil || one == two {
		t.Fatalf("%s twice, %v", two, err)
	}
	for _, path := range []string{one, filepath.Dir(one)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	mine := filepath.Join(t.TempDir(), "mine.age")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.DropEdit("acme", one), s.DropEdit("acme", mine)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error("a file of somebody else's was removed")
	}
	if _, err := os.Stat(one); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is still there")
	}
}
