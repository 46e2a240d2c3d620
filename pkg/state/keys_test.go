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

// Writers that add lines at the same time lose no line.
func TestLockKeys(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	const many = 20
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			unlock, err := s.LockKeys(t.Context(), Fleet{Name: "acme"})
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			there, err := os.ReadFile(s.KeyFile(Fleet{Name: "acme"}))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
			if err := s.WriteKeys(Fleet{Name: "acme"}, append(there, byte('a'+i), '\n')); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	content, err := os.ReadFile(s.KeyFile(Fleet{Name: "acme"}))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(content))
	slices.Sort(lines)
	if got := strings.Join(lines, ""); got != "abcdefghijklmnopqrst" {
		t.Errorf("there are %q", got)
	}
}

// The holder of the secrets' lock can take the keys' lock. A wait for a lock ends with its context.
func TestLockSecrets(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	unlock, err := s.LockSecrets(t.Context(), Fleet{Name: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	inner, err := s.LockKeys(t.Context(), Fleet{Name: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	inner()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.LockSecrets(ctx, Fleet{Name: "acme"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	other, err := s.LockSecrets(t.Context(), Fleet{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	other()
}

// A name does not lead to files that are stored by an identity, and two fleets with the same name share no file.
func TestKeyFilesAreApart(t *testing.T) {
	const id = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"
	s := Store{Dir: filepath.Join(t.TempDir(), "state")}
	fleets := []Fleet{{ID: id, Name: "acme"}, {ID: "0" + id[1:], Name: "acme"}, {Name: "acme"}, {Name: id}, {Name: "fleets"}}
	for _, f := range fleets {
		if err := s.WriteKeys(f, []byte(f.ID+"/"+f.Name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range fleets {
		content, err := os.ReadFile(s.KeyFile(f))
		if err != nil || string(content) != f.ID+"/"+f.Name {
			t.Errorf("%+v has %s, %v", f, content, err)
		}
		if info, err := os.Stat(filepath.Dir(s.KeyFile(f))); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%+v: %v, %v", f, info, err)
		}
	}
	unlock, err := s.LockKeys(t.Context(), fleets[0])
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, f := range fleets[1:] {
		other, err := s.LockKeys(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		other()
	}
}

func TestKeepEdit(t *testing.T) {
	s := Store{Dir: filepath.Join(t.TempDir(), "state")}
	acme, other := Fleet{ID: "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", Name: "acme"},
		Fleet{ID: "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f12", Name: "acme"}
	one, err := s.KeepEdit(acme, "apps/db.sops.yaml", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := s.KeepEdit(acme, "apps/db.sops.yaml", []byte("2"))
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
	theirs, err := s.KeepEdit(other, "apps/db.sops.yaml", []byte("3"))
	if err != nil || filepath.Dir(theirs) == filepath.Dir(one) {
		t.Errorf("another fleet of the same name has its edits in %s, too: %v", theirs, err)
	}
	early, err := s.KeepEdit(Fleet{Name: "acme"}, "apps/db.sops.yaml", []byte("4")) // before there was an identity
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{one, mine, theirs, early} {
		if err := s.DropEdit(acme, path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Error("another fleet's edit was removed")
	}
	if _, err := os.Stat(early); !errors.Is(err, os.ErrNotExist) {
		t.Error("what was kept before there was an identity is still there")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error("a file of somebody else's was removed")
	}
	if _, err := os.Stat(one); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is still there")
	}
}
