package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// cloneAuth is what reaches the remote before fleet.yaml is read: the options alone.
func (s *session) cloneAuth() (gitrepo.Auth, error) {
	auth := s.pushAuth()
	var err error
	if s.opts.Git.CAFile != "" {
		if auth.CA, err = within.Given(s.inRepo(s.opts.Git.CAFile), within.MostNamed); err != nil {
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
	raw, err := within.Given(s.opts.Git.KnownHostsFile, within.MostNamed)
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

// sourceCredentials are what Flux gets: the token, or a deploy key of its own, made once and kept in the state folder.
func (s *session) sourceCredentials() (flux.SourceCredentials, error) {
	if s.fleet.Spec.Git.Scheme() != v1alpha1.GitSSH {
		username, token := s.pushAuth().Username, s.opts.Git.Token
		if s.givenOwnToken() {
			username, token = s.readerAuth()
		}
		if token == "" {
			return flux.SourceCredentials{CA: s.ca}, nil
		}
		return flux.SourceCredentials{Username: username, Password: token, CA: s.ca}, nil
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
	return s.deployKey.untilFound(s.keepDeployKey)
}

func (s *session) keepDeployKey() (*gitrepo.DeployKey, error) {
	comment := "flux@" + s.mgmt.Name + "." + s.fleet.Metadata.Name
	raw, err := os.ReadFile(s.cluster.Path(deployKeyFile))
	if err == nil {
		key, err := gitrepo.ParseDeployKey(raw, comment)
		return key, diag.Wrap("read the deploy key of "+s.mgmt.Name, err, "remove "+s.cluster.Path(deployKeyFile)+": a new one is made")
	}
	key, err := gitrepo.GenerateDeployKey(comment)
	if err != nil {
		return nil, err
	}
	if err := s.cluster.Write(deployKeyFile, key.Private); err != nil {
		return nil, err
	}
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
	u, err := v1alpha1.Git{URL: remote}.ParseURL()
	if err != nil {
		return ""
	}
	host, path := u.Hostname(), strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
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

// explainRemote adds what only the command line knows to an error of the remote at url.
func (s *session) explainRemote(url string, err error) error {
	if !errors.Is(err, gitrepo.ErrAuth) {
		return err
	}
	switch scheme := (v1alpha1.Git{URL: url}).Scheme(); {
	case scheme == v1alpha1.GitSSH && s.opts.Git.SSHKeyFile == "":
		return diag.Wrap("", err, "give --ssh-key-file a key that may push, or add one to your agent: ssh-add")
	case scheme != v1alpha1.GitSSH && s.opts.Git.Token == "":
		return diag.Wrap("", err, "set FLEETCTL_GIT_TOKEN, or give --git-token-file")
	}
	return err
}

// readCA reads the certificate authorities that fleet.yaml, or a flag for a new one, names.
func (s *session) readCA() (err error) {
	file := cmp.Or(s.fleet.Spec.Git.CAFile, s.opts.Git.CAFile)
	if file == "" {
		return nil
	}
	s.ca, err = within.Named(s.inRepo(file), within.MostNamed)
	return diag.Wrap("read the certificate authorities of the Git remote", err, "spec.git.caFile in fleet.yaml, or --git-ca-file, names a PEM file, relative to fleet.yaml")
}

// givenOwnToken tells whether this run was given a token for Flux. The one that pushes, given twice, is none.
func (s *session) givenOwnToken() bool {
	return s.opts.FluxToken != "" && s.opts.FluxToken != s.opts.Git.Token
}

// readerAuth is how Flux reaches the remote with a token of its own.
func (s *session) readerAuth() (username, token string) {
	return cmp.Or(s.opts.FluxUsername, s.fleet.Spec.Git.FluxUsername, s.pushAuth().Username), s.opts.FluxToken
}
