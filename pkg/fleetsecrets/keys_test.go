package fleetsecrets

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Several commands that come by new keys at once keep all of them.
func TestKeepKeys(t *testing.T) {
	deps := management.Deps{Store: state.Store{Dir: t.TempDir()}, LookupEnv: func(string) (string, bool) { return "", false }}
	const many = 8
	fleet := state.Fleet{ID: "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", Name: "acme"}
	root := t.TempDir()
	made := make(secret.Keys, many)
	var group sync.WaitGroup
	for i := range made {
		var err error
		if made[i], err = secret.NewKey(); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			there, err := LocalKeys(deps, fleet, root, "")
			if err == nil {
				err = KeepKeys(t.Context(), deps, fleet, append(secret.Keys{made[i]}, there...))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	content, err := os.ReadFile(deps.Store.KeyFile(fleet))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := secret.ParseKeys(content)
	if err != nil {
		t.Fatal(err)
	}
	want, got := made.Recipients(), kept.Recipients()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%d of %d keys are kept", len(got), many)
	}
}

// A named file of any kind is read only up to a limit.
func TestKeyFileWithoutEnd(t *testing.T) {
	endless := filepath.Join(t.TempDir(), "endless")
	if err := os.WriteFile(endless, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(endless, maxKeys+1); err != nil {
		t.Fatal(err)
	}
	deps := management.Deps{Store: state.Store{Dir: t.TempDir()}, LookupEnv: func(string) (string, bool) { return "", false }}
	if _, err := LocalKeys(deps, state.Fleet{Name: "acme"}, t.TempDir(), endless); !errors.Is(err, within.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// Keys that were stored by name, before fleets had identities, may belong to two fleets. Each fleet finds only its own keys in the file,
// whatever its name is, and the file stays for the other fleet.
func TestKeysFiledByName(t *testing.T) {
	deps := management.Deps{Store: state.Store{Dir: t.TempDir()}, LookupEnv: func(string) (string, bool) { return "", false }}
	var keys secret.Keys
	for range 4 {
		key, err := secret.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	byName := state.Fleet{Name: "acme"}
	if err := deps.Store.WriteKeys(byName, keys.File()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(deps.Store.KeyFile(byName))
	if err != nil {
		t.Fatal(err)
	}
	repo := func(rules, sealed secret.Keys) string {
		t.Helper()
		dir := t.TempDir()
		files := map[string][]byte{}
		if len(rules) > 0 {
			files[secret.RulesFile] = secret.NewRules(rules.Recipients())
		}
		if len(sealed) > 0 {
			parsed, err := secret.ParseRules(secret.NewRules(sealed.Recipients()))
			if err != nil {
				t.Fatal(err)
			}
			rule, err := parsed.For("db.sops.yaml")
			if err != nil {
				t.Fatal(err)
			}
			content, err := secret.Encrypt([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {a: b}\n"), rule)
			if err != nil {
				t.Fatal(err)
			}
			files["db.sops.yaml"] = content
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	const one, two = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11", "1f0e8a4f-8a4f-4d0e-9d0b-0a1d0c6b6f12"
	for _, c := range []struct {
		name  string
		fleet state.Fleet
		root  string
		want  secret.Keys
	}{
		{"one fleet, a file of which is not rotated yet", state.Fleet{ID: one, Name: "acme"}, repo(keys[:1], keys[1:2]), keys[:2]},
		{"another of its name", state.Fleet{ID: two, Name: "acme"}, repo(keys[2:3], nil), keys[2:3]},
		{"a new one of its name", state.Fleet{ID: two[:35] + "9", Name: "acme"}, repo(nil, nil), nil},
		{"another name", state.Fleet{ID: two[:35] + "8", Name: "other"}, repo(keys[:1], nil), nil},
		{"one without an identity", state.Fleet{Name: "acme"}, repo(keys[:1], nil), keys},
		{"one that is called like the first one's identity", state.Fleet{Name: one}, repo(keys[:1], nil), nil},
	} {
		found, err := LocalKeys(deps, c.fleet, c.root, "")
		if err != nil || !slices.Equal(found.Recipients(), c.want.Recipients()) {
			t.Errorf("%s: %q, %v; want %q", c.name, found.Recipients(), err, c.want.Recipients())
		}
		if c.fleet.ID == "" || len(found) == 0 {
			continue
		}
		if err := KeepKeys(t.Context(), deps, c.fleet, found); err != nil {
			t.Fatal(err)
		}
		if kept, err := readStored(deps.Store.KeyFile(c.fleet)); err != nil || !slices.Equal(kept.Recipients(), c.want.Recipients()) {
			t.Errorf("%s: %q are kept, %v", c.name, kept.Recipients(), err)
		}
	}
	if after, err := os.ReadFile(deps.Store.KeyFile(byName)); err != nil || string(after) != string(before) {
		t.Errorf("what was filed by name has changed: %v", err)
	}
}
