package session

import (
	"strings"
	"testing"
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

func TestDeployKeyPage(t *testing.T) {
	for url, want := range map[string]string{
		"git@github.com:acme/fleet.git":        "https://github.com/acme/fleet/settings/keys/new",
		"ssh://git@github.com/acme/fleet":      "https://github.com/acme/fleet/settings/keys/new",
		"git@gitlab.com:acme/team/fleet.git":   "https://gitlab.com/acme/team/fleet/-/settings/repository#js-deploy-keys-settings",
		"ssh://git@git.example.com:2222/fleet": "",
		"git@bitbucket.org:acme/fleet.git":     "https://bitbucket.org/acme/fleet/admin/access-keys/",
	} {
		if got := DeployKeyPage(url); got != want {
			t.Errorf("deployKeyPage(%q) = %q, want %q", url, got, want)
		}
	}
}
