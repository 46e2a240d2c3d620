package fromvault

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The token of Vault comes from the file that fleet.yaml names, from the environment, from the file that the environment names, or from the
// file of `vault login`, in this order.
func TestTokenFile(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	const login = ".vault-token"
	for name, c := range map[string]struct {
		vault v1alpha1.Vault
		env   map[string]string
		files map[string]string
		want  string // the token, or what the error says
	}{
		"fleet.yaml": {
			v1alpha1.Vault{TokenFile: "sink"}, map[string]string{"VAULT_TOKEN": "env"}, map[string]string{"sink": "sink\n"}, "sink",
		},
		"environment": {v1alpha1.Vault{}, map[string]string{"VAULT_TOKEN": "env", "VAULT_TOKEN_FILE": "none"}, nil, "env"},
		"blank":       {v1alpha1.Vault{}, map[string]string{"VAULT_TOKEN": " \n"}, map[string]string{login: "login"}, "login"},
		"its file": {
			v1alpha1.Vault{}, map[string]string{"VAULT_TOKEN_FILE": "FILE"}, map[string]string{"FILE": "named", login: "login"}, "named",
		},
		"vault login":      {v1alpha1.Vault{}, nil, map[string]string{login: "login"}, "login"},
		"of Windows":       {v1alpha1.Vault{}, map[string]string{"HOME": "", "USERPROFILE": home}, map[string]string{login: "login"}, "login"},
		"nothing":          {v1alpha1.Vault{}, nil, nil, "there is no token for Vault"},
		"not there":        {v1alpha1.Vault{TokenFile: "sink"}, nil, nil, "no such file"},
		"empty":            {v1alpha1.Vault{TokenFile: "sink"}, nil, map[string]string{"sink": "\n"}, "is empty"},
		"a wrapped one":    {v1alpha1.Vault{TokenFile: "sink"}, nil, map[string]string{"sink": `{"token":"canary"}`}, "but something else"},
		"another login":    {v1alpha1.Vault{Method: v1alpha1.VaultAppRole}, nil, map[string]string{login: "login"}, "no role id"},
		"the folder of it": {v1alpha1.Vault{TokenFile: "."}, nil, nil, "read the token of Vault"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newAWSVault(t)
			env := map[string]string{"VAULT_TOKEN": "", "HOME": home}
			for key, value := range c.env {
				env[key] = strings.Replace(value, "FILE", filepath.Join(home, "FILE"), 1)
			}
			s := v.session(t, env)
			s.Opts.Dir, s.Mgmt.Vault = dir, c.vault
			for file, content := range c.files {
				at := filepath.Join(dir, file)
				if file != "sink" {
					at = filepath.Join(home, file)
				}
				if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.Remove(at) })
			}
			client, err := Client(s)
			if err == nil {
				_, err = client.Read(t.Context(), "aws/creds/fleet")
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || diag.Hint(err) == "" || strings.Contains(err.Error(), "canary") {
					t.Errorf("%v, hint %q, want %q", err, diag.Hint(err), c.want)
				}
				return
			}
			if got := v.token; got != c.want {
				t.Errorf("Vault was asked with the token %q, want %q", got, c.want)
			}
		})
	}
}
