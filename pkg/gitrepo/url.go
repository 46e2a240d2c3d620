package gitrepo

import (
	"net"
	"net/url"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing/transport"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Protocol is the protocol of a repository's URL.
type Protocol string

// The protocols that fleetctl supports. HTTP without TLS is for servers on this machine; fleetctl never sends a token over it to another
// machine.
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
		// The text of a URL error repeats the URL, which may contain a password.
		return nil, diag.Errorf("write it as https://host/path, ssh://user@host/path or user@host:path", "%w", ErrURL)
	}
	if ep.Password != "" {
		return nil, diag.Errorf("remove the password from the URL; give a token separately", "%w: it has a password in it", ErrURL)
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

// hostPort returns the address that an SSH client dials for ep. As go-git, it applies the user's ~/.ssh/config, which may rename the host.
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

// serverOf returns the server of an endpoint, which is the only server that gets the credential.
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

// display returns the URL for errors. parseEndpoint has checked that the URL has no password. Over https, display leaves out the user too,
// which may be a token.
func display(ep *transport.Endpoint) string {
	shown := *ep
	if Protocol(ep.Protocol) != ProtocolSSH {
		shown.User = ""
	}
	return shown.String()
}
