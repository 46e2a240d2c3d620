//go:build unix

package checkup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// A key that every user of the machine can read is told with the command that closes it.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	text := ""
	environment := map[string]string{}
	c := &checks{session: &session.Session{
		Opts: session.Options{Dir: dir, SecretFiles: []string{"", ""}}, Mgmt: &v1alpha1.ManagementCluster{},
		Deps: management.Deps{LookupEnv: func(name string) (string, bool) { return environment[name], environment[name] != "" }},
	}}
	if c.hasSecretFiles() {
		t.Error("there are no files")
	}
	c.session.Opts.AgeKeyFile = filepath.Join(dir, "age key")
	c.session.Mgmt.Providers = []v1alpha1.Provider{{Variables: []v1alpha1.Variable{
		{Name: "A", File: "gcp.json"}, {Name: "B", File: "none"}, {Name: "C", Value: &text},
	}}}
	for _, folder := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for mode, want := range map[os.FileMode]preflight.Status{0o644: preflight.StatusWarn, 0o640: preflight.StatusOK} {
		for _, name := range []string{"gcp.json", "age key"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("canary"), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
		}
		got := c.checkSecretFiles(t.Context())
		if got.Status != want || want == preflight.StatusWarn &&
			!strings.Contains(got.Hint, "`chmod o= '"+filepath.Join(dir, "age key")+"' "+filepath.Join(dir, "gcp.json")+"`") {
			t.Errorf("%o: %+v", mode, got)
		}
	}
}

// Whatever way a file with a secret is named, its mode is looked at.
func TestSecretFilesHoweverNamed(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, names := range map[string]func(s *session.Session, environment map[string]string){
		"a flag of a token": func(s *session.Session, _ map[string]string) { s.Opts.SecretFiles = []string{"", secret} },
		"Vault's jwtFile":   func(s *session.Session, _ map[string]string) { s.Mgmt.Vault = v1alpha1.Vault{JWTFile: "secret"} },
		"Vault's tokenFile": func(s *session.Session, _ map[string]string) { s.Mgmt.Vault = v1alpha1.Vault{TokenFile: "secret"} },
		"Vault's token by environment": func(s *session.Session, environment map[string]string) {
			environment["VAULT_TOKEN_FILE"] = secret
			s.Mgmt.Providers = []v1alpha1.Provider{{Variables: []v1alpha1.Variable{{Name: "A", Vault: &v1alpha1.VaultSecret{}}}}}
		},
		"a key by environment": func(_ *session.Session, environment map[string]string) { environment["SOPS_AGE_KEY_FILE"] = secret },
		"a private key of SSH": func(s *session.Session, _ map[string]string) { s.Opts.Git.SSHKeyFile = secret },
		"a kubeconfig of fleet": func(s *session.Session, _ map[string]string) {
			s.Mgmt.Host.Existing = &v1alpha1.ExistingHost{Kubeconfig: secret}
		},
	} {
		environment := map[string]string{}
		c := &checks{session: &session.Session{
			Opts: session.Options{Dir: dir}, Mgmt: &v1alpha1.ManagementCluster{},
			Deps: management.Deps{LookupEnv: func(name string) (string, bool) { return environment[name], environment[name] != "" }},
		}}
		names(c.session, environment)
		for mode, want := range map[os.FileMode]preflight.Status{0o644: preflight.StatusWarn, 0o640: preflight.StatusOK} {
			if err := os.Chmod(secret, mode); err != nil {
				t.Fatal(err)
			}
			got := c.checkSecretFiles(t.Context())
			if !c.hasSecretFiles() || got.Status != want || want == preflight.StatusWarn && !strings.Contains(got.Hint, "`chmod o= "+secret+"`") {
				t.Errorf("%s, %o: %+v", name, mode, got)
			}
		}
	}
}
