//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestQuickstart is the README's one command, on the embedded host: from a clone with its programs built to a fleet with an Available
// cluster in it, and the command that the script ends with takes all of it away. A second run finds everything done.
func TestQuickstart(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "quickstart")
	quickstart := func() string {
		cmd := exec.Command("../../../scripts/quickstart.sh")
		// The cache is the user's own here: the bundle is in it.
		env := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "KIND_EXPERIMENTAL_PROVIDER=") })
		cmd.Env = append(env, "FLEETCTL_HOST=embedded", "FLEETCTL_OFFLINE=true", "FLEET_DIR="+f.dir, "FLEETCTL_STATE_DIR="+f.state,
			"KUBECONFIG="+filepath.Join(f.home, "kubeconfig"), "GIT_CONFIG_GLOBAL="+filepath.Join(f.home, "gitconfig"))
		said := &echo{t: t}
		cmd.Stdout, cmd.Stderr = said, said
		begin := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatalf("quickstart: %v", err)
		}
		t.Logf("quickstart took %.1fs", time.Since(begin).Seconds())
		return said.String()
	}
	quickstart()
	st, code := f.status()
	if code != 0 || !st.Ready || len(st.Clusters) != 1 || !st.Clusters[0].Available {
		t.Fatalf("after quickstart status exits with %d and says %+v", code, st)
	}
	if again := quickstart(); !strings.Contains(again, "is declared already") {
		t.Errorf("a second quickstart says\n%s", again)
	}
	f.ok("teardown", "--delete-clusters", "--yes")
	eventually(t, "nothing is left", time.Minute, func() string { return told(f.on.processes(f)) })
}
