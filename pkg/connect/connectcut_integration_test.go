//go:build integration

package connect

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// A connect that is cut off at a write leaves no half way: this machine knows either nothing or the whole way, and the same command
// finishes. The same holds for a connect that replaces an earlier one, which keeps some way there at every moment. A folder in the place of
// the file stops the command right before the write.
func TestConnectCutOffAtEveryWrite(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	e.Apply(ctx, t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+flux.Namespace+"}}")
	if err := e.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: flux.Namespace, Name: flux.DecryptionSecret},
		Data:       map[string][]byte{flux.DecryptionKey: secret.Keys{key}.File()},
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.Dir, fleetrepo.IdentityFile), fleetrepo.IdentityContent(s.Identity()), 0o600); err != nil {
		t.Fatal(err)
	}
	fleet := s.StateFleet()
	for name, file := range map[string]func(state.Store, string) string{
		"the age key":               func(s state.Store, _ string) string { return s.KeyFile(fleet) },
		"the kubeconfig":            func(s state.Store, _ string) string { return s.Cluster("mgmt").Path(management.KubeconfigFile) },
		"the way":                   func(s state.Store, _ string) string { return s.Cluster("mgmt").Path(connectedFile) },
		"the user's own kubeconfig": func(_ state.Store, merged string) string { return merged },
	} {
		for _, again := range []bool{false, true} {
			story := name
			if again {
				story += ", over an earlier connect"
			}
			t.Run(story, func(t *testing.T) {
				e.Deps.Store = state.Store{Dir: t.TempDir()}
				merged := filepath.Join(t.TempDir(), "config")
				o := Options{Dir: e.Dir, Kubeconfig: e.Kubeconfig, Context: "admin", MergeInto: merged}
				if again {
					if _, err := Connect(ctx, e.Deps, o); err != nil {
						t.Fatal(err)
					}
				}
				giveBack := obstruct(t, file(e.Deps.Store, merged))
				if _, err := Connect(ctx, e.Deps, o); err == nil {
					t.Fatal("nothing was in its way")
				}
				giveBack()
				if target, err := management.Find(e.Deps.Store, "mgmt", e.Dir); err == nil && target.Record != nil {
					if _, err := target.Client(ctx); err != nil {
						t.Errorf("what is recorded leads nowhere: %v", err)
					}
				} else if again {
					t.Errorf("the earlier way is lost: %v", err)
				}
				if _, err := Connect(ctx, e.Deps, o); err != nil {
					t.Fatalf("the same command: %v", err)
				}
				target, err := management.Find(e.Deps.Store, "mgmt", e.Dir)
				if err != nil || !target.Record.Connected || target.Record.MergedInto != merged {
					t.Fatalf("%+v, %v", target, err)
				}
				client, err := target.Client(ctx)
				if err == nil {
					_, err = client.ServerVersion(ctx)
				}
				if err != nil {
					t.Errorf("the way leads nowhere: %v", err)
				}
				if !slices.Contains(kube.Contexts(merged), management.ContextName("mgmt")) {
					t.Errorf("the user's kubeconfig has %q", kube.Contexts(merged))
				}
				kept, err := os.ReadFile(e.Deps.Store.KeyFile(fleet))
				if err != nil || bytes.Count(kept, []byte("AGE-SECRET-KEY-")) != 1 {
					t.Errorf("the age keys: %d bytes, %v", len(kept), err)
				}
			})
		}
	}
}

// A kill before the record leaves the ways without it. The same command finishes, and no other takes them for a management cluster.
func TestConnectCutOffBeforeTheRecord(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	s, err := e.Take(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.Dir, fleetrepo.IdentityFile), fleetrepo.IdentityContent(s.Identity()), 0o600); err != nil {
		t.Fatal(err)
	}
	e.Deps.Store = state.Store{Dir: t.TempDir()}
	o := Options{Dir: e.Dir, Kubeconfig: e.Kubeconfig, Context: "admin"}
	if _, err := Connect(ctx, e.Deps, o); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(e.Deps.Store.Cluster("mgmt").Path("cluster.json")); err != nil {
		t.Fatal(err)
	}
	if target, err := management.Find(e.Deps.Store, "mgmt", e.Dir); err == nil && target.Record != nil {
		t.Errorf("what has no record is found: %+v", target.Record)
	}
	if _, err := Connect(ctx, e.Deps, o); err != nil {
		t.Fatal(err)
	}
	if target, err := management.Find(e.Deps.Store, "mgmt", e.Dir); err != nil || !target.Record.Connected {
		t.Errorf("%+v, %v", target, err)
	}
}

// obstruct puts a folder with content in the place of a file, which nothing can write then. The returned function puts back what was there.
func obstruct(t *testing.T, file string) (giveBack func()) {
	t.Helper()
	before, err := os.ReadFile(file)
	there := err == nil
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(file, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if there {
			if err := os.WriteFile(file, before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
