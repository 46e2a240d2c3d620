package v1alpha1

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// GitScheme is the protocol of a fleet repo's URL.
type GitScheme string

// The schemes. GitHTTPS includes plain http to a loopback address, which takes the same credentials.
const (
	GitLocal GitScheme = "local"
	GitHTTPS GitScheme = "https"
	GitSSH   GitScheme = "ssh"
)

// Scheme returns the protocol of the fleet repo. It returns GitLocal if there is no URL, and GitHTTPS for an invalid URL.
func (g Git) Scheme() GitScheme {
	if g.URL == "" {
		return GitLocal
	}
	if u, err := g.ParseURL(); err == nil && u.Scheme == "ssh" {
		return GitSSH
	}
	return GitHTTPS
}

// ParseURL returns the URL. It turns user@host:path into ssh://user@host/path. It returns an error for an empty URL, and for every URL that
// is not an https or ssh URL that both Flux and fleetctl can use. The error has a hint, and never contains a password.
func (g Git) ParseURL() (*url.URL, error) {
	if user, host, path, ok := cutSCP(g.URL); ok {
		if first, _, hasColon := strings.Cut(path, ":"); hasColon && strings.Trim(first, "0123456789") == "" {
			// git reads the number as part of the path, other programs read it as a port
			return nil, diag.Errorf("write it as ssh://user@host:port/path", "the path of the URL begins with a number and a colon")
		}
		return checkSSH(&url.URL{Scheme: "ssh", User: url.User(user), Host: host, Path: "/" + strings.TrimPrefix(path, "/")})
	}
	u, err := url.Parse(g.URL)
	if err != nil {
		// the error of url.Parse repeats the URL, which may contain a password
		return nil, diag.Errorf(urlForms, "not a URL")
	}
	switch u.Scheme {
	case "https":
		return checkHTTPS(u)
	case "http":
		if sameorigin.IsLoopback(u.Hostname()) {
			return checkHTTPS(u)
		}
		return nil, diag.Errorf("use https://", "plain http would send the token in clear")
	case "ssh":
		return checkSSH(u)
	case "file":
		return nil, diag.Errorf("leave url out to use the folder of fleet.yaml: fleetctl serves the folder to Flux",
			"Flux cannot read a file:// URL")
	case "":
		return nil, diag.Errorf(urlForms+"; leave it out to use the folder of fleet.yaml", "URL has no scheme")
	}
	return nil, diag.Errorf(urlForms, "scheme %q is not supported", u.Scheme)
}

const urlForms = "use https://host/path, ssh://user@host/path or user@host:path"

// cutSCP splits user@host:path, the short form of an ssh URL.
func cutSCP(s string) (user, host, path string, ok bool) {
	if strings.Contains(s, "://") {
		return "", "", "", false
	}
	address, path, ok := strings.Cut(s, ":")
	user, host, hasUser := strings.Cut(address, "@")
	if !ok || !hasUser || user == "" || host == "" || path == "" || path[0] == '\\' || strings.ContainsAny(address, "/\\ ") {
		return "", "", "", false
	}
	return user, host, path, true
}

func checkHTTPS(u *url.URL) (*url.URL, error) {
	if u.User != nil {
		return nil, diag.Errorf(
			"remove the part before the @, revoke it if it is a token that was committed, and give the token with --git-token-file or "+
				"FLEETCTL_GIT_TOKEN_FILE",
			"URL has credentials, which do not belong in Git")
	}
	return checkPlace(u)
}

func checkSSH(u *url.URL) (*url.URL, error) {
	if _, hasPassword := u.User.Password(); hasPassword {
		return nil, diag.Errorf("use a deploy key", "URL has a password, which does not belong in Git")
	}
	if u.User.Username() == "" {
		return nil, diag.Errorf("most servers expect ssh://git@host/path", "ssh URL has no user")
	}
	return checkPlace(u)
}

// checkPlace checks the host, port and path, which all forms have.
func checkPlace(u *url.URL) (*url.URL, error) {
	switch {
	case u.Hostname() == "" || strings.ContainsFunc(u.Host, isBlank):
		return nil, diag.Errorf(urlForms, "URL has no host")
	case u.Port() != "" && !isPort(u.Port()):
		return nil, diag.Errorf("a port is a number from 1 to 65535", "URL has a bad port")
	case strings.Trim(u.Path, "/") == "":
		return nil, diag.Errorf(urlForms, "URL has no path")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, diag.Errorf("remove the part after ? or #", "URL of a repository has neither a query nor a fragment")
	case strings.ContainsFunc(u.Path, isBlank):
		return nil, errors.New("path of the URL contains a blank")
	}
	return u, nil
}

// isBlank tells whether a character is invisible.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// ForgeType returns the declared forge, or else the forge that the host's name suggests. It returns "" if neither is known.
func (g Git) ForgeType() ForgeType {
	if g.Forge != "" {
		return g.Forge
	}
	u, err := g.ParseURL()
	if err != nil {
		return ""
	}
	return ForgeOf(u.Hostname())
}
