package repofiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// workloadFiles is what the Flux of the workload clusters consists of and follows, environment by environment: in the version of the
// management cluster's, reading the fleet repo as that one does.
func (c *Content) workloadFiles(root string, present func(manifest.File) bool) ([]manifest.File, error) {
	s := c.Session
	sync, err := flux.GenerateSync(repoaccess.SyncOptions(s, c.Endpoint))
	if err != nil {
		return nil, err
	}
	source, err := scaffold.SourceOf(sync)
	if err != nil {
		return nil, err
	}
	var files []manifest.File
	for _, f := range s.Folders(root) {
		o := scaffold.WorkloadFluxOptions{Layout: f.Layout, Environment: f.Environment, Components: c.Manifests.Flux.Content}
		if s.Fleet.ChannelOf(f.Environment).Source() == flux.Name {
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
func (c *Content) secretFiles(ctx context.Context, root string) ([]gitrepo.Change, error) {
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
	kept, err := access.KeptToken(ctx, c.Client)
	if err != nil {
		return nil, err
	}
	for _, f := range s.Folders(root) {
		file, err := repoaccess.ReadCredentialsFile(root, f.Credentials(f.Environment), keys)
		if err != nil {
			return nil, err
		}
		credentials, err := access.WorkloadCredentials(file, kept)
		if err != nil {
			return nil, err
		}
		if credentials == nil {
			continue
		}
		rule, err := rules.For(file.Name)
		if err != nil {
			return nil, err
		}
		content, err := file.Renewed(credentials, rule, keys)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
		if content != nil {
			changes = append(changes, gitrepo.Change{Path: file.Name, Content: content})
		}
	}
	return changes, nil
}

// Access is what Flux gets, with the keys that were found or made by now.
func (c *Content) Access() *repoaccess.Access {
	return &repoaccess.Access{Session: c.Session, Endpoint: c.Endpoint, Keys: c.keys.Keys, Home: c.Client}
}
