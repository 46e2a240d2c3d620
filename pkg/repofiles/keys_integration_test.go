//go:build integration

package repofiles_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/repofiles"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// sealedFile is a secret of the fleet, which holds password.
const (
	sealedFile = "apps/db.sops.yaml"
	password   = "correct horse"
)

// keyedCluster is a management cluster as far as the keys of its fleet go.
type keyedCluster struct{ *standingtest.Cluster }

func newKeyedCluster(t *testing.T) *keyedCluster {
	t.Helper()
	return &keyedCluster{standingtest.New(t)}
}

// initKeys does of init what is about keys, on a cluster without Flux: it looks for them before anything is made, settles the rules in the
// fleet repo, and gives the keys to the cluster.
func (e *keyedCluster) initKeys(ctx context.Context, t *testing.T, o session.Options) error {
	t.Helper()
	s, err := session.Open(ctx, e.Deps, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	content := &repofiles.Content{Session: s, Client: e.Client, Endpoint: &repoaccess.Endpoint{}} // everybody may read the repo
	if err := s.CheckKeys(ctx); err != nil {
		return err
	}
	identity, err := s.IdentityFile(o.Dir)
	if err != nil {
		return err
	}
	changes, err := repofiles.SecretFiles(content, ctx, o.Dir)
	if err != nil {
		return err
	}
	writeChanges(t, o.Dir, append(identity, changes...))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: flux.Namespace}}
	if err := e.Client.Create(ctx, namespace); err != nil && !slices.Contains(e.Namespaces(t), flux.Namespace) {
		t.Fatal(err)
	}
	if err := s.Cluster.Save(s.Record()); err != nil {
		t.Fatal(err)
	}
	return flux.NewSystem(e.Client).AddKeys(ctx, fleetsecrets.WithKeys(content.Access().Keys))
}

// keyFile is where the state folder has the keys of the fleet.
func (e *keyedCluster) keyFile(t *testing.T) string {
	t.Helper()
	id, err := fleetrepo.ReadIdentity(e.Dir)
	if err != nil || id == "" {
		t.Fatalf("the repo has the identity %q, %v", id, err)
	}
	return e.Deps.Store.KeyFile(state.Fleet{ID: id, Name: "acme"})
}

func writeChanges(t *testing.T, dir string, changes []gitrepo.Change) {
	t.Helper()
	var set manifest.ChangeSet
	for _, c := range changes {
		set.Write(manifest.File{Path: c.Path, Content: c.Content})
	}
	if _, err := set.Apply(dir); err != nil {
		t.Fatal(err)
	}
}

// decrypts opens a file as the Flux of the cluster can: with the keys that the API server has for it.
func (e *keyedCluster) decrypts(ctx context.Context, t *testing.T, sealed []byte) error {
	t.Helper()
	keys, err := fleetsecrets.ClusterKeys(ctx, e.Client)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := secret.Decrypt(sealed, keys)
	if err == nil && !strings.Contains(string(plain), "Y29ycmVjdCBob3JzZQ==") { // the password in base64
		t.Errorf("decrypted to something else:\n%s", plain)
	}
	return err
}

// newSealedFleet is a management cluster whose fleet repo has a secret.
func newSealedFleet(ctx context.Context, t *testing.T) *keyedCluster {
	t.Helper()
	e := newKeyedCluster(t)
	if err := e.initKeys(ctx, t, e.Options(t, "admin")); err != nil {
		t.Fatal(err)
	}
	edit, err := fleetsecrets.Encrypt(fleetsecrets.Options{Dir: e.Dir, File: sealedFile},
		&fleetsecrets.New{Name: "db", Namespace: "shop", Type: "Opaque", Data: map[string][]byte{"password": []byte(password)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := change.Make(ctx, change.Options{Dir: e.Dir, Edit: edit}); err != nil {
		t.Fatal(err)
	}
	if err := e.decrypts(ctx, t, e.Read(t, sealedFile)); err != nil {
		t.Fatal(err)
	}
	return e
}

// A fleet whose secrets are encrypted comes back on a new management cluster, made on another machine, with the key from the place where it
// was kept; without it nothing is begun.
func TestKeyReachesANewManagementCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	old := newSealedFleet(ctx, t)
	kept, err := os.ReadFile(old.keyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	safe := filepath.Join(t.TempDir(), "fleet.agekey")
	if err := os.WriteFile(safe, kept, 0o600); err != nil {
		t.Fatal(err)
	}

	next := newKeyedCluster(t) // a state folder of its own: another machine
	options := next.Options(t, "admin")
	var clone manifest.ChangeSet
	for _, name := range []string{sealedFile, secret.RulesFile} {
		clone.Write(manifest.File{Path: name, Content: old.Read(t, name)})
	}
	if _, err := clone.Apply(next.Dir); err != nil {
		t.Fatal(err)
	}
	t.Run("without the key", func(t *testing.T) {
		err := next.initKeys(ctx, t, options)
		if !errors.Is(err, secret.ErrNoKey) || !strings.Contains(diag.Hint(err), "--age-key-file") {
			t.Errorf("got %v, hint %q", err, diag.Hint(err))
		}
		if slices.Contains(next.Namespaces(t), flux.Namespace) {
			t.Error("something was made")
		}
	})
	t.Run("with the file", func(t *testing.T) {
		options.AgeKeyFile = safe
		if err := next.initKeys(ctx, t, options); err != nil {
			t.Fatal(err)
		}
		if err := next.decrypts(ctx, t, next.Read(t, sealedFile)); err != nil {
			t.Error(err)
		}
		if got, want := string(next.Read(t, secret.RulesFile)), string(old.Read(t, secret.RulesFile)); got != want {
			t.Errorf("the rules have changed:\n%s", got)
		}
		info, err := os.Stat(next.keyFile(t))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the key is not kept on this machine, in private: %v, %v", info, err)
		}
	})
	t.Run("from the state folder", func(t *testing.T) {
		options.AgeKeyFile = ""
		if err := next.initKeys(ctx, t, options); err != nil {
			t.Error(err)
		}
	})
	t.Run("from a pipeline's variable", func(t *testing.T) {
		next.Deps.Store = state.Store{Dir: t.TempDir()}
		next.Deps.LookupEnv = func(name string) (string, bool) {
			if name == "SOPS_AGE_KEY" {
				return string(kept), true
			}
			return "", false
		}
		if err := next.initKeys(ctx, t, options); err != nil {
			t.Error(err)
		}
	})
	t.Run("from the cluster, where this machine has lost it", func(t *testing.T) {
		next.Deps.Store = state.Store{Dir: t.TempDir()}
		next.Deps.LookupEnv = func(string) (string, bool) { return "", false }
		if err := next.initKeys(ctx, t, options); err != nil {
			t.Fatal(err)
		}
		if again, err := os.ReadFile(next.keyFile(t)); err != nil || string(again) != string(kept) {
			t.Errorf("the key is not kept: %v", err)
		}
	})
}

// A new key is on the management cluster before any file changes, and the old one stays there: Flux decrypts each revision on the way, and
// a commit that somebody else has made with the old key meanwhile.
func TestNewKeyIsHandedOver(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newSealedFleet(ctx, t)
	before := e.Read(t, sealedFile)
	old, err := fleetsecrets.ClusterKeys(ctx, e.Client)
	if err != nil {
		t.Fatal(err)
	}
	older, err := secret.NewKey() // which this machine does not know
	if err != nil {
		t.Fatal(err)
	}
	if err := flux.NewSystem(e.Client).AddKeys(ctx, fleetsecrets.WithKeys(slices.Concat(old, secret.Keys{older}))); err != nil {
		t.Fatal(err)
	}
	t.Run("a look at it gives nothing away", func(t *testing.T) {
		if _, err := fleetsecrets.Rotate(ctx, e.Deps, fleetsecrets.RotateOptions{Dir: e.Dir, NewKey: true, DryRun: true}); err != nil {
			t.Fatal(err)
		}
		if keys, err := fleetsecrets.ClusterKeys(ctx, e.Client); err != nil || len(keys) != 2 {
			t.Errorf("%d keys, %v", len(keys), err)
		}
	})
	edit, err := fleetsecrets.Rotate(ctx, e.Deps, fleetsecrets.RotateOptions{Dir: e.Dir, NewKey: true})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := fleetsecrets.ClusterKeys(ctx, e.Client)
	if err != nil {
		t.Fatal(err)
	}
	if got := keys.Recipients(); len(got) != 3 || got[1] != old[0].Recipient() || got[2] != older.Recipient() {
		t.Fatalf("the cluster has %q: the new key, the one in use and the one before were expected", got)
	}
	if string(e.Read(t, sealedFile)) != string(before) {
		t.Error("a file has changed before the cluster had the key")
	}
	if err := e.decrypts(ctx, t, before); err != nil {
		t.Errorf("the revision before: %v", err)
	}

	if _, err := change.Make(ctx, change.Options{Dir: e.Dir, Edit: edit}); err != nil {
		t.Fatal(err)
	}
	after := e.Read(t, sealedFile)
	if err := e.decrypts(ctx, t, after); err != nil {
		t.Errorf("the revision after: %v", err)
	}
	if err := e.decrypts(ctx, t, before); err != nil {
		t.Errorf("a file that is not rotated yet: %v", err)
	}
	if _, err := secret.Decrypt(after, old); !errors.Is(err, secret.ErrNoKey) {
		t.Errorf("the old key alone still opens what was rotated: %v", err)
	}
	if rules := string(e.Read(t, secret.RulesFile)); !strings.Contains(rules, keys[0].Recipient()) ||
		strings.Contains(rules, old[0].Recipient()) {
		t.Errorf("the rules are\n%s", rules)
	}
	if err := e.initKeys(ctx, t, e.Options(t, "admin")); err != nil { // the next init keeps all of them
		t.Fatal(err)
	}
	if again, err := fleetsecrets.ClusterKeys(ctx, e.Client); err != nil || !slices.Equal(again.Recipients(), keys.Recipients()) {
		t.Errorf("after init the cluster has %q, %v", again.Recipients(), err)
	}
}

// Where a management cluster cannot be given the new key, no file changes.
func TestNewKeyNeedsItsManagementCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	e := newSealedFleet(ctx, t)
	before := e.Read(t, sealedFile)
	if err := os.Remove(e.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	if _, err := fleetsecrets.Rotate(ctx, e.Deps, fleetsecrets.RotateOptions{Dir: e.Dir, NewKey: true}); err == nil ||
		!strings.Contains(diag.Hint(err), "--offline") {
		t.Errorf("got %v, hint %q", err, diag.Hint(err))
	}
	if string(e.Read(t, sealedFile)) != string(before) {
		t.Error("a file has changed")
	}
	if keys, err := fleetsecrets.ClusterKeys(ctx, e.Client); err != nil || len(keys) != 1 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

// Two fleets of one name, made by one user, have nothing of each other: no key of one is on the management cluster of the other.
func TestFleetsOfOneNameShareNoKeys(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	one := newSealedFleet(ctx, t)
	two := newKeyedCluster(t)
	two.Deps.Store = one.Deps.Store
	options := two.Options(t, "admin")
	fleet := strings.ReplaceAll(string(two.Read(t, v1alpha1.FileName)), "name: mgmt", "name: second")
	if err := os.WriteFile(filepath.Join(two.Dir, v1alpha1.FileName), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := two.initKeys(ctx, t, options); err != nil {
		t.Fatal(err)
	}
	first, err := fleetsecrets.ClusterKeys(ctx, one.Client)
	if err != nil {
		t.Fatal(err)
	}
	second, err := fleetsecrets.ClusterKeys(ctx, two.Client)
	if err != nil || len(first) != 1 || len(second) != 1 || first[0].Recipient() == second[0].Recipient() {
		t.Errorf("the clusters have %q and %q, %v", first.Recipients(), second.Recipients(), err)
	}
	if _, err := secret.Decrypt(one.Read(t, sealedFile), second); !errors.Is(err, secret.ErrNoKey) {
		t.Errorf("the second fleet's cluster reads the first one's secrets: %v", err)
	}
}
