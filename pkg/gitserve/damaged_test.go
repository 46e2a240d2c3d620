package gitserve_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitserve"
)

// A power cut has left a state that says nothing: the server is as good as new, and nobody has to remove a file by hand.
func TestDamagedState(t *testing.T) {
	s := spec(t)
	ensure(t, s, true)
	for _, content := range []string{"", "{", "\x00\x00"} {
		if err := gitserve.Stop(t.Context(), s.StateDir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.StateDir, "git-serve.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if st := status(t, s); st.Running || st.Healthy {
			t.Errorf("%q: status %+v", content, st)
		}
		ensure(t, s, true)
		if st := status(t, s); !st.Healthy {
			t.Errorf("%q: status %+v", content, st)
		}
	}
}
