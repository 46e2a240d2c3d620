package traces

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// A canary is found in each form, also where only a part of it is shown, and nothing is found where it is not.
func TestTraces(t *testing.T) {
	const canary = `canary+/&<>"\4f1e%9a0c-7723-b5d8`
	tr := Of(canary)
	quoted, err := json.Marshal(canary)
	if err != nil {
		t.Fatal(err)
	}
	profile := base64.StdEncoding.EncodeToString([]byte("[default]\naws_secret_access_key = " + canary + "\nregion = eu\n"))
	wrapped := regexp.MustCompile(`.{10}`).ReplaceAllString(profile, "$0\n    ")
	for name, text := range map[string]string{
		"plain": canary, "a part": canary[9:26], "JSON": string(quoted),
		"URL": "https://x/?k=" + url.QueryEscape(canary), "path": url.PathEscape(canary),
		"hexadecimal": hex.EncodeToString([]byte(canary)), "HEXADECIMAL": strings.ToUpper(hex.EncodeToString([]byte(canary))),
		"base64": profile, "base64, wrapped": wrapped, "base64, wrapped, in JSON": strings.ReplaceAll(wrapped, "\n    ", `\n`),
		"base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte("x" + canary)), "two lines": canary[:11] + "\n" + canary[11:],
	} {
		if !tr.In([]byte("before " + text + " after")) {
			t.Errorf("%s is not found: %s", name, text)
		}
	}
	other := Of(strings.Map(func(r rune) rune { return r ^ 1 }, canary))
	for _, text := range []string{profile, wrapped, canary, string(quoted), ""} {
		if other.In([]byte(text)) {
			t.Errorf("it finds what is not there: %s", text)
		}
	}
}
