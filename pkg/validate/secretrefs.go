package validate

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// secretReferences are texts that say where a secret is, and are none: something fills them in before anybody reads them. Of 1Password,
// vals and helm-secrets, bank-vaults, argocd-vault-plugin, the clouds' stores and other programs that inject secrets.
var secretReferences = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`op://[^\s/][^/\n]*/(?:[^\n]*\S)?`,
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

// publicBlock is the first line of a key or a certificate that everybody may see.
var publicBlock = regexp.MustCompile(`^-----BEGIN ((?:[A-Z0-9]+ )*PUBLIC KEY(?: BLOCK)?|CERTIFICATE)-----\r?\n`)

// isPublic tells whether a text is nothing but public keys and certificates.
func isPublic(text string) bool {
	if !strings.HasPrefix(text, "-----BEGIN ") {
		return false
	}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		m := publicBlock.FindStringSubmatch(text)
		if m == nil {
			return false
		}
		_, rest, ended := strings.Cut(text[len(m[0]):], "-----END "+m[1]+"-----")
		if !ended {
			return false
		}
		text = rest
	}
	return true
}

// isReference tells whether a text is no secret: a variable that Flux fills in, the address of a secret, or what everybody may see.
func isReference(text string) bool {
	text = strings.TrimSpace(text)
	if isVariable(text) || secretReferences.MatchString(text) || isPublic(text) {
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
