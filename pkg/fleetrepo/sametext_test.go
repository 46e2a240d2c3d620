package fleetrepo

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// What Git for Windows has checked out with CRLF is as it was: an edit that is already made finds it so, and an edit that removes it does.
func TestCRLFIsNoOtherContent(t *testing.T) {
	source := scaffold.AppSource{URL: "https://github.com/acme/web"}
	cluster := AddOptions{Name: "two", Environment: "dev", Flavour: "in-memory"}
	notification := v1alpha1.Notification{Name: "chat", Type: "slack", Environments: []string{"dev"}}
	for name, edit := range map[string]func(r *Repo) (*Edit, error){
		"tenant":       func(r *Repo) (*Edit, error) { return r.AddTenant("shop", TenantOptions{Source: &source}) },
		"cluster":      func(r *Repo) (*Edit, error) { return r.Add(cluster) },
		"notification": func(r *Repo) (*Edit, error) { return r.AddNotification(notification) },
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			e, err := edit(r)
			_, r = done(t, r, e, err)
			for file, content := range contents(t, r) {
				if filepath.Ext(file) != ".yaml" {
					continue
				}
				dos := bytes.ReplaceAll([]byte(content), []byte("\n"), []byte("\r\n"))
				if err := os.WriteFile(file, dos, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r = reopen(t, r.Dir)
			e, err = edit(r)
			if diff, _ := done(t, r, e, err); diff != "" || len(e.LeftAlone) > 0 {
				t.Errorf("it changes, or leaves alone %q:\n%s", e.LeftAlone, diff)
			}
		})
	}
}
