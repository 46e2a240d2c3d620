package fleetrepo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// withCRLF is a text as Git for Windows writes it.
func withCRLF(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")) }

// What Git for Windows has checked out with CRLF is as it was: an edit that is already made finds it so, and an edit that removes it does.
func TestCRLFIsNoOtherContent(t *testing.T) {
	source := scaffold.AppSource{URL: "https://github.com/acme/web"}
	cluster := AddOptions{Name: "two", Environment: "dev", Flavour: "in-memory"}
	notification := v1alpha1.Notification{Name: "chat", Type: "slack", Environments: []string{"dev"}}
	for name, edit := range map[string]func(r *Repo) (*Edit, error){
		"tenant":       func(r *Repo) (*Edit, error) { return r.AddTenant("shop", TenantOptions{Source: &source}) },
		"cluster":      func(r *Repo) (*Edit, error) { return r.Add(cluster) },
		"notification": func(r *Repo) (*Edit, error) { return r.AddNotification(notification) },
		"lock": func(r *Repo) (*Edit, error) {
			return r.Lock(&v1alpha1.Lock{Images: []v1alpha1.LockedImage{{Name: "example.com/a:v1", Digest: "sha256:" + strings.Repeat("0", 64)}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			e, err := edit(r)
			_, r = done(t, r, e, err)
			for file, content := range contents(t, r) {
				if filepath.Ext(file) != ".yaml" && filepath.Base(file) != v1alpha1.LockFileName {
					continue
				}
				if err := os.WriteFile(file, withCRLF([]byte(content)), 0o600); err != nil {
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

// An edit of fleet.lock keeps its ends of lines.
func TestLockKeepsCRLF(t *testing.T) {
	r := open(t)
	e, err := r.Lock(&v1alpha1.Lock{})
	_, r = done(t, r, e, err)
	write(t, r.Dir, v1alpha1.LockFileName, withCRLF(must(r.read(v1alpha1.LockFileName))))
	image := v1alpha1.LockedImage{Name: "example.com/a:v1", Digest: "sha256:" + strings.Repeat("0", 64)}
	e, err = reopen(t, r.Dir).Lock(&v1alpha1.Lock{Images: []v1alpha1.LockedImage{image}})
	diff, r := done(t, r, e, err)
	if got := must(r.read(v1alpha1.LockFileName)); !manifest.CRLF(got) || strings.Contains(lines(diff), "\n-") {
		t.Errorf("it rewrites other lines:\n%s", diff)
	}
}

// Lines that the team has added to a flux.yaml stay beside those that fleetctl changes, and each line ends as before.
func TestKeepLinesWithCRLF(t *testing.T) {
	r := open(t)
	at := r.Fleet.Spec.ManagementClusters[0].Layout()
	o := scaffold.ClusterOptions{Layout: at, Environment: "dev", Name: "demo", Flavour: "docker", Flux: scaffold.FluxOwn}
	before := must(fluxFile(o))
	o.CNI = "cilium"
	wanted := must(fluxFile(o))
	const note = "# ours\n"
	merged, err := r.keepLines(at, "dev", "demo", "flux.yaml", withCRLF(append([]byte(note), before...)), wanted)
	if err != nil || string(merged) != string(withCRLF(append([]byte(note), wanted...))) {
		t.Errorf("%v: %q", err, merged)
	}
	interval := func(with string) []byte {
		return bytes.Replace(before, []byte("interval: "), []byte("interval: "+with), 1)
	}
	_, err = r.keepLines(at, "dev", "demo", "flux.yaml", withCRLF(interval("1")), interval("2"))
	if want := 1 + bytes.Count(before[:bytes.Index(before, []byte("interval: "))], []byte("\n")); err == nil ||
		!strings.HasPrefix(err.Error(), fmt.Sprintf("flux.yaml:%d: you have changed lines", want)) {
		t.Errorf("the line %d: %v", want, err)
	}
}
