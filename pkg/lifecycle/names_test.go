package lifecycle

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

func TestNameFrom(t *testing.T) {
	for dir, want := range map[string]string{
		"/srv/Acme Fleet": "acme-fleet", "/": "fleet", "/x/__": "fleet", "/x/a.b": "a-b",
		"/x/" + strings.Repeat("long-", 20): strings.Trim(strings.Repeat("long-", 8), "-"),
	} {
		if got := nameFrom(dir); got != want {
			t.Errorf("nameFrom(%q) = %q, want %q", dir, got, want)
		}
	}
}

func TestSameCluster(t *testing.T) {
	for _, c := range []struct {
		wanted, full string
		same         bool
	}{
		{"perm", "perm/perm", true},
		{"perm/perm", "perm/perm", true},
		{"erm", "perm/perm", false},
		{"other/perm", "perm/perm", false},
		{"a-very-long-name-indeed", "x/y", false},
	} {
		if got := sameCluster(c.wanted, c.full); got != c.same {
			t.Errorf("sameCluster(%q, %q) = %v", c.wanted, c.full, got)
		}
	}
}

func TestDeployKeyPage(t *testing.T) {
	for url, want := range map[string]string{
		"git@github.com:acme/fleet.git":        "https://github.com/acme/fleet/settings/keys/new",
		"ssh://git@github.com/acme/fleet":      "https://github.com/acme/fleet/settings/keys/new",
		"git@gitlab.com:acme/team/fleet.git":   "https://gitlab.com/acme/team/fleet/-/settings/repository#js-deploy-keys-settings",
		"ssh://git@git.example.com:2222/fleet": "",
		"git@bitbucket.org:acme/fleet.git":     "https://bitbucket.org/acme/fleet/admin/access-keys/",
	} {
		if got := deployKeyPage(url); got != want {
			t.Errorf("deployKeyPage(%q) = %q, want %q", url, got, want)
		}
	}
}

// Where nobody chooses a version of Kubernetes, the README of a new fleet repo still has one that its reader can use.
func TestExampleVersionOfADryRun(t *testing.T) {
	c := &repoContent{session: &session{mgmt: &v1alpha1.ManagementCluster{}}}
	if v, err := c.exampleVersion(t.Context()); err != nil || !regexp.MustCompile(`^v1\.\d+\.\d+$`).MatchString(v) {
		t.Errorf("version %q, %v", v, err)
	}
	c.session.mgmt.KubernetesVersion = "v1.30.0"
	if v, err := c.exampleVersion(t.Context()); err != nil || v != "v1.30.0" {
		t.Errorf("version %q, %v, want the one of fleet.yaml", v, err)
	}
}
