package validate

import (
	"strings"
	"testing"
)

// What a shape is looked for by must not hide any spelling that its pattern knows. The secrets are put together here: scanners read this
// repo, too.
func TestSecretsInClear(t *testing.T) {
	key := strings.Repeat("aB3/", 10)
	for text, what := range map[string]string{
		"AWS_SECRET_ACCESS_KEY=" + key:                         "a secret key of AWS",
		"aws_secret_access_key = " + key:                       "a secret key of AWS",
		"awsSecretAccessKey: \"" + key + "\"":                  "a secret key of AWS",
		"  SecretAccessKey: " + key:                            "a secret key of AWS",
		`{"secretAccessKey":"` + key + `"}`:                    "a secret key of AWS",
		"secret_access_key: '" + key + "'":                     "a secret key of AWS",
		"gho_" + strings.Repeat("a1", 18):                      "a token of GitHub",
		"ghs_" + strings.Repeat("a1", 20):                      "a token of GitHub",
		"AGE-SECRET-KEY-1" + strings.Repeat("QP", 29):          "a key of age",
		"-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + key:     "a private key",
		"glpat-" + strings.Repeat("x", 20):                     "a token of GitLab",
		"token: hvs." + strings.Repeat("C", 30):                "a token of Vault",
		"dckr_pat_" + strings.Repeat("d", 27):                  "a token of Docker Hub",
		"AIza" + strings.Repeat("e", 35):                       "a key of Google",
		"xoxb-" + strings.Repeat("1", 11) + "-" + key[:3]:      "",
		"the access keys of success: secret access key " + key: "",
		"secretAccessKey: ${AWS_SECRET_ACCESS_KEY}":            "",
		"secretAccessKey: {name: aws, key: secretAccessKey}":   "",
	} {
		found := secretsIn(&file{path: "x", content: []byte(text)})
		switch {
		case what == "" && len(found) > 0:
			t.Errorf("%q: a secret was found in it: %s", text, found[0].Summary)
		case what != "" && (len(found) != 1 || !strings.Contains(found[0].Summary, what+",")):
			t.Errorf("%q: not found to be %s: %v", text, what, found)
		}
	}
}
