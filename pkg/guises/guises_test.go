package guises

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

const canary = `canaryKey+/&<>"\qwertzuiop%é`

// wrapped breaks a text into lines, as `base64` and MIME do.
func wrapped(text, end string) string {
	return regexp.MustCompile(`.{12}`).ReplaceAllString(text, "$0"+end)
}

// Shown are texts with the secret in each of its forms.
func shown(secret string) map[string]string {
	quoted, _ := json.Marshal(map[string]string{"key": secret})
	twice, _ := json.Marshal(string(quoted))
	standard, forURLs := base64.StdEncoding, base64.URLEncoding
	all := map[string]string{
		"plain": secret, "JSON": string(quoted), "JSON in JSON": string(twice), "Go": fmt.Sprintf("%q", secret),
		"query": url.Values{"key": {secret}}.Encode(), "query, lower": lowerHex(url.QueryEscape(secret)), "path": url.PathEscape(secret),
		"user": url.UserPassword("me", secret).String(), "hexadecimal": hex.EncodeToString([]byte(secret)),
		"HEXADECIMAL": fmt.Sprintf("%X", secret), "lines": wrapped(secret, "\n  "),
		"base64": standard.EncodeToString([]byte(secret)), "base64, wrapped": wrapped(standard.EncodeToString([]byte(secret)), "\n"),
		"base64, CRLF":             wrapped(standard.EncodeToString([]byte(secret)), "\r\n"),
		"base64, wrapped, in JSON": wrapped(standard.EncodeToString([]byte(secret)), `\n`),
		"base64, wrapped, in YAML": wrapped(standard.EncodeToString([]byte(secret)), "\n      "),
		"hexadecimal, wrapped":     wrapped(hex.EncodeToString([]byte(secret)), "\n"),
	}
	for n := range 4 {
		text := []byte(strings.Repeat("k", n) + secret + strings.Repeat("z", 3-n))
		all[fmt.Sprintf("base64 after %d", n)] = standard.EncodeToString(text)
		all[fmt.Sprintf("base64 for URLs after %d", n)] = forURLs.EncodeToString(text)
	}
	return all
}

// A secret is found in each of its forms, whatever its length, and only there.
func TestIn(t *testing.T) {
	for _, secret := range []string{canary, canary[:20], canary[:19], canary[:18], "plainAndLong1234"} {
		for name, text := range shown(secret) {
			if !In("failed: "+text+" (exit 1)", 8, secret) {
				t.Errorf("%s of %q is not found: %s", name, secret, text)
			}
			for at, shift := range []int{1, len(secret) / 2} { // of another secret nothing is found
				other := []byte(secret)
				other[shift]++
				if In(text, 8, string(other)) {
					t.Errorf("%s of %q is found (%d), and is not there: %s", name, other, at, text)
				}
			}
		}
	}
	if In("the session has expired: aws sso login", 8, canary, "") {
		t.Error("something is found in nothing")
	}
}
