package guises

import (
	"regexp"
	"sync"
)

// urlSecrets are expressions for the credentials in URLs, with what replaces them. They are compiled at their first use, because most runs
// have no such text.
var urlSecrets = sync.OnceValue(func() []replacement {
	return []replacement{
		// Passwords are those of users in URLs, of any scheme; users without one are tokens, which only HTTP has.
		{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/@:"'<>]*:)[^\s/@"'<>]+@`), "$1***@"},
		{regexp.MustCompile(`([hH][tT][tT][pP][sS]?://)[^\s/@:"'<>]+@`), "$1***@"},
		// Parameters are those of URLs that have a credential by their name.
		{regexp.MustCompile(`(?i)([?&][\w.-]*(?:token|signature|secret|password|credential|\bsig)[\w.-]*=)[^\s&"'<>]+`), "$1***"},
	}
})

type replacement struct {
	found *regexp.Regexp
	by    string
}

// WithoutURLSecrets is a text of another program without the credentials in its URLs: Flux and git, for example, repeat the URL of a
// repository with the password in it.
func WithoutURLSecrets(text string) string {
	for _, r := range urlSecrets() {
		text = r.found.ReplaceAllString(text, r.by)
	}
	return text
}
