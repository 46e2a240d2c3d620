package fromvault

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// TokenFile returns the file with the token of Vault that o and the environment name: tokenFile, or, without VAULT_TOKEN, VAULT_TOKEN_FILE,
// or the file that `vault login` has written into the home folder. It is "" if the token does not come from a file. A file that is named
// may not be there. Relative paths in o are below dir.
func TokenFile(o v1alpha1.Vault, dir string, lookupEnv func(string) (string, bool)) string {
	env := func(name string) string { value, _ := lookupEnv(name); return value }
	switch home := cmp.Or(env("HOME"), env("USERPROFILE")); {
	case cmp.Or(o.Method, v1alpha1.VaultToken) != v1alpha1.VaultToken:
		return ""
	case o.TokenFile != "":
		return session.In(dir, o.TokenFile)
	case strings.TrimSpace(env("VAULT_TOKEN")) != "":
		return ""
	case env("VAULT_TOKEN_FILE") != "":
		return env("VAULT_TOKEN_FILE")
	case home != "":
		file := filepath.Join(home, ".vault-token")
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// tokenIn reads the token in a file.
func tokenIn(file string) (string, error) {
	const hint = "`vault login` writes ~/.vault-token, and a sink of Vault's agent the file that VAULT_TOKEN_FILE or vault.tokenFile of the " +
		"management cluster in fleet.yaml names"
	raw, err := within.Named(file, within.MostNamed)
	if err != nil {
		return "", diag.Wrap("read the token of Vault", err, hint)
	}
	token := strings.TrimSpace(string(raw))
	switch {
	case token == "":
		return "", diag.Errorf(hint, "the file %s, which is to have the token of Vault, is empty", file)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }): // a sink writes JSON of a wrapped token
		return "", diag.Errorf("let the sink of Vault's agent write the token in clear, without wrap_ttl and dh_type",
			"the file %s has no token of Vault, but something else", file)
	}
	return token, nil
}
