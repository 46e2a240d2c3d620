package checkup

import (
	"context"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// secretFiles returns the files with secrets that fleet.yaml, a flag or the environment names: values of variables, tokens, private keys,
// and the kubeconfig of an existing host. They may not be there.
func (c *checks) secretFiles() []string {
	s := c.session
	var files []string
	for _, p := range s.Mgmt.Providers {
		for _, v := range p.Variables {
			if v.Value == nil && v.File != "" {
				files = append(files, s.InSources(v.File))
			}
		}
	}
	if v := s.Mgmt.Vault; v.JWTFile != "" {
		files = append(files, s.InSources(v.JWTFile))
	}
	if s.Mgmt.Vault.TokenFile != "" || usesVault(s.Mgmt) {
		files = append(files, fromvault.TokenFile(s.Mgmt.Vault, s.SourcesDir(), s.Deps.LookupEnv))
	}
	if e := s.Mgmt.Host.Existing; e != nil {
		files = append(files, e.Kubeconfig)
	}
	files = append(files, fleetsecrets.KeyFile(s.Deps, s.Opts.AgeKeyFile), s.Opts.Git.SSHKeyFile)
	files = append(files, s.Opts.SecretFiles...)
	files = slices.DeleteFunc(files, func(file string) bool { return file == "" })
	slices.Sort(files)
	return slices.Compact(files)
}

// usesVault tells whether a variable of the management cluster comes from Vault.
func usesVault(m *v1alpha1.ManagementCluster) bool {
	return slices.ContainsFunc(m.Providers, func(p v1alpha1.Provider) bool {
		return slices.ContainsFunc(p.Variables, func(v v1alpha1.Variable) bool { return v.Vault != nil })
	})
}

func (c *checks) hasSecretFiles() bool { return len(c.secretFiles()) > 0 }

// checkSecretFiles warns of files with secrets that every user of this machine can read.
func (c *checks) checkSecretFiles(context.Context) preflight.Result {
	var exposed []string
	all := c.secretFiles()
	for _, name := range all {
		if file, is := within.Exposed(name); is {
			exposed = append(exposed, file)
		}
	}
	if len(exposed) == 0 {
		return preflight.OK("%d named, none is open to all users of this machine", len(all))
	}
	command := diag.ShellCommand(append([]string{"chmod", "o="}, exposed...)...)
	return preflight.Warn("`"+command+"`; if others use this machine, change the secrets too",
		"every user of this machine can read %s", strings.Join(exposed, ", "))
}
