package cmd

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// tokenVariable holds the token of an https remote. A secret never comes as an argument: every user of the machine can read those.
const tokenVariable = "FLEETCTL_GIT_TOKEN" //nolint:gosec // the name of a variable, no credential

// readToken reads the token from file, or from the environment where no file is given; it may be empty.
func readToken(file string) (string, error) {
	if file == "" {
		return os.Getenv(tokenVariable), nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", diag.Wrap("read the Git token", err, "give --git-token-file a file that you can read, or set "+tokenVariable)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", diag.Errorf("put the token into it, on one line", "read the Git token: %s is empty", file)
	}
	return token, nil
}

// userKubeconfig is the file that kubectl would write to.
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
