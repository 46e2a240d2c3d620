//go:build unix

package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Files that others may have written are not trusted: files in a cluster's folder that every user may write to and, in tests as root, files
// of another user.
func TestOthersRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, c Cluster)
		want  string
	}{
		"its own":                         {func(*testing.T, Cluster) {}, ""},
		"record that all may write":       {chmod(0o666, recordFile), "every user"},
		"folder that all may write":       {chmod(0o777, "."), "every user"},
		"list that all may write":         {chmod(0o777, ".."), ""},
		"state folder that all may write": {chmod(0o777, "../.."), ""}, // as volumes of pods are
		"record of another":               {chown(65534, recordFile), "belongs to"},
		"folder of another":               {chown(65534, "."), "belongs to"},
		"list of another":                 {chown(65534, ".."), "belongs to"},
		"state folder of another":         {chown(65534, "../.."), "belongs to"},
		"record of another cluster": {func(t *testing.T, c Cluster) {
			t.Helper()
			if err := os.WriteFile(c.Path(recordFile), []byte(`{"formatVersion":"1","name":"staging"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is the record of"},
		"who called sudo": {func(t *testing.T, c Cluster) {
			t.Setenv("SUDO_UID", "65534")
			chown(65534, ".")(t, c)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SUDO_UID", "")
			c := Store{Dir: filepath.Join(t.TempDir(), "state")}.Cluster("mgmt")
			if err := c.Save(Record{Name: "mgmt"}); err != nil {
				t.Fatal(err)
			}
			tc.spoil(t, c)
			want := tc.want
			if want == "belongs to" && os.Geteuid() != 0 {
				want = "" // nothing was given away
			}
			_, err := c.Load()
			saved := c.Write("kubeconfig", []byte("secret"))
			for what, err := range map[string]error{"load": err, "write": saved} {
				switch {
				case tc.want == "is the record of":
					if (what == "load") != (err != nil && strings.Contains(err.Error(), tc.want)) {
						t.Errorf("%s: %v", what, err)
					}
				case want == "" && err != nil:
					t.Errorf("%s: %v", what, err)
				case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(diag.Hint(err), "FLEETCTL_STATE_DIR")):
					t.Errorf("%s: %v (%s)", what, err, diag.Hint(err))
				}
			}
		})
	}
}

func chmod(m os.FileMode, name string) func(*testing.T, Cluster) {
	return func(t *testing.T, c Cluster) {
		t.Helper()
		if err := os.Chmod(c.Path(name), m); err != nil {
			t.Fatal(err)
		}
	}
}

// chown gives a file away, which root alone can.
func chown(uid int, name string) func(*testing.T, Cluster) {
	return func(t *testing.T, c Cluster) {
		t.Helper()
		if os.Geteuid() != 0 {
			return
		}
		if err := os.Chown(c.Path(name), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
}

// Neither are keys in a folder of another, or that all may write.
func TestOthersKeys(t *testing.T) {
	s, fleet := Store{Dir: t.TempDir()}, Fleet{Name: "acme"}
	if err := s.WriteKeys(fleet, []byte("key")); err != nil {
		t.Fatal(err)
	}
	file := s.KeyFile(fleet)
	if err := CheckOwner(file); err != nil {
		t.Errorf("its own: %v", err)
	}
	for _, name := range []string{file, filepath.Dir(file)} {
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := CheckOwner(file); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s that all may write: %v", name, err)
		}
		if err := os.Chmod(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// What goes into a folder of the state folder goes nowhere where another user wants it: to the end of a link, or into a folder of the
// user's.
func TestFoldersOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root can give a folder away
	}
	t.Setenv("SUDO_UID", "")
	fleet := Fleet{Name: "acme"}
	writes := map[string]func(s Store) error{
		"support-bundles": func(s Store) error { _, err := s.SupportBundle("mgmt", time.Now()); return err },
		"edits":           func(s Store) error { _, err := s.KeepEdit(fleet, "a.yaml", []byte("x")); return err },
		"keys": func(s Store) error {
			unlock, err := s.LockKeys(t.Context(), fleet)
			if err == nil {
				unlock()
				err = s.WriteKeys(fleet, []byte("key"))
			}
			return err
		},
	}
	for name, write := range writes {
		for spoil, by := range map[string]func(dir, victim string) error{
			"a link": func(dir, victim string) error {
				return errors.Join(os.Symlink(victim, filepath.Join(dir, name)), os.Lchown(filepath.Join(dir, name), 65534, 65534))
			},
			"the folder": func(dir, _ string) error {
				return errors.Join(os.Mkdir(filepath.Join(dir, name), 0o755), os.Chown(filepath.Join(dir, name), 65534, 65534))
			},
			"the state folder": func(dir, _ string) error { return os.Chown(dir, 65534, 65534) },
		} {
			s, victim := Store{Dir: filepath.Join(t.TempDir(), "state")}, t.TempDir()
			if err := errors.Join(os.Mkdir(s.Dir, 0o777), by(s.Dir, victim)); err != nil {
				t.Fatal(err)
			}
			before, err := os.Stat(victim)
			if err != nil {
				t.Fatal(err)
			}
			if err := write(s); err == nil || !strings.Contains(err.Error(), "belongs to") {
				t.Errorf("%s, %s is another's: %v", name, spoil, err)
			}
			after, err := os.Stat(victim)
			entries, _ := os.ReadDir(victim)
			if err != nil || after.Mode() != before.Mode() || len(entries) > 0 {
				t.Errorf("%s, %s is another's: its folder has %v, and the mode %s", name, spoil, entries, after.Mode())
			}
		}
		s := Store{Dir: filepath.Join(t.TempDir(), "state")}
		if err := write(s); err != nil {
			t.Errorf("%s of one's own: %v", name, err)
		}
	}
}

// What somebody else may have written into the cache is not believed, neither in the cache folder nor in one of fleetctl's folders there.
func TestOthersCaches(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"its own":             {func(string) error { return nil }, ""},
		"the volume of a pod": {func(dir string) error { return os.Chmod(dir, 0o777) }, ""},
		"a link to its own":   {func(dir string) error { return moved(dir, filepath.Join(dir, "render")) }, ""},
		"not there":           {os.RemoveAll, ""},
		"all may write to it": {func(dir string) error { return os.Chmod(filepath.Join(dir, "images"), 0o777) }, "every user"},
		"a link to what is so": {func(dir string) error {
			return errors.Join(moved(dir, filepath.Join(dir, "crds")), os.Chmod(dir+"-moved", 0o777))
		}, "every user"},
		"another's":         {func(dir string) error { return os.Chown(dir, 65534, 65534) }, "belongs to"},
		"another's entries": {func(dir string) error { return os.Chown(filepath.Join(dir, "render"), 65534, 65534) }, "belongs to"},
		"another's link": {func(dir string) error {
			return errors.Join(moved(dir, filepath.Join(dir, "bundles")), os.Lchown(filepath.Join(dir, "bundles"), 65534, 65534))
		}, "belongs to"},
		"a link to another's": {func(dir string) error {
			return errors.Join(moved(dir, filepath.Join(dir, "bundles")), os.Chown(dir+"-moved", 65534, 65534))
		}, "belongs to"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == "belongs to" && os.Geteuid() != 0 {
				return // nothing can be given away
			}
			t.Setenv("SUDO_UID", "")
			dir := filepath.Join(t.TempDir(), "cache")
			for _, name := range cacheFolders() {
				if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := tc.spoil(dir); err != nil {
				t.Fatal(err)
			}
			err := CheckCache(dir)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(diag.Hint(err), "--cache-dir")):
				t.Errorf("%v\n%s", err, diag.Hint(err))
			}
		})
	}
}

// moved puts a link in the place of a folder, and the folder beside dir.
func moved(dir, folder string) error {
	return errors.Join(os.Rename(folder, dir+"-moved"), os.Symlink(dir+"-moved", folder))
}
