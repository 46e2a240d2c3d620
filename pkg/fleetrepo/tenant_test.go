package fleetrepo

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// contents returns all files of the repo.
func contents(t *testing.T, r *Repo) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(r.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		all[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Adding and then removing a tenant restores all files, with any names. Adding it twice is the same as adding it once.
func TestAddThenRemove(t *testing.T) {
	for name, tc := range map[string]struct{ add, remove func(r *Repo) (*Edit, error) }{
		"tenant": {
			func(r *Repo) (*Edit, error) { return r.AddTenant("shop", TenantOptions{}) },
			func(r *Repo) (*Edit, error) { return r.RemoveTenant("shop", nil) },
		},
		"tenant of one environment": {
			func(r *Repo) (*Edit, error) {
				return r.AddTenant("shop", TenantOptions{Environments: []string{"prod"}, Group: "g", Role: "edit"})
			},
			func(r *Repo) (*Edit, error) { return r.RemoveTenant("shop", []string{"prod"}) },
		},
		"feature of all": {
			func(r *Repo) (*Edit, error) { return r.EnableFeature("ingress", FeatureOptions{}) },
			func(r *Repo) (*Edit, error) { return r.DisableFeature("ingress", FeatureOptions{}) },
		},
		"feature of a cluster": {
			func(r *Repo) (*Edit, error) {
				return r.EnableFeature("ingress", FeatureOptions{Clusters: []string{"demo"}})
			},
			func(r *Repo) (*Edit, error) { return r.DisableFeature("ingress", FeatureOptions{}) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			for _, env := range r.EnvironmentNames() { // init has made these
				for _, l := range r.layouts() {
					e := &Edit{}
					_, r = done(t, r, e, r.withApps(e, l, env))
				}
			}
			e, err := r.AddFeature("ingress")
			_, r = done(t, r, e, err)
			before := contents(t, r)
			e, err = tc.add(r)
			diff, r := done(t, r, e, err)
			if diff == "" {
				t.Error("nothing was added")
			}
			e, err = tc.add(r)
			if diff, _ := done(t, r, e, err); diff != "" {
				t.Errorf("a second time:\n%s", diff)
			}
			e, err = tc.remove(r)
			_, r = done(t, r, e, err)
			if diff := cmp.Diff(before, contents(t, r)); diff != "" {
				t.Errorf("(-before +after)\n%s", diff)
			}
		})
	}
}

// A removal from one environment leaves the other environments as they are.
func TestRemoveTenantFromOne(t *testing.T) {
	r := open(t)
	e, err := r.AddTenant("shop", TenantOptions{})
	_, r = done(t, r, e, err)
	e, err = r.RemoveTenant("shop", []string{"dev"})
	_, r = done(t, r, e, err)
	all, err := r.Tenants()
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for _, e := range all[0].Environments {
		if e.Name != "prod" || e.Role != "view" || e.Group != "shop" {
			t.Errorf("%+v", e)
		}
	}
	l := r.layouts()[0]
	if !r.exists(l.Tenant("", "shop")+"/quota.yaml") || r.exists(l.TenantFile("dev", "shop")) {
		t.Error("the wrong files went")
	}
}
