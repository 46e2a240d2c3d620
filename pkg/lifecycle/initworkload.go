package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// managedAnnotation marks credentials that init keeps up to date. Who takes it off keeps their own.
const managedAnnotation = "fleetctl.dev/managed"

// workloadFiles is what the Flux of the workload clusters consists of and follows, environment by environment: in the version of the
// management cluster's, reading the fleet repo as that one does.
func (s *session) workloadFiles(present func(manifest.File) bool) ([]manifest.File, error) {
	sync, err := flux.GenerateSync(s.syncOptions())
	if err != nil {
		return nil, err
	}
	source, err := scaffold.SourceOf(sync)
	if err != nil {
		return nil, err
	}
	var files []manifest.File
	for _, env := range s.fleet.Spec.Environments {
		o := scaffold.WorkloadFluxOptions{Layout: s.layout(), Environment: env.Name, Components: s.plan.flux.Content}
		if s.fleet.ChannelOf(env.Name).Source() == flux.Name {
			o.Source = source
		}
		all, err := scaffold.WorkloadFluxFiles(o)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			if scaffold.IsGenerated(f.Path) || !present(f) {
				files = append(files, f)
			}
		}
	}
	return files, nil
}

// secretFiles are the rules of encryption, and the credentials of the workload clusters, encrypted, where the repo at root has others.
func (s *session) secretFiles(ctx context.Context, root string) ([]gitrepo.Change, error) {
	keys, err := s.ensureKeys(ctx, root)
	if err != nil {
		return nil, err
	}
	recipients := keys[:1].Recipients()
	var changes []gitrepo.Change
	content, err := within.ReadFile(root, secret.RulesFile, fleetrepo.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		content = secret.NewRules(recipients)
		changes = append(changes, gitrepo.Change{Path: secret.RulesFile, Content: content})
	case err != nil:
		return nil, err
	}
	rules, err := secret.ParseRules(content)
	if err != nil {
		return nil, err
	}
	if known := rules.Recipients(); len(known) > 0 && len(keys.For(known)) == 0 { // lost, with nothing but what is written below
		if content, err = secret.Replace(content, known, recipients); err != nil {
			return nil, err
		}
		if rules, err = secret.ParseRules(content); err != nil {
			return nil, err
		}
		changes = append(changes, gitrepo.Change{Path: secret.RulesFile, Content: content})
	}
	credentials, err := s.workloadCredentials()
	if err != nil || credentials == nil {
		return changes, err
	}
	for _, env := range s.fleet.Spec.Environments {
		name := s.layout().Credentials(env.Name)
		rule, err := rules.For(name)
		if err != nil {
			return nil, err
		}
		file, err := renewed(root, name, credentials, rule, keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if file != nil {
			changes = append(changes, gitrepo.Change{Path: name, Content: file})
		}
	}
	return changes, nil
}

// renewed is the encrypted file with the credentials, or nil where what is there is as good or somebody's own.
func renewed(root, name string, credentials []byte, rule secret.Rule, keys secret.Keys) ([]byte, error) {
	there, err := within.ReadFile(root, name, fleetrepo.MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		plain, err := secret.Decrypt(there, keys)
		switch {
		case errors.Is(err, secret.ErrNoKey): // lost with the key
		case err != nil:
			return nil, err
		case bytes.Equal(plain, credentials) || !bytes.Contains(plain, []byte(managedAnnotation)):
			return nil, nil
		default:
			return secret.Update(there, credentials, keys)
		}
	}
	return secret.Encrypt(credentials, rule)
}

// workloadCredentials is the Secret that workload clusters read the fleet repo with, in clear; nil where everybody may.
func (s *session) workloadCredentials() ([]byte, error) {
	if s.endpoint.credentials.Empty() {
		return nil, nil
	}
	credentials, err := flux.SourceSecret(s.endpoint.credentials)
	if err != nil {
		return nil, err
	}
	credentials.Annotations = map[string]string{
		managedAnnotation: "true",
		// Nothing in it is a variable of Flux.
		"kustomize.toolkit.fluxcd.io/substitute": "disabled",
	}
	content, err := yaml.Marshal(credentials)
	if err != nil {
		return nil, errors.New("the credentials of the fleet repo cannot be encoded")
	}
	return content, nil
}
