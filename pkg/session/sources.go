package session

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/variables"
)

// Sources limits the sources of values in a run for a management cluster with a repository of its own. Such a run also has the credentials
// of the parent, and whoever may push to the child's repository must not choose which of them the child gets. So the run reads, executes or
// asks Vault for only what the parent's fleet repo declares.
type Sources struct {
	// Dir is the folder of the parent's fleet repo: files and commands are relative to it. Declared are the variables that this repo
	// declares for the management cluster.
	Dir      string
	Declared *v1alpha1.ManagementCluster
}

// Check returns an error that names each source in the child's repository that Declared does not have. A value in clear text is not a
// source.
func (o *Sources) Check(own *v1alpha1.Fleet) error {
	m, err := own.ManagementCluster(o.Declared.Name)
	if err != nil {
		return err
	}
	var other []string
	if m.Parent != o.Declared.Parent { // it would choose the cluster that it is installed in
		other = append(other, fmt.Sprintf("its parent is %q", m.Parent))
	}
	if r := o.Declared.Repository; r != nil && own.Spec.Git.URL != r.Git.URL { // which gets the tokens
		other = append(other, "spec.git.url is "+own.Spec.Git.URL)
	}
	if m.Vault != o.Declared.Vault {
		other = append(other, "vault, which says how to log in to Vault, is another one")
	}
	for _, p := range m.Providers {
		for _, v := range p.Variables {
			if v.Value == nil && !o.has(v) {
				other = append(other, fmt.Sprintf("variable %s of provider %s comes from %s", v.Name, p.Name, variables.SourceOf(v)))
			}
		}
	}
	if len(other) == 0 {
		return nil
	}
	return diag.Errorf("declare the same for "+m.Name+" in "+filepath.Join(o.Dir, v1alpha1.FileName)+
		", or undo it there; `fleetctl init` in a clone of its own repo takes what that says",
		"the fleet repo of %s differs from what the one of its parent declares for it, and this run has the credentials of both: %s", m.Name,
		strings.Join(other, "; "))
}

func (o *Sources) has(v v1alpha1.Variable) bool {
	return slices.ContainsFunc(o.Declared.Providers, func(p v1alpha1.Provider) bool {
		return slices.ContainsFunc(p.Variables, func(d v1alpha1.Variable) bool { return d.Value == nil && sameSource(v, d) })
	})
}

// sameSource tells whether two variables have the same source. Their names may differ.
func sameSource(a, b v1alpha1.Variable) bool {
	if (a.Vault == nil) != (b.Vault == nil) || a.Vault != nil && *a.Vault != *b.Vault {
		return false
	}
	return environmentOf(a) == environmentOf(b) && a.File == b.File && a.Stdin == b.Stdin && slices.Equal(a.Command, b.Command)
}

// environmentOf returns the environment variable that a variable comes from, or "".
func environmentOf(v v1alpha1.Variable) string {
	if v.Value != nil || v.File != "" || v.Stdin || len(v.Command) > 0 || v.Vault != nil {
		return ""
	}
	return cmp.Or(v.Env, v.Name)
}

// SourcesDir is the folder that the files and commands of variables are relative to.
func (s *Session) SourcesDir() string {
	if s.Opts.Sources != nil {
		return s.Opts.Sources.Dir
	}
	return s.Opts.Dir
}

// InSources returns the path of a file that configures the connection to Vault.
func (s *Session) InSources(path string) string {
	return In(s.SourcesDir(), path)
}

// In returns the path of a file that fleet.yaml names: a relative path is below dir.
func In(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// everyCommands are the environment variables that every program needs.
var everyCommands = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT",
	"USERPROFILE", "PATHEXT",
	"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
}

// homes are the environment variables with the user's home folder.
var homes = []string{"HOME", "USERPROFILE"}

// Narrowed returns the dependencies of a run for a management cluster with a repository of its own. From the environment the run and its
// commands see only the variables that the parent's fleet repo declares for the providers, and Vault's variables and the home folder, where
// `vault login` writes its token, if a value comes from Vault. So the run sees neither the credentials nor the age keys of its parent.
func Narrowed(deps management.Deps, declared *v1alpha1.ManagementCluster) management.Deps {
	var named []string
	vault := false
	for _, p := range declared.Providers {
		for _, v := range p.Variables {
			vault = vault || v.Vault != nil
			if name := environmentOf(v); name != "" {
				named = append(named, name)
			}
		}
	}
	lookup := deps.LookupEnv
	deps.Environ = []string{}
	for _, name := range slices.Concat(everyCommands, named) {
		if value, ok := lookup(name); ok {
			deps.Environ = append(deps.Environ, name+"="+value)
		}
	}
	if declared.Vault.JWTEnv != "" {
		named = append(named, declared.Vault.JWTEnv)
	}
	deps.LookupEnv = func(name string) (string, bool) {
		if slices.Contains(named, name) || vault && (strings.HasPrefix(name, "VAULT_") || slices.Contains(homes, name)) {
			return lookup(name)
		}
		return "", false
	}
	return deps
}

// Variables resolves the variables once in a run, because a command may make another credential at each call, and standard input can be
// read only once.
func (s *Session) Variables(ctx context.Context) (*variables.Resolved, error) {
	return s.resolved.untilFound(func() (*variables.Resolved, error) {
		return variables.Resolve(ctx, s.Mgmt.Providers, s.SourcesDir(), s.Deps.Inputs())
	})
}
