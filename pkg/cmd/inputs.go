package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// tokenVariable holds the token of an https remote. A secret is never an argument, because every user of the machine can read arguments.
const tokenVariable = "FLEETCTL_GIT_TOKEN" //nolint:gosec // the name of a variable, no credential

// fluxTokenVariable holds Flux's own token for an https remote.
const fluxTokenVariable = "FLEETCTL_FLUX_TOKEN" //nolint:gosec // the name of a variable, no credential

// ownTokenVariable and ownFluxTokenVariable hold the same tokens for the own repository of a management cluster that bootstrap makes.
const (
	ownTokenVariable     = "FLEETCTL_OWN_GIT_TOKEN"  //nolint:gosec // the name of a variable, no credential
	ownFluxTokenVariable = "FLEETCTL_OWN_FLUX_TOKEN" //nolint:gosec // the name of a variable, no credential
)

// readToken reads the token from file, or from the environment if file is empty. The token may be empty.
func readToken(file string) (string, error) {
	return readTokenFrom(file, "git-token-file", tokenVariable)
}

// maxToken bounds a file with a token, in bytes. Tokens of servers are much shorter.
const maxToken = 1 << 20

// readTokenFrom is readToken for a flag and a variable.
func readTokenFrom(file, flag, variable string) (string, error) {
	const op = "read the Git token"
	token, from := os.Getenv(variable), "the environment variable "+variable
	if file != "" {
		raw, err := within.Given(file, maxToken)
		if err != nil {
			return "", diag.Wrap(op, err, "give --"+flag+" a file that you can read, or set "+variable)
		}
		token, from = strings.TrimSpace(string(raw)), file
		if token == "" {
			return "", diag.Errorf("put the token into it, on one line", "%s: %s is empty", op, file)
		}
	}
	// No server issues such a token. The file has two lines or a line end in the middle, or was saved in another encoding.
	if !utf8.ValidString(token) || strings.ContainsFunc(token, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", diag.Errorf("give the token alone, on one line, as plain text",
			"%s: %s has a line break or another character that no token has", op, from)
	}
	return token, nil
}

// userKubeconfig is the path of the file to which kubectl writes.
func userKubeconfig() string {
	if list := filepath.SplitList(os.Getenv("KUBECONFIG")); len(list) > 0 && list[0] != "" {
		return list[0]
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".kube", "config")
}
