package session

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// cloneAuth returns the credentials for the remote before fleet.yaml is read. They come from the options alone.
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

// PushAuth returns the credentials with which fleetctl itself reaches the remote.
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

// SourceCredentials returns Flux's credentials for the remote: the token, or over ssh a deploy key of its own, which is made once and kept
// in the state folder.
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

// maxDeployKey bounds the file of the deploy key, in bytes. A private key is much smaller.
const maxDeployKey = 64 << 10

// EnsureDeployKey reads the deploy key from the state folder, or makes it. It never replaces a key, because the Git server may know the
// public half already.
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

// SourceURL returns the URL of the remote in a form that Flux accepts. Flux does not accept user@host:path.
func SourceURL(git v1alpha1.Git) string {
	u, err := git.ParseURL()
	if err != nil {
		return git.URL // Validate has refused it by now
	}
	return u.String()
}

// ExplainRemote adds a hint about flags to an error of the remote at url.
func (s *Session) ExplainRemote(url string, err error) error {
	if errors.Is(err, gitrepo.ErrNotFound) && s.Opts.Git.Token != "" {
		return diag.Wrap("", err, diag.Hint(err)+"; or `fleetctl init --create-repo` makes it")
	}
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

// readCA reads the certificate authorities that fleet.yaml names, or the flag of a new fleet.
func (s *Session) readCA() (err error) {
	file := cmp.Or(s.Fleet.Spec.Git.CAFile, s.Opts.Git.CAFile)
	if file == "" {
		return nil
	}
	s.CA, err = within.Named(s.inRepo(file), within.MostNamed)
	return diag.Wrap("read the certificate authorities of the Git remote", err,
		"spec.git.caFile in fleet.yaml, or --git-ca-file, names a PEM file, relative to fleet.yaml")
}

// GivenOwnToken tells whether this run has a token for Flux that differs from the token that pushes.
func (s *Session) GivenOwnToken() bool {
	return s.Opts.FluxToken != "" && s.Opts.FluxToken != s.Opts.Git.Token
}

// ReaderAuth returns the username and the token with which Flux reads the remote.
func (s *Session) ReaderAuth() (username, token string) {
	return cmp.Or(s.Opts.FluxUsername, s.Fleet.Spec.Git.FluxUsername, s.PushAuth().Username), s.Opts.FluxToken
}
