// Package variables resolves the variables that fleet.yaml declares for a provider: the value of each, and where it comes from. It does not
// ask Vault: values of Vault have a stand-in here.
package variables

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/await"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Resolved are the values of variables by their names, and where they come from.
type Resolved struct {
	Values  map[string]string
	Origins map[string]credentials.Origin
	// Vault are the variables whose values come from Vault. Vault is asked only when the cluster can be asked, because earlier leases may
	// still be good. Until then, placeholders stand for the values.
	Vault []v1alpha1.Variable
}

// SourceOf says for people where a variable's value comes from.
func SourceOf(v v1alpha1.Variable) string {
	switch {
	case v.Value != nil:
		return "fleet.yaml"
	case v.File != "":
		return "file " + v.File
	case v.Stdin:
		return "standard input"
	case len(v.Command) > 0:
		return "command " + v.Command[0]
	case v.Vault != nil:
		return "Vault " + v.Vault.Path
	}
	return FromEnvironment(cmp.Or(v.Env, v.Name))
}

// FromEnvironment says for people that a value comes from the environment variable name.
func FromEnvironment(name string) string { return "environment variable " + name }

// OriginOf is the source of a value, with the time at which the value expires, if the value itself has such a time.
func OriginOf(source, value string) credentials.Origin {
	o := credentials.Origin{Source: source}
	if end, ok := credentials.EndOf(value); ok {
		o.Until = &end
	}
	return o
}

// Inputs are the sources of values that are in no file: the environment and the standard input of a command.
type Inputs struct {
	// LookupEnv reads the environment (os.LookupEnv).
	LookupEnv func(string) (string, bool)
	// Environ is the environment of the commands in fleet.yaml, as NAME=VALUE; nil: the environment of this process.
	Environ []string
	// Stdin is the piped input; nil at a terminal.
	Stdin io.Reader
}

// Resolve gets the values of all variables. The variables that providers declare come from the sources in fleet.yaml, and the other
// variables that components may ask for come from the environment. It reports all problems at once. No value is ever part of an error.
func Resolve(ctx context.Context, providers []v1alpha1.Provider, dir string, in Inputs) (*Resolved, error) {
	resolved := &Resolved{Values: map[string]string{}, Origins: map[string]credentials.Origin{}}
	var problems []error
	for _, p := range providers {
		for _, v := range p.Variables {
			if v.Vault != nil {
				resolved.Vault = append(resolved.Vault, v)
				resolved.Values[v.Name] = StandIn
				continue
			}
			value, err := Value(ctx, v, dir, in)
			if err != nil {
				problems = append(problems, diag.Wrap(fmt.Sprintf("variable %s of provider %s", v.Name, p.Name), err, ""))
				continue
			}
			resolved.Origins[v.Name] = OriginOf(SourceOf(v), value)
			resolved.Values[v.Name] = Encoded(v, value)
		}
	}
	return resolved, errors.Join(problems...)
}

// StandIn is the value of a variable that nobody has been asked for yet; it is base64, too.
const StandIn = "dmF1bHQ="

// Encoded is the value as the components want it.
func Encoded(v v1alpha1.Variable, value string) string {
	if v.Base64 {
		return base64.StdEncoding.EncodeToString([]byte(value))
	}
	return value
}

// Value gets the value of one variable from where fleet.yaml says. Files and commands are relative to dir. The caller has to leave out
// variables of Vault. An error never contains a value, and an empty value is an error.
func Value(ctx context.Context, v v1alpha1.Variable, dir string, in Inputs) (string, error) {
	value, err := read(ctx, v, dir, in)
	if err == nil {
		err = Check(v, value)
	}
	if err != nil {
		return "", err
	}
	return value, nil
}

// Check refuses a value that no provider can mean: an empty one, and bytes that are no text where the components expect text. A value in
// fleet.yaml itself may be empty.
func Check(v v1alpha1.Variable, value string) error {
	const byteOrderMark = "\ufeff"
	isText := utf8.ValidString(value) && !strings.HasPrefix(value, byteOrderMark) && !strings.ContainsFunc(value, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r)
	})
	switch {
	case v.Value == nil && strings.TrimSpace(value) == "":
		return diag.Errorf("look at "+SourceOf(v)+": the value has to be there", "the value from %s is empty", SourceOf(v))
	case !v.Base64 && !isText:
		return diag.Errorf("save it as UTF-8 without a byte order mark; if the content is binary, add `base64: true` to the variable",
			"the value from %s is no text", SourceOf(v))
	}
	return nil
}

func read(ctx context.Context, v v1alpha1.Variable, dir string, in Inputs) (string, error) {
	switch {
	case v.Value != nil:
		return *v.Value, nil
	case v.File != "":
		path := v.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		raw, err := within.Named(path, within.MostNamed)
		return withoutNewline(raw), diag.Wrap("", err, "make the file, or change its path, which is relative to fleet.yaml")
	case v.Stdin:
		return variableFromStdin(ctx, in.Stdin)
	case len(v.Command) > 0:
		return variableFromCommand(ctx, v.Command, dir, in.Environ)
	}
	name := cmp.Or(v.Env, v.Name)
	// A pipeline whose secret is missing sets an empty variable.
	value, _ := in.LookupEnv(name)
	if value == "" {
		return "", diag.Errorf("export "+name+"=…", "the environment variable %s is not set", name)
	}
	return value, nil
}

// variableFromStdin reads standard input to its end, which has to come before ctx ends. It refuses a terminal, which would show the typed
// text.
func variableFromStdin(ctx context.Context, stdin io.Reader) (string, error) {
	const hint = "pipe it in: `… | fleetctl init`"
	if stdin == nil {
		return "", diag.Errorf(hint, "standard input is a terminal")
	}
	// Nothing ends a read of a pipe. The command that is given up ends soon, and the read with it.
	raw, err := await.Call(ctx, func() ([]byte, error) { return within.All(stdin, "standard input", within.MostNamed) })
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return "", diag.Errorf(hint+", and let what writes into the pipe close it", "standard input does not end: %w", err)
	case err != nil:
		return "", diag.Wrap("", err, hint)
	case len(raw) == 0:
		return "", diag.Errorf(hint, "standard input is empty")
	}
	return withoutNewline(raw), nil
}

// withoutNewline is a text without its final newline, as any system writes one.
func withoutNewline(raw []byte) string {
	text, found := strings.CutSuffix(string(raw), "\n")
	if found {
		text = strings.TrimSuffix(text, "\r")
	}
	return text
}

// WithoutCommands returns the providers without the variables that come from commands or from standard input. commands are the names of
// these variables, each with its program.
func WithoutCommands(providers []v1alpha1.Provider) (kept []v1alpha1.Provider, commands []string) {
	for _, p := range providers {
		variables := p.Variables
		p.Variables = nil
		for _, v := range variables {
			switch {
			case v.Value == nil && v.File == "" && v.Stdin:
				commands = append(commands, v.Name+" (standard input)")
			case v.Value == nil && v.File == "" && len(v.Command) > 0:
				commands = append(commands, fmt.Sprintf("%s (%s)", v.Name, v.Command[0]))
			default:
				p.Variables = append(p.Variables, v)
			}
		}
		kept = append(kept, p)
	}
	return kept, commands
}
