package lifecycle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/steps"
	"github.com/fleetctl/fleetctl/pkg/version"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// gitEndpoint is the fleet repo as Flux reaches it.
type gitEndpoint struct {
	// url that Flux reads.
	url string
	// display is what a person knows it by.
	display string
	// local says that this machine serves it: there is no remote.
	local       bool
	credentials flux.SourceCredentials
}

// andPush is what a commit needs to reach Flux.
func (e *gitEndpoint) andPush() string {
	if e.local {
		return ""
	}
	return " and push"
}

// offerRepo finds out where Flux reads the fleet repo: at its remote or, where it has none, at a server that it starts.
func (s *session) offerRepo(ctx context.Context, detail func(string)) error {
	git := s.fleet.Spec.Git
	if git.URL == "" {
		return s.serveRepo(ctx, detail)
	}
	credentials, err := s.sourceCredentials()
	if err != nil {
		return err
	}
	s.endpoint = &gitEndpoint{url: sourceURL(git), display: git.URL, credentials: credentials}
	return steps.NothingToDo("Flux reads " + git.URL)
}

// serveRepo serves the folder of the fleet repo, read-only, to the pods of the management cluster, from a process that outlives
// this one.
func (s *session) serveRepo(ctx context.Context, _ func(string)) error {
	gateway, err := s.host.Gateway(ctx)
	if err != nil {
		return err
	}
	if err := s.prepareWorkTree(ctx); err != nil {
		return err
	}
	at, started, err := gitserve.Ensure(ctx, gitserve.Spec{
		StateDir: s.cluster.Path(management.GitServeDir), RepoDir: s.opts.Dir, Listen: gateway.Listen, Host: gateway.Host,
		Executable: s.Executable, Args: []string{"git-serve", s.cluster.Path(management.GitServeDir)},
	})
	if err != nil {
		return err
	}
	s.endpoint = &gitEndpoint{
		url:     gitserve.URL(gateway.Host, at.Port),
		display: s.opts.Dir, local: true,
		credentials: flux.SourceCredentials{Username: at.Username, Password: at.Password, CA: []byte(at.CA)},
	}
	s.serves.Store(true)
	if !started {
		return steps.NothingToDo("it is being served")
	}
	s.did()
	return nil
}

// prepareWorkTree makes the folder a working tree on the fleet's branch, with the remote that fleet.yaml names.
func (s *session) prepareWorkTree(ctx context.Context) (err error) {
	git := s.fleet.Spec.Git
	defer func() {
		if s.repo != nil {
			s.repo.NoVerify = s.opts.NoVerify
		}
	}()
	if s.repo, err = gitrepo.Open(s.opts.Dir); err == nil {
		if git.URL == "" {
			return nil
		}
		_, err = s.repo.EnsureRemote(git.URL)
		return err
	}
	if !errors.Is(err, gitrepo.ErrNotARepository) {
		return err
	}
	if git.URL == "" {
		s.repo, err = gitrepo.InitLocal(s.opts.Dir, git.Branch)
		return err
	}
	s.repo, err = gitrepo.Clone(ctx, git.URL, s.pushAuth(), git.Branch, s.opts.Dir)
	return err
}

// repoFiles is all that init wants in the fleet repo at root. What is the user's is left alone: present tells what is there already.
// It is computed anew on every try.
func (s *session) repoFiles(ctx context.Context, root string, present func(manifest.File) bool) ([]manifest.File, error) {
	scaffolded, err := s.scaffoldFiles(ctx)
	if err != nil {
		return nil, err
	}
	system, err := s.systemFiles(root, present)
	if err != nil {
		return nil, err
	}
	byPath := map[string]manifest.File{}
	for _, f := range scaffolded {
		byPath[f.Path] = f
	}
	files := scaffold.Missing(scaffolded, func(path string) bool { return path != v1alpha1.FileName && present(byPath[path]) })
	files = append(files, system...)
	channels, err := s.channelFiles(system)
	if err != nil {
		return nil, err
	}
	workload, err := s.workloadFiles(present)
	if err != nil {
		return nil, err
	}
	var pipeline []manifest.File
	if s.isNewRepo(root) && !slices.ContainsFunc(system, present) { // in a repo that Flux follows, what is missing was taken out
		if pipeline, err = s.pipelineFiles(present); err != nil {
			return nil, err
		}
	}
	return s.withLock(root, slices.Concat(files, channels, workload, pipeline), present)
}

// isNewRepo tells whether no other management cluster's Flux is in the repo.
func (s *session) isNewRepo(root string) bool {
	return !slices.ContainsFunc(s.fleet.Spec.ManagementClusters, func(m v1alpha1.ManagementCluster) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(m.Dir()), flux.Name))
		return m.Name != s.mgmt.Name && err == nil
	})
}

// pipelineFiles check each pull request, where the forge is known. GitHub takes workflows only from a token that may write them, which one that
// may push need not be: over https they are left to `fleetctl ci add`, and init does not fail for them.
func (s *session) pipelineFiles(present func(manifest.File) bool) ([]manifest.File, error) {
	git := s.fleet.Spec.Git
	forge := git.ForgeType()
	if forge == "" || forge == v1alpha1.ForgeGitHub && s.pushesByToken() {
		return nil, nil
	}
	files, err := scaffold.CIFiles(forge, version.Released())
	return slices.DeleteFunc(files, present), err
}

// pushesByToken tells whether the remote is one that takes a token, not a key.
func (s *session) pushesByToken() bool {
	protocol, _, err := gitrepo.ParseURL(s.fleet.Spec.Git.URL)
	return err == nil && protocol != gitrepo.ProtocolSSH
}

// inMemoryFlavour needs nothing but the docker provider's manager.
const inMemoryFlavour = "in-memory"

func (s *session) scaffoldFiles(ctx context.Context) ([]manifest.File, error) {
	version, err := s.exampleVersion(ctx)
	if err != nil {
		return nil, err
	}
	environments := make([]scaffold.Environment, 0, len(s.fleet.Spec.Environments))
	for _, e := range s.fleet.Spec.Environments {
		c := s.fleet.ChannelOf(e.Name)
		environments = append(environments, scaffold.Environment{Name: e.Name, Source: c.Source(), Unreleased: c.IsTag() && !s.hasSource(c)})
	}
	var charts []string
	for _, p := range s.mgmt.Providers {
		if p.Type == v1alpha1.ProviderInfrastructure {
			charts = append(charts, scaffold.FlavoursFor(p.Name)...)
		}
	}
	if i := slices.Index(charts, inMemoryFlavour); i > 0 && s.traits().Processes {
		// Where such a host is, there may be no engine for a cluster of containers: the README's example has to work.
		charts = slices.Insert(slices.Delete(charts, i, i+1), 0, inMemoryFlavour)
	}
	return scaffold.Repo(scaffold.RepoOptions{
		Fleet: s.fleet.Metadata.Name, FleetYAML: s.fleetFile, ManagementCluster: s.mgmt.Name,
		Layout:       s.layout(),
		Environments: environments, Charts: charts, KubernetesVersion: version, Local: s.endpoint.local,
	})
}

// exampleVersion is the Kubernetes version of the cluster in the new repo's README: that of the management cluster, which its host chose
// where fleet.yaml does not say.
func (s *session) exampleVersion(ctx context.Context) (string, error) {
	if v := s.mgmt.KubernetesVersion; v != "" {
		return v, nil
	}
	if s.client == nil { // a dry run
		return s.traits().KubernetesVersion, nil
	}
	v, err := s.client.ServerVersion(ctx)
	v, _, _ = strings.Cut(v, "+") // what a distribution appends is no version of Kubernetes
	return v, err
}

func (s *session) syncOptions() flux.SyncOptions {
	o := flux.SyncOptions{
		URL: s.endpoint.url, Branch: s.fleet.Spec.Git.Branch, Path: s.mgmt.Dir(), Interval: s.interval(),
	}
	if !s.endpoint.credentials.Empty() {
		o.SecretName = flux.Name
	}
	return o
}

// interval at which Flux looks for commits; Validate has checked that it parses.
func (s *session) interval() time.Duration {
	d, err := time.ParseDuration(s.fleet.Spec.Git.Interval)
	if err != nil {
		return time.Minute
	}
	return d
}

// commitAndPush writes and commits what the fleet repo lacks, with fleet.yaml as it stands, and nothing else that may be dirty, and pushes it. Where the remote has moved on, the
// intent is applied again on top of it, never forced.
func (s *session) commitAndPush(ctx context.Context, detail func(string)) error {
	if err := s.prepareWorkTree(ctx); err != nil {
		return err
	}
	message := fmt.Sprintf("Point the management cluster %s at this repository\n\nWritten by fleetctl init.\n", s.mgmt.Name)
	if err := s.repo.Recover(ctx); err != nil {
		return err
	}
	if s.endpoint.local {
		made, err := s.commitHere(ctx, message)
		if err != nil {
			return err
		}
		if !made {
			return steps.NothingToDo("all is committed")
		}
		s.did()
		return nil
	}
	detail("pushing to " + s.fleet.Spec.Git.URL)
	intent := func(root string) ([]gitrepo.Change, error) { return s.gitChanges(ctx, root) }
	synced, err := s.repo.Sync(ctx, s.pushAuth(), intent, message, gitrepo.Author{})
	if err != nil {
		return err
	}
	s.revision = synced.Commit
	if !synced.Pushed {
		return steps.NothingToDo("all is pushed")
	}
	s.did()
	return nil
}

// commitHere commits to a fleet repo that has no remote, and says whether there was anything to commit.
func (s *session) commitHere(ctx context.Context, message string) (made bool, err error) {
	base, err := s.repo.Head()
	if err != nil {
		return false, err
	}
	root, remove, err := s.repo.Copy(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	changes, err := s.gitChanges(ctx, root)
	if err != nil {
		return false, err
	}
	s.revision, made, err = s.repo.CommitOnto(ctx, base, changes, message, gitrepo.Author{})
	return made, err
}

// gitChanges are repoFiles as gitrepo commits them, where root has what is committed. A person's own file in no commit stays as it is; one that is
// just what would be written is left from an earlier run.
func (s *session) gitChanges(ctx context.Context, root string) ([]gitrepo.Change, error) {
	files, err := s.repoFiles(ctx, root, func(f manifest.File) bool {
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(f.Path))); err == nil {
			return true
		}
		content, err := within.ReadFile(s.opts.Dir, f.Path, fleetrepo.MaxFile)
		if err != nil {
			return !errors.Is(err, fs.ErrNotExist)
		}
		return !bytes.Equal(content, f.Content)
	})
	if err != nil {
		return nil, err
	}
	changes := make([]gitrepo.Change, 0, len(files))
	for _, f := range files {
		// The cluster is made from fleet.yaml as it stands on disk.
		changes = append(changes, gitrepo.Change{Path: f.Path, Content: f.Content, Replace: f.Path == v1alpha1.FileName})
	}
	identity, err := s.identityFile(root)
	if err != nil {
		return nil, err
	}
	changes = append(changes, identity...)
	encrypted, err := s.secretFiles(ctx, root)
	return append(changes, encrypted...), err
}

// cloneAuth is what reaches the remote before fleet.yaml is read: the options alone.
func (s *session) cloneAuth() (gitrepo.Auth, error) {
	auth := s.pushAuth()
	var err error
	if s.opts.Git.CAFile != "" {
		if auth.CA, err = os.ReadFile(s.inRepo(s.opts.Git.CAFile)); err != nil {
			return auth, diag.Wrap("read the certificate authorities of the Git remote", err, "give --git-ca-file a PEM file")
		}
	}
	if auth.KnownHosts, err = s.givenKnownHosts(); err != nil {
		return auth, err
	}
	return auth, nil
}

// givenKnownHosts reads --ssh-known-hosts.
func (s *session) givenKnownHosts() (string, error) {
	if s.opts.Git.KnownHostsFile == "" {
		return "", nil
	}
	raw, err := os.ReadFile(s.opts.Git.KnownHostsFile)
	return string(raw), diag.Wrap("read the known hosts", err, "give --ssh-known-hosts a file in the format of ~/.ssh/known_hosts")
}

// pushAuth is how fleetctl itself reaches the remote.
func (s *session) pushAuth() gitrepo.Auth {
	auth := gitrepo.Auth{
		Username: s.opts.Git.Username, Token: s.opts.Git.Token, KeyFile: s.opts.Git.SSHKeyFile,
		UserKnownHosts: true, CA: s.ca,
	}
	if s.fleet != nil {
		auth.KnownHosts = cmp.Or(s.fleet.Spec.Git.KnownHosts, s.knownHosts)
		if auth.Username == "" {
			auth.Username = s.fleet.Spec.Git.Username
		}
	}
	return auth
}

// inRepo makes a path that is relative to fleet.yaml absolute.
func (s *session) inRepo(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.opts.Dir, path)
}

// sourceCredentials are what Flux gets: the token, or a deploy key of its own, made once and kept in the state folder.
func (s *session) sourceCredentials() (flux.SourceCredentials, error) {
	protocol, _, err := gitrepo.ParseURL(s.fleet.Spec.Git.URL)
	if err != nil {
		return flux.SourceCredentials{}, err
	}
	if protocol != gitrepo.ProtocolSSH {
		if s.opts.Git.Token == "" {
			return flux.SourceCredentials{CA: s.ca}, nil
		}
		return flux.SourceCredentials{Username: s.pushAuth().Username, Password: s.opts.Git.Token, CA: s.ca}, nil
	}
	key, err := s.ensureDeployKey()
	if err != nil {
		return flux.SourceCredentials{}, err
	}
	hosts, err := gitrepo.TrustedHostKeys(s.fleet.Spec.Git.URL, s.pushAuth())
	if err != nil {
		return flux.SourceCredentials{}, err
	}
	return flux.SourceCredentials{Identity: key.Private, IdentityPub: []byte(key.Public), KnownHosts: []byte(hosts)}, nil
}

// ensureDeployKey makes the deploy key, or reads the one that an earlier run made: its public half may be at the Git server
// already.
func (s *session) ensureDeployKey() (*gitrepo.DeployKey, error) {
	if s.deployKey != nil {
		return s.deployKey, nil
	}
	comment := "flux@" + s.mgmt.Name + "." + s.fleet.Metadata.Name
	raw, err := os.ReadFile(s.cluster.Path(deployKeyFile))
	if err == nil {
		s.deployKey, err = gitrepo.ParseDeployKey(raw, comment)
		return s.deployKey, diag.Wrap("read the deploy key of "+s.mgmt.Name, err, "remove "+s.cluster.Path(deployKeyFile)+": a new one is made")
	}
	key, err := gitrepo.GenerateDeployKey(comment)
	if err != nil {
		return nil, err
	}
	if err := s.cluster.Write(deployKeyFile, key.Private); err != nil {
		return nil, err
	}
	s.deployKey = key
	return key, nil
}

// sourceURL is the remote in the form that Flux takes: it knows no user@host:path.
func sourceURL(git v1alpha1.Git) string {
	u, err := git.ParseURL()
	if err != nil {
		return git.URL // Validate has refused it by now
	}
	return u.String()
}

// deployKeyPage is where the well-known Git servers take a deploy key, "" for others.
func deployKeyPage(remote string) string {
	host, path := splitRemote(remote)
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	switch {
	case host == "github.com" || strings.HasPrefix(host, "github."):
		return fmt.Sprintf("https://%s/%s/settings/keys/new", host, path)
	case host == "gitlab.com" || strings.HasPrefix(host, "gitlab."):
		return fmt.Sprintf("https://%s/%s/-/settings/repository#js-deploy-keys-settings", host, path)
	case host == "bitbucket.org":
		return fmt.Sprintf("https://%s/%s/admin/access-keys/", host, path)
	}
	return ""
}

// splitRemote splits ssh://user@host:port/path and user@host:path.
func splitRemote(remote string) (host, path string) {
	if u, err := url.Parse(remote); err == nil && u.Host != "" {
		return u.Hostname(), u.Path
	}
	at, path, _ := strings.Cut(remote, ":")
	if _, h, ok := strings.Cut(at, "@"); ok {
		at = h
	}
	return at, path
}
