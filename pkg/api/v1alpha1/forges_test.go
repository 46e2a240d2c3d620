package v1alpha1

import "testing"

func TestDeployKeyPage(t *testing.T) {
	for url, want := range map[string]string{
		"git@github.com:acme/fleet.git":        "https://github.com/acme/fleet/settings/keys/new",
		"ssh://git@github.com/acme/fleet":      "https://github.com/acme/fleet/settings/keys/new",
		"git@gitlab.com:acme/team/fleet.git":   "https://gitlab.com/acme/team/fleet/-/settings/repository#js-deploy-keys-settings",
		"git@codeberg.org:acme/fleet.git":      "https://codeberg.org/acme/fleet/settings/keys",
		"ssh://git@git.example.com:2222/fleet": "",
		"git@bitbucket.org:acme/fleet.git":     "https://bitbucket.org/acme/fleet/admin/access-keys/",
	} {
		if got := (Git{URL: url}).DeployKeyPage(); got != want {
			t.Errorf("DeployKeyPage of %q = %q, want %q", url, got, want)
		}
	}
	declared := Git{URL: "git@git.example.com:acme/fleet.git", Forge: ForgeGitLab}
	if got, want := declared.DeployKeyPage(), "https://git.example.com/acme/fleet/-/settings/repository#js-deploy-keys-settings"; got != want {
		t.Errorf("DeployKeyPage of a declared forge = %q, want %q", got, want)
	}
}

// A hint that needs one of these fields would skip a forge without it, and nobody would notice.
func TestForgesAreComplete(t *testing.T) {
	for _, f := range forges {
		if f.name == "" || len(f.hosts) == 0 || f.deployKeys == "" {
			t.Errorf("incomplete entry: %+v", f)
		}
		if !NotificationType(f.name).IsCommitStatus() {
			t.Errorf("no notification sets the status of commits at %s", f.name)
		}
	}
}
