// Package guises knows in which forms a secret may stand in a text: quoted, escaped, encoded, and broken into lines.
package guises

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Escaped returns the forms of a secret in JSON, in JSON that is a text in JSON, in Go's quotes and in URLs, each once. The secret itself
// is none of them.
func Escaped(secret string) []string {
	plain, short := inJSON(secret, true), inJSON(secret, false)
	forms := []string{plain, short, inJSON(plain, false), inJSON(short, false), strings.Trim(strconv.Quote(secret), `"`)}
	for _, form := range []string{url.QueryEscape(secret), url.PathEscape(secret), url.User(secret).String()} {
		forms = append(forms, form, lowerHex(form))
	}
	return unique(secret, forms)
}

// Encoded returns the forms of a secret in hexadecimal digits, and in base64, also in the middle of the base64 of a longer text, each once.
// A form in base64 is without the characters that depend on what stands beside the secret.
func Encoded(secret string) []string {
	digits := hex.EncodeToString([]byte(secret))
	forms := []string{digits, strings.ToUpper(digits)}
	for _, coding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, coding.EncodeToString([]byte(secret)))
		for before := range 3 {
			text := coding.EncodeToString(append(make([]byte, before, before+len(secret)), secret...))
			begin, end := (8*before+5)/6, len(text)
			if (before+len(secret))%3 != 0 {
				end--
			}
			forms = append(forms, text[min(begin, end):end])
		}
	}
	return unique(secret, forms)
}

// inJSON is a text as JSON has it between quotes; html tells whether < > & are escaped, too.
func inJSON(text string, html bool) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(html)
	if err := encoder.Encode(text); err != nil { // a text always has a form in JSON, and a buffer takes all
		return text
	}
	quoted := strings.TrimSpace(out.String())
	return quoted[1 : len(quoted)-1]
}

var percent = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[0-9A-F]{2}`) })

// lowerHex is a text of a URL with its escapes as other programs write them.
func lowerHex(text string) string { return percent().ReplaceAllStringFunc(text, strings.ToLower) }

// unique returns forms without the secret, empty ones and repetitions.
func unique(secret string, forms []string) []string {
	slices.Sort(forms)
	return slices.DeleteFunc(slices.Compact(forms), func(form string) bool { return form == "" || form == secret })
}

// Joined is a text without line breaks and other white space, also where an escape of JSON stands for it. It is for texts of any length.
func Joined(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r', '\f':
		case '\\':
			end := i
			for end < len(text) && text[end] == c {
				end++
			}
			if end < len(text) && strings.IndexByte("nrt", text[end]) >= 0 {
				i = end
				continue
			}
			out = append(out, text[i:end]...)
			i = end - 1
		default:
			out = append(out, c)
		}
	}
	return out
}

// In tells whether a text has one of the secrets, plain or in one of its forms, also broken into lines. Forms that are shorter than least
// do not count, because they may stand in any text.
func In(text string, least int, secrets ...string) bool {
	joined := string(Joined([]byte(text)))
	for _, secret := range secrets {
		for _, form := range slices.Concat([]string{secret}, Escaped(secret), Encoded(secret)) {
			together := string(Joined([]byte(form)))
			if len(form) >= least && (strings.Contains(text, form) || together != "" && strings.Contains(joined, together)) {
				return true
			}
		}
	}
	return false
}
