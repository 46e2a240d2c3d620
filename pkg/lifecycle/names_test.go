package lifecycle

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/management"
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

func TestResolveVariables(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inClear := "clear"
	env := func(name string) (string, bool) {
		if name == "AWS_KEY" {
			return "from the environment", true
		}
		return "", false
	}
	resolved, err := resolveVariables(t.Context(), []v1alpha1.Provider{{Name: "aws", Variables: []v1alpha1.Variable{
		{Name: "A", Value: &inClear},
		{Name: "B", Env: "AWS_KEY"},
		{Name: "AWS_KEY"},
		{Name: "C", File: "token"},
		{Name: "D", Command: []string{"printf", `from a command\n`}},
		{Name: "E", Stdin: true, Base64: true},
		{Name: "F", Vault: &v1alpha1.VaultSecret{Path: "secret/x", Field: "f"}},
	}}}, dir, management.Deps{LookupEnv: env, Stdin: strings.NewReader("from standard input\n")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"A": "clear", "B": "from the environment", "AWS_KEY": "from the environment", "C": "from a file", "D": "from a command",
		"E": "ZnJvbSBzdGFuZGFyZCBpbnB1dA==", "F": standIn,
	} {
		values := resolved.values
		if values[name] != want {
			t.Errorf("%s = %q, want %q", name, values[name], want)
		}
	}
	for name, want := range map[string]string{
		"A": "fleet.yaml", "B": "environment variable AWS_KEY", "AWS_KEY": "environment variable AWS_KEY", "C": "file token", "D": "command printf",
		"E": "standard input",
	} {
		if got := resolved.origins[name].Source; got != want {
			t.Errorf("%s comes from %q, want %q", name, got, want)
		}
	}
}

func TestResolveVariablesNamesAllThatIsMissing(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	_, err := resolveVariables(t.Context(), []v1alpha1.Provider{
		{Name: "aws", Variables: []v1alpha1.Variable{{Name: "AWS_KEY"}}},
		{Name: "azure", Variables: []v1alpha1.Variable{{Name: "AZ", Command: []string{"false"}}, {Name: "F", File: "no-such-file"}, {Name: "IN", Stdin: true}}},
	}, t.TempDir(), management.Deps{LookupEnv: none})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"variable AWS_KEY of provider aws", "variable AZ of provider azure", "variable F of provider azure", "no-such-file", "variable IN of provider azure: standard input is a terminal"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %q: %v", want, err)
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
