//go:build integration

package gitrepo_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// What GnuPG and OpenSSH of this machine sign, git finds good.
func TestSigningByInstalledPrograms(t *testing.T) {
	gittest.Require(t, "ssh-keygen", "openssh-client")
	checkSigning(t, map[string]func(t *testing.T, repo *gitrepo.Repo){"ssh": signBySSH, "openpgp": signByGPG})
}

func signByGPG(t *testing.T, repo *gitrepo.Repo) {
	t.Helper()
	gpg := gittest.Require(t, "gpg", "gnupg")
	home, err := os.MkdirTemp("", "gpg-*") //nolint:usetesting // its socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	t.Setenv("GNUPGHOME", home)
	if out, err := exec.CommandContext(t.Context(), gpg, "--batch", "--passphrase", "", "--quick-generate-key", "Ann <ann@example.com>",
		"ed25519", "sign", "never").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	configure(t, repo, "user.signingKey", "ann@example.com")
}
