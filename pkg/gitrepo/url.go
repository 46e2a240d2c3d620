package gitrepo

import (
	"net"
	"net/url"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing/transport"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Protocol is how a repository is reached.
type Protocol string

// The protocols that fleetctl speaks. HTTP without TLS is for servers on this machine: a token is never sent over it elsewhere.
const (
	ProtocolHTTPS Protocol = "https"
	ProtocolHTTP  Protocol = "http"
	ProtocolSSH   Protocol = "ssh"
)

// ParseURL checks a repository URL (https://…, ssh://user@host/path or user@host:path) and returns its protocol and, for
// ssh, the host:port whose key is checked. It returns an error that matches ErrURL for any other URL, and for one with a
// password or token in it; that error does not repeat the URL.
func ParseURL(raw string) (Protocol, string, error) {
	ep, err := parseEndpoint(raw)
	if err != nil {
		return "", "", err
	}
	return Protocol(ep.Protocol), hostPort(ep), nil
}

func parseEndpoint(raw string) (*transport.Endpoint, error) {
	ep, err := transport.NewEndpoint(raw)
	if err != nil {
		// The text of a URL error repeats the URL, in which a password may stand.
		return nil, diag.Errorf("write it as https://host/path, ssh://user@host/path or user@host:path", "%w", ErrURL)
	}
	if ep.Password != "" {
		return nil, diag.Errorf("take it out of the URL; the token is read from elsewhere", "%w: it has a password in it", ErrURL)
	}
	switch Protocol(ep.Protocol) {
	case ProtocolHTTPS, ProtocolHTTP, ProtocolSSH:
	case "file":
		return nil, diag.Errorf("write it as https://host/path, ssh://user@host/path or user@host:path",
			"%w: it is a path of this machine, which Flux cannot use", ErrURL)
	default:
		return nil, diag.Errorf("write it as https://host/path, ssh://user@host/path or user@host:path",
			"%w: %s is no protocol that Flux can use", ErrURL, ep.Protocol)
	}
	if ep.Host == "" || ep.Path == "" || ep.Path == "/" {
		return nil, diag.Errorf("write it as https://host/path, ssh://user@host/path or user@host:path", "%w: it lacks a host or a path", ErrURL)
	}
	return ep, nil
}

// hostPort is what an SSH client dials for ep: the user's ~/.ssh/config can rename the host, as go-git does it too.
func hostPort(ep *transport.Endpoint) string {
	if Protocol(ep.Protocol) != ProtocolSSH {
		return ""
	}
	host, port := ep.Host, ep.Port
	if port <= 0 {
		port = gitssh.DefaultPort
	}
	if gitssh.DefaultSSHConfig != nil {
		if name := gitssh.DefaultSSHConfig.Get(ep.Host, "Hostname"); name != "" {
			host = name
			if p, err := strconv.Atoi(gitssh.DefaultSSHConfig.Get(ep.Host, "Port")); err == nil {
				port = p
			}
		}
	}
	return net.JoinHostPort(trimBrackets(host), strconv.Itoa(port))
}

// serverOf is the server of an endpoint, whose credential goes nowhere else.
func serverOf(ep *transport.Endpoint) *url.URL {
	server := &url.URL{Scheme: ep.Protocol, Host: ep.Host}
	if ep.Port != 0 {
		server.Host = net.JoinHostPort(trimBrackets(ep.Host), strconv.Itoa(ep.Port))
	}
	return server
}

func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}

// display is the URL as it may stand in errors: it has no password, as parseEndpoint has checked, and over https the user may be a token.
func display(ep *transport.Endpoint) string {
	shown := *ep
	if Protocol(ep.Protocol) != ProtocolSSH {
		shown.User = ""
	}
	return shown.String()
}
