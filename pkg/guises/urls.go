package guises

import "regexp"

var (
	// passwords are those of users in URLs, of any scheme; users without one are tokens, which only HTTP has.
	passwords = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/@:"'<>]*:)[^\s/@"'<>]+@`)
	users     = regexp.MustCompile(`([hH][tT][tT][pP][sS]?://)[^\s/@:"'<>]+@`)
	// parameters are those of URLs that have a credential by their name.
	parameters = regexp.MustCompile(`(?i)([?&][\w.-]*(?:token|signature|secret|password|credential|\bsig)[\w.-]*=)[^\s&"'<>]+`)
)

// WithoutURLSecrets is a text of another program without the credentials in its URLs: Flux and git, for example, repeat the URL of a
// repository with the password in it.
func WithoutURLSecrets(text string) string {
	text = passwords.ReplaceAllString(text, "$1***@")
	text = users.ReplaceAllString(text, "$1***@")
	return parameters.ReplaceAllString(text, "$1***")
}
