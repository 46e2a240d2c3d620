package lifecycle

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
func (s *session) cloneAuth() (gitrepo.Auth, error) {
	auth := s.pushAuth()
	var err error
	if s.opts.Git.CAFile != "" {
		if auth.CA, err = within.Given(s.inRepo(s.opts.Git.CAFile), maxNamed); err != nil {
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
	raw, err := within.Given(s.opts.Git.KnownHostsFile, maxNamed)
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

// maxDeployKey is far above what a private key needs, in bytes.
const maxDeployKey = 64 << 10

// ensureDeployKey makes the deploy key, or reads the one that an earlier run made: its public half may be at the Git server
// already.
func (s *session) ensureDeployKey() (*gitrepo.DeployKey, error) {
	return s.deployKey.untilFound(s.keepDeployKey)
}

func (s *session) keepDeployKey() (*gitrepo.DeployKey, error) {
	comment := "flux@" + s.mgmt.Name + "." + s.fleet.Metadata.Name
	file := s.cluster.Path(deployKeyFile)
	raw, err := within.Named(file, maxDeployKey)
	if err == nil {
		key, err := gitrepo.ParseDeployKey(raw, comment)
		return key, diag.Wrap("read the deploy key "+file, err, "move it away: a new one is made, and the Git server has to be told")
	}
	if !errors.Is(err, fs.ErrNotExist) { // the Git server knows the one that is there
		return nil, diag.Wrap("read the deploy key of "+s.mgmt.Name, err, "make it a file that you can read; or move "+file+" away: a new one is made, and the Git server has to be told")
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
