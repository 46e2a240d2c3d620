package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// othersVariables are prefixes of environment variables that belong to no provider: fleetctl's own credentials, those of sops and Vault,
// and the variables that a forge, its runners or an agent set.
var othersVariables = []string{
	"FLEETCTL_", "SOPS_", "VAULT_", "SSH_",
	"GITHUB_", "GH_", "GITLAB_", "GITEA_", "FORGEJO_", "BITBUCKET_", "ACTIONS_", "CI_", "SYSTEM_ACCESSTOKEN", "AZURE_DEVOPS_", "BUILDKITE_",
	"CIRCLE_", "DRONE_", "JENKINS_",
}

// EnvironmentFor reads from the environment the variables that components name and fleet.yaml does not declare. The components get no other
// part of the environment. A bundle or a release may come from a stranger, and its controllers get what it names. So a set variable with a
// prefix of othersVariables is an error.
func (s *Session) EnvironmentFor(
	ctx context.Context, source *releases.Source, providers []releases.Provider, known map[string]string,
) (map[string]string, error) {
	found := map[string]string{}
	var problems []error
	for _, p := range providers {
		named, err := source.Variables(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, v := range named {
			if _, ok := known[v.Name]; ok {
				continue
			}
			value, _ := s.Deps.LookupEnv(v.Name)
			switch {
			case value == "":
			case slices.ContainsFunc(othersVariables, func(prefix string) bool { return strings.HasPrefix(v.Name, prefix) }):
				problems = append(problems, diag.Errorf(
					"look at where the provider comes from; where it is meant to have the value, say so: `variables:` of the provider in fleet.yaml",
					"%s asks for the environment variable %s, which is no provider's", p, v.Name))
			default:
				found[v.Name] = value
			}
		}
	}
	return found, errors.Join(problems...)
}
