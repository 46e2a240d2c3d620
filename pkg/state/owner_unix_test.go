//go:build unix

package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// What others may have written is not believed: not in a folder of a cluster where every user may write, and, as root can try, not where it is another user's.
func TestOthersRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(t *testing.T, c Cluster)
		want  string
	}{
		"its own":                         {func(*testing.T, Cluster) {}, ""},
		"record that all may write":       {mode(0o666, recordFile), "every user"},
		"folder that all may write":       {mode(0o777, "."), "every user"},
		"list that all may write":         {mode(0o777, ".."), ""},
		"state folder that all may write": {mode(0o777, "../.."), ""}, // as volumes of pods are
		"record of another":               {owner(65534, recordFile), "belongs to"},
		"folder of another":               {owner(65534, "."), "belongs to"},
		"list of another":                 {owner(65534, ".."), "belongs to"},
		"state folder of another":         {owner(65534, "../.."), "belongs to"},
		"who called sudo": {func(t *testing.T, c Cluster) {
			t.Setenv("SUDO_UID", "65534")
			owner(65534, ".")(t, c)
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
				case want == "" && err != nil:
					t.Errorf("%s: %v", what, err)
				case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(diag.Hint(err), "FLEETCTL_STATE_DIR")):
					t.Errorf("%s: %v (%s)", what, err, diag.Hint(err))
				}
			}
		})
	}
}

func mode(m os.FileMode, name string) func(*testing.T, Cluster) {
	return func(t *testing.T, c Cluster) {
		t.Helper()
		if err := os.Chmod(c.Path(name), m); err != nil {
			t.Fatal(err)
		}
	}
}

// owner gives a file away, which root alone can.
func owner(uid int, name string) func(*testing.T, Cluster) {
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
