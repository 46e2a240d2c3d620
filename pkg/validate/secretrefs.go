package validate

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// secretReferences are texts that say where a secret is, and are none: something fills them in before anybody reads them. Of 1Password,
// vals and helm-secrets, bank-vaults, argocd-vault-plugin, the clouds' stores and other programs that inject secrets.
var secretReferences = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`op://[^\s/]+/\S+`,
	`(?:secret)?ref\+[a-z0-9]+://\S+`,
	`vault:[^\s#]+/[^\s#]+#\S+`,
	`<(?:path:)?[^<>\s]+>`,
	`arn:aws[a-z-]*:(?:secretsmanager|ssm):\S+`,
	`projects/[^\s/]+/secrets/\S+`,
	`(?:sm|berglas|azurekeyvault|awssm|awsssm|awssecrets|gcpsm|gcpsecretmanager|infisical|doppler|akeyless|conjur|keyvault|bws)://\S+`,
}, "|") + `)$`)

var (
	variablePattern = regexp.MustCompile(`\$\{[^}]*\}`)
	// credentialsInURL is an address whose password is a variable, which stands as \x00 there.
	credentialsInURL = regexp.MustCompile(`^[a-z][a-z0-9+.:-]*://[^\s:/@]*:\x00@[^\s@]+$`)
	aWord            = regexp.MustCompile(`[\pL\pN]`)
)

// isReference tells whether a text is no secret, but what one is put in the place of: a variable that Flux fills in, or the address of a
// secret.
func isReference(text string) bool {
	text = strings.TrimSpace(text)
	if isVariable(text) || secretReferences.MatchString(text) {
		return true
	}
	rest := variablePattern.ReplaceAllString(text, "\x00")
	return rest != text && (!aWord.MatchString(rest) || credentialsInURL.MatchString(rest))
}

// isReferenceIn tells the same of a value of a Secret, of data or stringData.
func isReferenceIn(field, text string) bool {
	if isReference(text) {
		return true
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	return field == "data" && err == nil && isReference(string(decoded))
}

// areReferences tells whether all values of a file of lines NAME=VALUE are.
func areReferences(content []byte) bool {
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if _, value, ok := strings.Cut(line, "="); !ok || value != "" && !isReference(strings.Trim(value, `"'`)) {
			return false
		}
	}
	return true
}
