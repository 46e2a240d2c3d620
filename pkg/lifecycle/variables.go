package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// resolveVariables gets the value of every variable that providers declare, from where fleet.yaml says, and of every other one that
// components may ask for from the environment. All problems are reported at once; no value is ever part of an error.
func resolveVariables(ctx context.Context, providers []v1alpha1.Provider, dir string, lookup func(string) (string, bool)) (map[string]string, error) {
	values := map[string]string{}
	var problems []error
	for _, p := range providers {
		for _, v := range p.Variables {
			value, err := resolveVariable(ctx, v, dir, lookup)
			if err != nil {
				problems = append(problems, diag.Wrap(fmt.Sprintf("variable %s of provider %s", v.Name, p.Name), err, ""))
				continue
			}
			values[v.Name] = value
		}
	}
	return values, errors.Join(problems...)
}

func resolveVariable(ctx context.Context, v v1alpha1.Variable, dir string, lookup func(string) (string, bool)) (string, error) {
	switch {
	case v.Value != nil:
		return *v.Value, nil
	case v.File != "":
		path := v.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		raw, err := os.ReadFile(path)
		return strings.TrimSuffix(string(raw), "\n"), diag.Wrap("", err, "make the file, or change its path, which is relative to fleet.yaml")
	case len(v.Command) > 0:
		return variableFromCommand(ctx, v.Command, dir)
	}
	name := v.Env
	if name == "" {
		name = v.Name
	}
	// A pipeline whose secret is missing sets an empty variable.
	value, _ := lookup(name)
	if value == "" {
		return "", diag.Errorf("export "+name+"=…", "the environment variable %s is not set", name)
	}
	return value, nil
}

// variableFromCommand runs a command of fleet.yaml's. What it says on standard error is part of the error; its output never is.
func variableFromCommand(ctx context.Context, command []string, dir string) (string, error) {
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the user's own fleet.yaml names it
	cmd.Dir = dir
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", diag.Errorf("run it by hand in "+dir, "command %s: %w: %s", command[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
