package variables

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

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
	resolved, err := Resolve(t.Context(), []v1alpha1.Provider{{Name: "aws", Variables: []v1alpha1.Variable{
		{Name: "A", Value: &inClear},
		{Name: "B", Env: "AWS_KEY"},
		{Name: "AWS_KEY"},
		{Name: "C", File: "token"},
		{Name: "D", Command: []string{"printf", `from a command\n`}},
		{Name: "E", Stdin: true, Base64: true},
		{Name: "F", Vault: &v1alpha1.VaultSecret{Path: "secret/x", Field: "f"}},
	}}}, dir, Inputs{LookupEnv: env, Stdin: strings.NewReader("from standard input\n")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"A": "clear", "B": "from the environment", "AWS_KEY": "from the environment", "C": "from a file", "D": "from a command",
		"E": "ZnJvbSBzdGFuZGFyZCBpbnB1dA==", "F": StandIn,
	} {
		values := resolved.Values
		if values[name] != want {
			t.Errorf("%s = %q, want %q", name, values[name], want)
		}
	}
	for name, want := range map[string]string{
		"A": "fleet.yaml", "B": "environment variable AWS_KEY", "AWS_KEY": "environment variable AWS_KEY",
		"C": "file token", "D": "command printf",
		"E": "standard input",
	} {
		if got := resolved.Origins[name].Source; got != want {
			t.Errorf("%s comes from %q, want %q", name, got, want)
		}
	}
}

func TestResolveVariablesNamesAllThatIsMissing(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	_, err := Resolve(t.Context(), []v1alpha1.Provider{
		{Name: "aws", Variables: []v1alpha1.Variable{{Name: "AWS_KEY"}}},
		{Name: "azure", Variables: []v1alpha1.Variable{{Name: "AZ", Command: []string{"false"}}, {Name: "F", File: "no-such-file"},
			{Name: "IN", Stdin: true}}},
	}, t.TempDir(), Inputs{LookupEnv: none})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"variable AWS_KEY of provider aws", "variable AZ of provider azure", "variable F of provider azure",
		"no-such-file", "variable IN of provider azure: standard input is a terminal"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %q: %v", want, err)
		}
	}
}
