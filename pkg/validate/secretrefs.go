package validate

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// secretReferences matches texts that are no secrets but references to secrets, which a program replaces later: 1Password, vals and
// helm-secrets, bank-vaults, argocd-vault-plugin, the secret stores of clouds, and others.
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
	// credentialsInURL matches an address whose password is a variable, after the variable was replaced by \x00.
	credentialsInURL = regexp.MustCompile(`^[a-z][a-z0-9+.:-]*://[^\s:/@]*:\x00@[^\s@]+$`)
	aWord            = regexp.MustCompile(`[\pL\pN]`)
)

// publicBlock matches the first line of a public key or a certificate.
var publicBlock = regexp.MustCompile(`^-----BEGIN ((?:[A-Z0-9]+ )*PUBLIC KEY(?: BLOCK)?|CERTIFICATE)-----\r?\n`)

// isPublic tells whether a text consists of public keys and certificates.
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

// isReference tells whether a text is no secret: a variable that Flux fills in, a reference to a secret, or a public key or certificate.
func isReference(text string) bool {
	text = strings.TrimSpace(text)
	if isVariable(text) || secretReferences.MatchString(text) || isPublic(text) {
		return true
	}
	rest := variablePattern.ReplaceAllString(text, "\x00")
	return rest != text && (!aWord.MatchString(rest) || credentialsInURL.MatchString(rest))
}

// isReferenceIn is isReference for a value in the field data or stringData of a Secret.
func isReferenceIn(field, text string) bool {
	if isReference(text) {
		return true
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	return field == "data" && err == nil && isReference(string(decoded))
}

// areReferences tells whether isReference holds for all values of a file of lines NAME=VALUE.
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
