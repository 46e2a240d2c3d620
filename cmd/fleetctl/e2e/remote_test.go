//go:build e2e

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// reachable is an address of this machine that pods can reach: any but loopback will do, their traffic leaves through the bridge.
func reachable(t testing.TB) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no IPv4 address but loopback: pods could not reach a Git server on it")
	return ""
}

// note is something that somebody else pushes, for the management cluster whose own manifests are in that folder.
func note(manifests string) map[string]string {
	return map[string]string{manifests + "/note.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: note\n  namespace: default\n"}
}

// shows tells whether Flux has fetched a commit.
func (st status) shows(commit string) bool {
	for _, s := range st.Flux.Sources {
		if strings.HasSuffix(s.Revision, commit) {
			return true
		}
	}
	return false
}

// leavesRemote tears down, and checks that the remote stays as it is.
func (f *fleet) leavesRemote(repo *gittest.Repo, teardown func()) {
	f.t.Helper()
	f.step("teardown leaves the remote alone", func(t *testing.T) {
		head := repo.Head(t, "main")
		teardown()
		if now := repo.Head(t, "main"); now != head {
			t.Errorf("the remote moved from %s to %s", head, now)
		}
	})
}

// TestFleetOnSSH has its fleet repo on OpenSSH, with the user's own key for pushing and a deploy key that init makes for Flux.
func TestFleetOnSSH(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "e2e-ssh")
	server := gittest.NewOpenSSH(t, gittest.Options{Listen: "127.0.0.1:0"}) // controllers on the embedded host are on this machine
	own, err := gitrepo.GenerateDeployKey("e2e")
	if err != nil {
		t.Fatal(err)
	}
	server.AuthorizeKey(own.Public, false)
	key, hosts := filepath.Join(f.home, "key"), filepath.Join(f.home, "known_hosts")
	for path, content := range map[string][]byte{key: own.Private, hosts: []byte(server.KnownHosts)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Without --kubernetes-version: the bundle's images decide.
	args := []string{
		"init", "--provider", "docker", "--bundle", os.Getenv(envBundle), "-o", "json", "--git-url",
		server.URL, "--ssh-key-file", key,
	}
	t.Run("an unknown host key is shown, never trusted", func(t *testing.T) {
		f.fails(1, []string{"SHA256:"}, args...)
	})
	args = append(args, "--ssh-known-hosts", hosts)
	t.Run("the fleet repo is written before there is a management cluster, and init takes it along", func(t *testing.T) {
		f.ok("init", "--scaffold", "--provider", "docker", "--git-url", server.URL, "--ssh-key-file", key, "--ssh-known-hosts", hosts)
		if branches := gittest.Git(t, server.Dir, "branch", "--list"); branches != "" {
			t.Errorf("--scaffold pushed:\n%s", branches)
		}
	})
	t.Run("init makes a deploy key and says where it belongs", func(t *testing.T) {
		r := f.fails(1, []string{"git deploy key", "ssh-ed25519 ", "read-only deploy key"}, args...)
		if made := f.on.processes(f); len(made) > 0 {
			t.Errorf("processes:\n%s", told(made))
		}
		_, public, _ := strings.Cut(r.stderr, "ssh-ed25519 ")
		server.AuthorizeKey("ssh-ed25519 "+strings.SplitN(public, "\n", 2)[0], true)
	})
	t.Run("with the key in place, init goes on", func(t *testing.T) {
		r := decode[initResult](t, f.ok(args...).stdout)
		if head := server.Head(t, "main"); head != r.Revision || !strings.HasPrefix(r.DeployKey, "ssh-ed25519 ") {
			t.Errorf("init reports %s and %q, the remote is at %s", r.Revision, r.DeployKey, head)
		}
		if log := gittest.Git(t, server.Dir, "log", "--format=%s", "main"); !strings.Contains(log, "\nDeclare the fleet ") {
			t.Errorf("the remote's commits do not begin with the scaffold:\n%s", log)
		}
		if !strings.Contains(server.File(t, "main", "fleet.yaml"), "knownHosts") {
			t.Error("fleet.yaml does not pin the host key")
		}
	})
	if t.Failed() {
		return
	}
	f.step("init again applies what somebody else has pushed, and commits nothing itself", func(t *testing.T) {
		head := server.Seed(t, "main", note("providers/docker/v1/mgmt"))
		again := decode[initResult](t, f.ok("init", "--bundle", os.Getenv(envBundle), "-o", "json", "--ssh-key-file", key).stdout)
		if again.Revision != head || server.Head(t, "main") != head {
			t.Errorf("revision %s; the remote was at %s and is at %s", again.Revision, head, server.Head(t, "main"))
		}
		if st, code := f.status(); code != 0 || !st.shows(head) {
			t.Errorf("status: exit %d, %+v", code, st)
		}
	})
	f.leavesRemote(server.Repo, func() { f.ok("teardown") })
}
