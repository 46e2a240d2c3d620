//go:build e2e

package e2e

import (
	"fmt"
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

// followsRemote checks that the management cluster follows what somebody else pushes. credentials are flags for who runs init again.
func (f *fleet) followsRemote(repo *gittest.Repo, credentials ...string) {
	f.t.Helper()
	f.step("a push by somebody else is applied", func(t *testing.T) {
		head := repo.Seed(t, "main", map[string]string{
			"providers/docker/v1/mgmt/note.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: note\n  namespace: default\n",
		})
		eventually(t, "status shows the new revision", 3*60e9, func() string {
			st, code := f.status()
			for _, s := range st.Flux.Sources {
				if code == 0 && strings.HasSuffix(s.Revision, head) {
					return ""
				}
			}
			return strings.Join([]string{"want", head}, " ")
		})
	})
	f.step("init again catches up and changes nothing", func(t *testing.T) {
		r := decode[initResult](t, f.ok(append([]string{"init", "--bundle", os.Getenv(envBundle), "-o", "json"}, credentials...)...).stdout)
		if r.Revision != repo.Head(t, "main") || r.Changed {
			t.Errorf("revision %s, changed %v; the remote is at %s", r.Revision, r.Changed, repo.Head(t, "main"))
		}
	})
	f.step("teardown leaves the remote alone", func(t *testing.T) {
		head := repo.Head(t, "main")
		f.ok("teardown")
		if now := repo.Head(t, "main"); now != head {
			t.Errorf("the remote moved from %s to %s", head, now)
		}
	})
}

// TestFleetOnHTTPS has its fleet repo on a Git server behind TLS, with a token: the fleet of an example, as somebody else has pushed it.
func TestFleetOnHTTPS(t *testing.T) {
	f := newFleet(t, "e2e-https")
	server := gittest.NewHTTPS(t, gittest.Options{Listen: net.JoinHostPort(reachable(t), "0")})
	ca := filepath.Join(f.home, "ca.pem")
	if err := os.WriteFile(ca, server.CA, 0o644); err != nil {
		t.Fatal(err)
	}
	declared := strings.NewReplacer(
		"- name: pipeline", "- name: "+f.name,
		"    url: https://git.example.com/platform/fleet.git\n",
		fmt.Sprintf("    url: %s\n    username: %s\n    caFile: ca.pem\n    interval: 10s\n", server.URL, server.Username),
	).Replace(example(t, "pipeline/fleet.yaml"))
	server.Seed(t, "main", map[string]string{"fleet.yaml": declared, "ca.pem": string(server.CA)})
	args := initArgs("--git-url", server.URL, "--git-username", server.Username, "--git-ca-file", ca)
	t.Run("without the token, nothing is created", func(t *testing.T) {
		f.fails(1, []string{"FLEETCTL_GIT_TOKEN"}, args...)
		if made := containers(t, f.name+"-"); len(made) > 0 {
			t.Errorf("containers: %v", made)
		}
	})
	t.Run("with a token that may only read, nothing is created", func(t *testing.T) {
		f.token = server.ReadToken
		f.fails(1, []string{"push"}, args...)
		if made := containers(t, f.name+"-"); len(made) > 0 {
			t.Errorf("containers: %v", made)
		}
	})
	f.token = server.Token
	t.Run("init", func(t *testing.T) {
		r := decode[initResult](t, f.ok(args...).stdout)
		if head := server.Head(t, "main"); head != r.Revision {
			t.Errorf("init reports %s, the remote is at %s", r.Revision, head)
		}
		if now := server.File(t, "main", "fleet.yaml"); !strings.Contains(now, "# ephemeral: platform takes over") || !strings.Contains(now, "version: v") {
			t.Errorf("fleet.yaml does not pin the versions, or has lost a comment:\n%s", now)
		}
		for _, name := range []string{"fleet.yaml", "providers/docker/v1/mgmt/flux-system/gotk-sync.yaml"} {
			if strings.Contains(server.File(t, "main", name), server.Token) {
				t.Errorf("the token is in %s, in Git", name)
			}
		}
	})
	if t.Failed() {
		return
	}
	f.followsRemote(server.Repo)
}

// TestFleetOnSSH has its fleet repo on OpenSSH, with the user's own key for pushing and a deploy key that init makes for Flux.
func TestFleetOnSSH(t *testing.T) {
	f := newFleetOn(t, onEmbedded, "e2e-ssh")
	server := gittest.NewSSH(t, gittest.Options{Listen: net.JoinHostPort(reachable(t), "0")})
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
	args := []string{"init", "--provider", "docker", "--bundle", os.Getenv(envBundle), "-o", "json", "--git-url", server.URL, "--ssh-key-file", key}
	t.Run("an unknown host key is shown, never trusted", func(t *testing.T) {
		f.fails(1, []string{"SHA256:"}, args...)
	})
	args = append(args, "--ssh-known-hosts", hosts)
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
		if !strings.Contains(server.File(t, "main", "fleet.yaml"), "knownHosts") {
			t.Error("fleet.yaml does not pin the host key")
		}
	})
	if t.Failed() {
		return
	}
	f.followsRemote(server.Repo, "--ssh-key-file", key)
}
