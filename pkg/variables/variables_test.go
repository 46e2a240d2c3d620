package variables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
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
		{Name: "azure", Variables: []v1alpha1.Variable{
			{Name: "AZ", Command: []string{"false"}},
			{Name: "F", File: "no-such-file"},
			{Name: "IN", Stdin: true},
		}},
	}, t.TempDir(), Inputs{LookupEnv: none})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"variable AWS_KEY of provider aws", "variable AZ of provider azure", "variable F of provider azure",
		"no-such-file", "variable IN of provider azure: standard input is a terminal",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %q: %v", want, err)
		}
	}
}

// What no provider can mean is refused, and the error names the variable and its source, and never a value.
func TestValuesThatAreNone(t *testing.T) {
	const canary = "canary-5f2c"
	dir := t.TempDir()
	for name, content := range map[string]string{
		"empty": "", "newline": "\n", "spaces": " \r\n", "nul": canary + "\x00", "utf16": "\xff\xfec\x00a\x00", "mark": "\ufeff" + canary,
		"escape": canary + "\x1b[2J", "crlf": canary + "\r\n", "two": canary + "\n\n", "lines": "[default]\r\nkey = " + canary + "\r\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := Inputs{LookupEnv: func(string) (string, bool) { return " \n", true }}
	for _, tc := range []struct {
		variable    v1alpha1.Variable
		value, want string // of which one is empty
	}{
		{v1alpha1.Variable{File: "empty"}, "", "the value from file empty is empty"},
		{v1alpha1.Variable{File: "empty", Base64: true}, "", "the value from file empty is empty"},
		{v1alpha1.Variable{File: "newline"}, "", "the value from file newline is empty"},
		{v1alpha1.Variable{File: "spaces"}, "", "the value from file spaces is empty"},
		{v1alpha1.Variable{Env: "X"}, "", "the value from environment variable X is empty"},
		{v1alpha1.Variable{Command: []string{"true"}}, "", "the value from command true is empty"},
		{v1alpha1.Variable{File: "nul"}, "", "the value from file nul is no text"},
		{v1alpha1.Variable{File: "utf16"}, "", "the value from file utf16 is no text"},
		{v1alpha1.Variable{File: "mark"}, "", "the value from file mark is no text"},
		{v1alpha1.Variable{File: "escape"}, "", "the value from file escape is no text"},
		{v1alpha1.Variable{File: "nul", Base64: true}, canary + "\x00", ""},
		{v1alpha1.Variable{File: "crlf"}, canary, ""},
		{v1alpha1.Variable{File: "two"}, canary + "\n", ""},
		{v1alpha1.Variable{File: "lines"}, "[default]\r\nkey = " + canary, ""},
		{v1alpha1.Variable{Command: []string{"printf", canary + `\r\n`}}, canary, ""},
		{
			v1alpha1.Variable{Command: []string{"sh", "-c", "echo " + canary + "; echo \"is $0 " + canary + "?\" >&2; exit 3"}},
			"",
			"command sh: exit status 3: is sh …?",
		},
		{ // its output has the secret as a part of a line
			v1alpha1.Variable{Command: []string{"sh", "-c", "echo secret_key = " + canary + "; echo refused: " + canary + " >&2; exit 3"}},
			"",
			"command sh: exit status 3: refused: …",
		},
		{ // what is told of it ends within the secret
			v1alpha1.Variable{Command: []string{"sh", "-c", fmt.Sprintf("echo %[1]s; (echo no; head -c %[2]d /dev/zero; echo %[1]s) >&2; exit 3",
				canary+"-and-more", maxSaid-3-len(canary))}},
			"",
			"command sh: exit status 3: no",
		},
		{v1alpha1.Variable{Command: []string{"sh", "-c", "echo " + canary + "; yes"}}, "", "command sh: its output is larger than"},
		{v1alpha1.Variable{Command: []string{"sh", "-c", "yes " + canary + " | head -c 9999999 >&2; exit 1"}}, "", "command sh: exit status 1"},
		{v1alpha1.Variable{Command: []string{"no-such-program"}}, "", `executable file not found`},
	} {
		value, err := Value(t.Context(), tc.variable, dir, in)
		switch {
		case tc.want == "" && (err != nil || value != tc.value):
			t.Errorf("%+v: %q, %v", tc.variable, value, err)
		case tc.want == "":
		case err == nil || !strings.Contains(err.Error(), tc.want) || diag.Hint(err) == "" || len(err.Error()) > 2*maxSaid:
			t.Errorf("%+v: %q, %.500v, hint %q", tc.variable, value, err, diag.Hint(err))
		case value != "" || tc.want != "command sh: exit status 1" && strings.Contains(err.Error(), canary):
			t.Errorf("%+v: the error tells the value: %.500v", tc.variable, err)
		}
	}
	empty := ""
	if _, err := Value(t.Context(), v1alpha1.Variable{Value: &empty}, dir, in); err != nil {
		t.Error(err)
	}
}

// A command that does not end is ended with the command that asked, which says so.
func TestCommandThatHangs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Value(ctx, v1alpha1.Variable{Command: []string{"sleep", "1000"}}, t.TempDir(), Inputs{})
	if err == nil || !strings.Contains(err.Error(), "command sleep: it gave no value in time") {
		t.Error(err)
	}
}

// Somebody holds the other end of standard input open, as the runners of some pipelines do, and writes nothing. The wait has the bound of
// the run, and an interrupt ends it.
func TestStandardInputThatDoesNotEnd(t *testing.T) {
	in, held := io.Pipe()
	defer held.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	read := make(chan error, 1)
	go func() {
		_, err := Value(ctx, v1alpha1.Variable{Stdin: true}, t.TempDir(), Inputs{Stdin: in})
		read <- err
	}()
	if _, err := held.Write([]byte("canary-5f2c")); err != nil { // it is being read
		t.Fatal(err)
	}
	cancel(errors.New("gave up"))
	select {
	case err := <-read:
		if err == nil || !strings.Contains(err.Error(), "standard input does not end: gave up") || !strings.Contains(diag.Hint(err), "pipe") ||
			strings.Contains(err.Error(), "canary") {
			t.Errorf("%v, hint %q", err, diag.Hint(err))
		}
	case <-time.After(time.Minute):
		t.Error("it still waits")
	}
}
