package gitrepo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// unattended keeps git from starting two more processes after each commit, which would look for something to pack.
const unattended = "[maintenance]\n\tauto = false\n"

// TestMain gives the tests a home without keys, known hosts or git configuration: the developer's must not matter.
func TestMain(m *testing.M) {
	if os.Getenv(longFilter) != "" {
		os.Exit(longFilterProgram())
	}
	if isOne, code := signingProgram(filepath.Base(os.Args[0]), os.Args[1:]); isOne {
		os.Exit(code)
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	home, err := os.MkdirTemp("", "gitrepo-home-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(home) }()
	config := filepath.Join(home, ".gitconfig")
	if err := os.WriteFile(config, []byte("[user]\n\tname = Tess\n\temail = tess@example.com\n"+unattended), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	template := filepath.Join(home, "template") // as git's own, without the fourteen samples of hooks
	for _, dir := range []string{"hooks", "info"} {
		if err := os.MkdirAll(filepath.Join(template, dir), 0o755); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for name, value := range map[string]string{
		"GIT_TEMPLATE_DIR": template, "HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"), "SSH_AUTH_SOCK": "", "CI": "",
		"GIT_CONFIG_GLOBAL": config, "GIT_CONFIG_NOSYSTEM": "1",
	} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	for _, name := range []string{
		"GIT_CONFIG_COUNT", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
		"GIT_COMMITTER_DATE", "EMAIL",
	} {
		if err := os.Unsetenv(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

func tokenAuth(s *gittest.HTTPS) gitrepo.Auth {
	return gitrepo.Auth{Username: s.Username, Token: s.Token, CA: s.CA}
}

// sshAuth makes a key that the server knows.
func sshAuth(t *testing.T, s *gittest.SSH, readOnly bool) gitrepo.Auth {
	t.Helper()
	key, err := gitrepo.GenerateDeployKey("test")
	if err != nil {
		t.Fatal(err)
	}
	s.AuthorizeKey(key.Public, readOnly)
	return gitrepo.Auth{Key: key.Private, KnownHosts: s.KnownHosts}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
