package v1alpha1

import (
	"cmp"
	"net/url"
	"strings"
)

// publicForges are the hosts that take the paths of repositories in any case. Other hosts of the same forges may not be what their names
// say.
var publicForges = map[string]bool{
	"github.com": true, "gitlab.com": true, "bitbucket.org": true, "codeberg.org": true, azureHost: true,
}

const azureHost = "dev.azure.com"

// sshOn443 maps the hosts that take ssh on port 443 to the hosts whose repositories they have.
var sshOn443 = map[string]string{
	"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org",
}

// SameRepository tells whether two URLs name the same repository. It ignores a suffix .git, the user, and slashes at the end. It compares
// ports only if both URLs use the same protocol. It knows the further addresses of public forges, and that they ignore the case of paths.
func SameRepository(a, b string) bool { return sameRepository(a, b, false) }

// SeemsSameRepository is SameRepository, but also ignores the case of paths on hosts whose names only suggest a forge. It serves reports.
// It must not decide who gets credentials, or what a fleet owns.
func SeemsSameRepository(a, b string) bool { return sameRepository(a, b, true) }

func sameRepository(a, b string, guess bool) bool {
	if a == "" || b == "" {
		return false
	}
	first, err := (Git{URL: a}).ParseURL()
	if err != nil {
		return a == b
	}
	second, err := (Git{URL: b}).ParseURL()
	if err != nil {
		return a == b
	}
	firstHost, firstPort, firstPath := repositoryOf(first)
	secondHost, secondPort, secondPath := repositoryOf(second)
	samePath := firstPath == secondPath
	if publicForges[firstHost] || guess && ForgeOf(firstHost) != "" {
		samePath = strings.EqualFold(firstPath, secondPath)
	}
	return firstHost == secondHost && samePath && (first.Scheme != second.Scheme || firstPort == secondPort)
}

// repositoryOf returns the host, the port and the path by which a forge knows a repository.
func repositoryOf(u *url.URL) (host, port, path string) {
	host, port = strings.ToLower(u.Hostname()), defaultPort(u.Scheme, u.Port())
	path = strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
	switch {
	case u.Scheme == "ssh" && port == "443" && sshOn443[host] != "":
		host, port = sshOn443[host], defaultPort(u.Scheme, "")
	case u.Scheme == "ssh" && host == "ssh."+azureHost: // v3/organization/project/repository
		host, path = azureHost, strings.TrimPrefix(path, "v3/")
	case u.Scheme == "https" && host == azureHost: // organization/project/_git/repository
		path = strings.Replace(path, "/_git/", "/", 1)
		if organization, repository, _ := strings.Cut(path, "/"); !strings.Contains(repository, "/") { // called as its project
			path = organization + "/" + repository + "/" + repository
		}
	}
	return host, port, path
}

// defaultPort returns the given port, or else the default port of the protocol.
func defaultPort(scheme, given string) string {
	defaults := map[string]string{"https": "443", "http": "80", "ssh": "22"}
	return cmp.Or(given, defaults[scheme])
}
