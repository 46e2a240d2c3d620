package session

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// cloneAuth is what reaches the remote before fleet.yaml is read: the options alone.
func (s *Session) cloneAuth() (gitrepo.Auth, error) {
	auth := s.PushAuth()
	var err error
	if s.Opts.Git.CAFile != "" {
		if auth.CA, err = within.Given(s.inRepo(s.Opts.Git.CAFile), within.MostNamed); err != nil {
			return auth, diag.Wrap("read the certificate authorities of the Git remote", err, "give --git-ca-file a PEM file")
		}
	}
	if auth.KnownHosts, err = s.givenKnownHosts(); err != nil {
		return auth, err
	}
	return auth, nil
}

// givenKnownHosts reads --ssh-known-hosts.
func (s *Session) givenKnownHosts() (string, error) {
	if s.Opts.Git.KnownHostsFile == "" {
		return "", nil
	}
	raw, err := within.Given(s.Opts.Git.KnownHostsFile, within.MostNamed)
	return string(raw), diag.Wrap("read the known hosts", err, "give --ssh-known-hosts a file in the format of ~/.ssh/known_hosts")
}

// PushAuth is how fleetctl itself reaches the remote.
func (s *Session) PushAuth() gitrepo.Auth {
	auth := gitrepo.Auth{
		Username: s.Opts.Git.Username, Token: s.Opts.Git.Token, KeyFile: s.Opts.Git.SSHKeyFile,
		UserKnownHosts: true, CA: s.CA,
	}
	if s.Fleet != nil {
		auth.KnownHosts = cmp.Or(s.Fleet.Spec.Git.KnownHosts, s.knownHosts)
		if auth.Username == "" {
			auth.Username = s.Fleet.Spec.Git.Username
		}
	}
	return auth
}

// SourceCredentials are what Flux gets: the token, or a deploy key of its own, made once and kept in the state folder.
func (s *Session) SourceCredentials() (flux.SourceCredentials, error) {
	if s.Fleet.Spec.Git.Scheme() != v1alpha1.GitSSH {
		username, token := s.PushAuth().Username, s.Opts.Git.Token
		if s.GivenOwnToken() {
			username, token = s.ReaderAuth()
		}
		if token == "" {
			return flux.SourceCredentials{CA: s.CA}, nil
		}
		return flux.SourceCredentials{Username: username, Password: token, CA: s.CA}, nil
	}
	key, err := s.EnsureDeployKey()
	if err != nil {
		return flux.SourceCredentials{}, err
	}
	hosts, err := gitrepo.TrustedHostKeys(s.Fleet.Spec.Git.URL, s.PushAuth())
	if err != nil {
		return flux.SourceCredentials{}, err
	}
	return flux.SourceCredentials{Identity: key.Private, IdentityPub: []byte(key.Public), KnownHosts: []byte(hosts)}, nil
}

// maxDeployKey is far above what a private key needs, in bytes.
const maxDeployKey = 64 << 10

// EnsureDeployKey makes the deploy key, or reads the one that an earlier run made: its public half may be at the Git server
// already.
func (s *Session) EnsureDeployKey() (*gitrepo.DeployKey, error) {
	return s.deployKey.untilFound(s.keepDeployKey)
}

func (s *Session) keepDeployKey() (*gitrepo.DeployKey, error) {
	comment := "flux@" + s.Mgmt.Name + "." + s.Fleet.Metadata.Name
	file := s.Cluster.Path(deployKeyFile)
	raw, err := within.Named(file, maxDeployKey)
	if err == nil {
		key, err := gitrepo.ParseDeployKey(raw, comment)
		return key, diag.Wrap("read the deploy key "+file, err, "move it away: a new one is made, and the Git server has to be told")
	}
	if !errors.Is(err, fs.ErrNotExist) { // the Git server knows the one that is there
		return nil, diag.Wrap("read the deploy key of "+s.Mgmt.Name, err,
			"make it a file that you can read; or move "+file+" away: a new one is made, and the Git server has to be told")
	}
	key, err := gitrepo.GenerateDeployKey(comment)
	if err != nil {
		return nil, err
	}
	if err := s.Cluster.Write(deployKeyFile, key.Private); err != nil {
		return nil, err
	}
	return key, nil
}

// SourceURL is the remote in the form that Flux takes: it knows no user@host:path.
func SourceURL(git v1alpha1.Git) string {
	u, err := git.ParseURL()
	if err != nil {
		return git.URL // Validate has refused it by now
	}
	return u.String()
}

// DeployKeyPage is where the well-known Git servers take a deploy key, "" for others.
func DeployKeyPage(remote string) string {
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

// ExplainRemote adds what only the command line knows to an error of the remote at url.
func (s *Session) ExplainRemote(url string, err error) error {
	if !errors.Is(err, gitrepo.ErrAuth) {
		return err
	}
	switch scheme := (v1alpha1.Git{URL: url}).Scheme(); {
	case scheme == v1alpha1.GitSSH && s.Opts.Git.SSHKeyFile == "":
		return diag.Wrap("", err, "give --ssh-key-file a key that may push, or add one to your agent: ssh-add")
	case scheme != v1alpha1.GitSSH && s.Opts.Git.Token == "":
		return diag.Wrap("", err, "set FLEETCTL_GIT_TOKEN, or give --git-token-file")
	}
	return err
}

// readCA reads the certificate authorities that fleet.yaml, or a flag for a new one, names.
func (s *Session) readCA() (err error) {
	file := cmp.Or(s.Fleet.Spec.Git.CAFile, s.Opts.Git.CAFile)
	if file == "" {
		return nil
	}
	s.CA, err = within.Named(s.inRepo(file), within.MostNamed)
	return diag.Wrap("read the certificate authorities of the Git remote", err,
		"spec.git.caFile in fleet.yaml, or --git-ca-file, names a PEM file, relative to fleet.yaml")
}

// GivenOwnToken tells whether this run was given a token for Flux. The one that pushes, given twice, is none.
func (s *Session) GivenOwnToken() bool {
	return s.Opts.FluxToken != "" && s.Opts.FluxToken != s.Opts.Git.Token
}

// ReaderAuth is how Flux reaches the remote with a token of its own.
func (s *Session) ReaderAuth() (username, token string) {
	return cmp.Or(s.Opts.FluxUsername, s.Fleet.Spec.Git.FluxUsername, s.PushAuth().Username), s.Opts.FluxToken
}
