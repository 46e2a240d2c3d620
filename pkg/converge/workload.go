package converge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
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
func (c *RepoContent) workloadFiles(present func(manifest.File) bool) ([]manifest.File, error) {
	s := c.Session
	sync, err := flux.GenerateSync(syncOptions(s, c.Endpoint))
	if err != nil {
		return nil, err
	}
	source, err := scaffold.SourceOf(sync)
	if err != nil {
		return nil, err
	}
	var files []manifest.File
	for _, env := range s.Fleet.Spec.Environments {
		o := scaffold.WorkloadFluxOptions{Layout: s.Layout(), Environment: env.Name, Components: c.Manifests.Flux.Content}
		if s.Fleet.ChannelOf(env.Name).Source() == flux.Name {
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

// SecretFiles are the rules of encryption, and the credentials of the workload clusters, encrypted, where the repo at root has others.
func (c *RepoContent) SecretFiles(ctx context.Context, root string) ([]gitrepo.Change, error) {
	s := c.Session
	keys, err := c.keys.Ensure(ctx, s, c.Client, root)
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
	access := c.Access()
	if access.Endpoint.Credentials.Empty() {
		return changes, nil
	}
	kept, err := access.keptToken(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	for _, env := range s.Fleet.Spec.Environments {
		file, err := ReadCredentialsFile(root, s.Layout().Credentials(env.Name), keys)
		if err != nil {
			return nil, err
		}
		credentials, err := access.workloadCredentials(file, kept)
		if err != nil {
			return nil, err
		}
		if credentials == nil {
			continue
		}
		rule, err := rules.For(file.name)
		if err != nil {
			return nil, err
		}
		content, err := file.renewed(credentials, rule, keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.name, err)
		}
		if content != nil {
			changes = append(changes, gitrepo.Change{Path: file.name, Content: content})
		}
	}
	return changes, nil
}

// Access is what Flux gets, with the keys that were found or made by now.
func (c *RepoContent) Access() *FluxAccess {
	return &FluxAccess{Session: c.Session, Endpoint: c.Endpoint, Keys: c.keys.Keys, Home: c.Client}
}

// CredentialsFile is the encrypted file with what the workload clusters of an environment read the fleet repo with.
type CredentialsFile struct {
	name string
	// raw is what stands there, plain what it says in clear. Both are nil where there is none, or one that nobody here can read: the key was
	// lost.
	raw, plain []byte
}

// ReadCredentialsFile reads and decrypts the file of the repo with the credentials of workload clusters. One that is not there, or that
// nobody here can read, has no content.
func ReadCredentialsFile(root, name string, keys secret.Keys) (*CredentialsFile, error) {
	raw, err := within.ReadFile(root, name, fleetrepo.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &CredentialsFile{name: name}, nil
	}
	if err != nil {
		return nil, err
	}
	plain, err := secret.Decrypt(raw, keys)
	if errors.Is(err, secret.ErrNoKey) {
		return &CredentialsFile{name: name}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &CredentialsFile{name: name, raw: raw, plain: plain}, nil
}

// managed tells whether init keeps it up to date. Somebody's own is left alone.
func (f *CredentialsFile) managed() bool { return bytes.Contains(f.plain, []byte(managedAnnotation)) }

// secret is the Secret in it. No error quotes it.
func (f *CredentialsFile) secret() (*corev1.Secret, error) {
	object := &corev1.Secret{}
	if err := yaml.Unmarshal(f.plain, object); err != nil {
		return nil, diag.Errorf("`fleetctl secret edit "+f.name+"` mends it", "%s does not hold a Secret", f.name)
	}
	return object, nil
}

// renewed is the encrypted file with the credentials, or nil where what is there is as good or somebody's own.
func (f *CredentialsFile) renewed(credentials []byte, rule secret.Rule, keys secret.Keys) ([]byte, error) {
	switch {
	case f.plain == nil:
		return secret.Encrypt(credentials, rule)
	case bytes.Equal(f.plain, credentials) || !f.managed():
		return nil, nil
	}
	return secret.Update(f.raw, credentials, keys)
}

// workloadCredentials is the Secret that the workload clusters of an environment are to read the fleet repo with, in clear; nil where they
// get none. A token of its own in the file stays before the one that is kept elsewhere.
func (a *FluxAccess) workloadCredentials(file *CredentialsFile, kept *HeldToken) ([]byte, error) {
	there, err := TokenInFile(a.Session, file)
	if err != nil {
		return nil, err
	}
	if there != nil && there.own {
		kept = there
	}
	credentials, err := a.workloadSecret(kept)
	if err != nil || credentials == nil {
		return nil, err
	}
	if credentials.Annotations == nil {
		credentials.Annotations = map[string]string{}
	}
	credentials.Annotations[managedAnnotation] = "true"
	credentials.Annotations["kustomize.toolkit.fluxcd.io/substitute"] = "disabled" // nothing in it is a variable of Flux
	content, err := yaml.Marshal(credentials)
	if err != nil {
		return nil, errors.New("the credentials of the fleet repo cannot be encoded")
	}
	return content, nil
}
