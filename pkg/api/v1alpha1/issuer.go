package v1alpha1

import (
	"net/url"
	"path"
	"regexp"
	"strings"
)

// issuerURL has the characters that an issuer's address may have. The address stands as it is in tokens, trust policies and a list of
// audiences, which a comma would split.
var issuerURL = regexp.MustCompile(`^https://[A-Za-z0-9._~%:@!$&'()*+;=/\[\]-]+$`)

// IsIssuer tells whether an address can be that of an issuer of tokens: clouds read documents below it, and compare it letter by letter.
func IsIssuer(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !issuerURL.MatchString(address) || u.Hostname() == "" || u.User != nil {
		return false
	}
	folder := strings.TrimSuffix(u.Path, "/") // some clouds end their own issuers with a slash
	return folder == "" || path.Clean(folder) == folder
}
