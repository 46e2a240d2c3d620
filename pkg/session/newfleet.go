package session

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/hosts"
)

// newFleetFile returns the fleet.yaml that init writes for a new fleet. It has the values of the flags and all defaults, so that its next
// reader sees them.
func (s *Session) newFleetFile(ctx context.Context) ([]byte, error) {
	o := s.Opts
	name := o.Fleet
	if name == "" {
		name = nameFrom(o.Dir)
	}
	cluster := o.Cluster
	if cluster == "" {
		cluster = name
	}
	environment := o.Environment
	if environment == "" {
		environment = "dev"
	}
	git, err := s.newGit()
	if err != nil {
		return nil, err
	}
	mgmt := v1alpha1.ManagementCluster{Name: cluster, KubernetesVersion: o.KubernetesVersion}
	wishes := hosts.Wishes{Type: v1alpha1.HostType(o.HostType), Context: o.Context, Kubeconfig: o.Kubeconfig, NodeImage: o.NodeImage}
	mgmt.Host, err = hosts.Declare(wishes, func() v1alpha1.HostType { return s.defaultHostType(ctx, cluster) })
	if err != nil {
		return nil, err
	}
	for _, p := range o.Providers {
		mgmt.Providers = append(mgmt.Providers, v1alpha1.Provider{Name: p.Name, Version: p.Version})
	}
	f := &v1alpha1.Fleet{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: name},
		Spec: v1alpha1.FleetSpec{
			Git: git, Environments: []v1alpha1.Environment{{Name: environment}}, ManagementClusters: []v1alpha1.ManagementCluster{mgmt},
		},
	}
	v1alpha1.SetDefaults(f, Defaults())
	return v1alpha1.Marshal(f)
}

// newGit returns the remote that the flags name, or else the remote of the existing folder.
func (s *Session) newGit() (v1alpha1.Git, error) {
	git := v1alpha1.Git{
		URL: s.Opts.GitURL, Branch: s.Opts.Branch, CAFile: s.Opts.Git.CAFile, Username: s.Opts.Git.Username, FluxUsername: s.Opts.FluxUsername,
		Forge: s.Opts.Forge,
	}
	if repo, err := gitrepo.Open(s.Opts.Dir); err == nil {
		if git.URL == "" { // nobody has typed the one that is there
			if err := repo.CheckRemote(); err != nil {
				return git, diag.Errorf(diag.Hint(err)+"; without a remote, fleetctl serves this folder to Flux", "%w", err)
			}
		}
		url, branch, err := repo.Remote()
		if err != nil {
			return git, err
		}
		if git.URL == "" {
			git.URL = url
		}
		if git.Branch == "" {
			git.Branch = branch
		}
	}
	if git.URL == "" {
		return git, nil
	}
	if _, err := git.ParseURL(); err != nil || git.Scheme() != v1alpha1.GitSSH {
		return git, err
	}
	var err error
	git.KnownHosts, err = s.pinnedHosts(git.URL)
	return git, err
}

// pinnedHosts returns the lines for the host of url from the given known_hosts or the user's. fleet.yaml pins them for everyone who works
// with the fleet. If neither file has the host, the first connection fails with the host's fingerprint.
func (s *Session) pinnedHosts(url string) (string, error) {
	given, err := s.givenKnownHosts()
	if err != nil {
		return "", err
	}
	return gitrepo.TrustedHostKeys(url, gitrepo.Auth{KnownHosts: given, UserKnownHosts: true})
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// nameFrom makes a DNS label of a folder's name.
func nameFrom(dir string) string {
	const longest = 40
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-")
	if len(name) > longest {
		name = strings.Trim(name[:longest], "-")
	}
	if name == "" {
		return "fleet"
	}
	return name
}
