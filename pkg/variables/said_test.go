package variables

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"testing"
)

// A command that fails may say its output in another form. Nobody is shown that.
func TestWithoutTellsNoFormOfTheOutput(t *testing.T) {
	const key = `canaryKey+/&<>"qwertzuiop`
	profile := "[default]\naws_secret_access_key = " + key + "\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(profile))
	for name, tc := range map[string]struct{ output, said string }{
		"base64":               {key, base64.StdEncoding.EncodeToString([]byte(key))},
		"base64 in a text":     {key, base64.StdEncoding.EncodeToString([]byte("key=" + key + ";"))},
		"base64 of a URL":      {key, base64.RawURLEncoding.EncodeToString([]byte("k=" + key))},
		"base64, wrapped":      {key, "canary: " + encoded[:30] + "\n" + encoded[30:]},
		"in a URL":             {key, "GET https://sts/?key=" + url.QueryEscape(key)},
		"in a path":            {key, "GET https://sts/" + url.PathEscape(key)},
		"hexadecimal":          {key, strings.ToUpper(hex.EncodeToString([]byte(key)))},
		"JSON":                 {key, `{"key":"canaryKey+/\u0026\u003c\u003e\"qwertzuiop"}`},
		"two lines":            {key, key[:9] + "\n  " + key[9:]},
		"the plain key":        {encoded, "cannot use " + key},
		"the profile, wrapped": {encoded, encoded[:40] + "\n" + encoded[40:]},
	} {
		got := without("failed: "+tc.said, tc.output)
		if strings.Contains(got, "canary") || strings.Contains(got, tc.said) || strings.Contains(got, "qwertzuiop") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := without("the session has expired: aws sso login", encoded); got != "the session has expired: aws sso login" {
		t.Errorf("%q", got)
	}
}
