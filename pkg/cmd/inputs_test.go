package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// A token is what a server has given out: one line of plain text. Anything else is refused before it is sent anywhere, and no error quotes
// it.
func TestReadToken(t *testing.T) {
	const secret = "glpat-S3cr3t"
	for name, content := range map[string]string{
		"a second line":         secret + "\nmore",
		"a line break of DOS":   secret + "\r\nmore",
		"a tab":                 secret + "\t" + secret,
		"an escape sequence":    "\x1b[31m" + secret,
		"a null byte":           secret + "\x00",
		"a C1 control":          secret + "\u0085" + secret,
		"a line separator":      secret + "\u2028" + secret,
		"a mark of byte order":  "\ufeff" + secret,
		"a bidirectional mark":  secret + "\u202e",
		"no text":               secret + "\xff\xfe",
		"UTF-16":                "\xff\xfes\x00e\x00",
		"a no-break space":      secret + "\u00a0" + secret,
		"a space of zero width": secret + "\u200b",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			refused := func(from, got string, err error) {
				t.Helper()
				if err == nil || got != "" || !strings.Contains(err.Error(), from) || strings.Contains(err.Error(), secret) {
					t.Errorf("from %s: %q, %v", from, got, err)
				}
			}
			got, err := readTokenFrom(file, "flux-token-file", fluxTokenVariable)
			refused(file, got, err)
			if strings.Contains(content, "\x00") {
				return // no variable of the environment can hold it
			}
			t.Setenv(fluxTokenVariable, content)
			t.Setenv(tokenVariable, content)
			got, err = readTokenFrom("", "flux-token-file", fluxTokenVariable)
			refused(fluxTokenVariable, got, err)
			got, err = readToken("")
			refused(tokenVariable, got, err)
		})
	}
	t.Run("as echo writes it", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(secret+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readToken(file); err != nil || got != secret {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("a variable that ends in a line break", func(t *testing.T) {
		t.Setenv(tokenVariable, secret+"\n")
		if got, err := readToken(""); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q, %v", got, err)
		}
	})
	t.Run("in any script", func(t *testing.T) {
		t.Setenv(tokenVariable, "p4sswörd with spaces 密")
		if got, err := readToken(""); err != nil || got != "p4sswörd with spaces 密" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A file that a flag names, and standard input, are read whole or not at all: a part of a value would be encrypted and committed.
func TestReadInput(t *testing.T) {
	const most = 1 << 20
	for name, size := range map[string]int{"at the limit": most, "beyond it": most + 1} {
		t.Run(name, func(t *testing.T) {
			content := strings.Repeat("x", size)
			file := filepath.Join(t.TempDir(), "value")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			f := &factory{streams: ui.Streams{In: strings.NewReader(content)}}
			for _, from := range []string{file, "-"} {
				got, err := readInput(f, from, "a value of the Secret", "--from-file")
				if refused := errors.Is(err, within.ErrTooLarge); refused != (size > most) || refused != (err != nil) {
					t.Errorf("from %s: error %v", from, err)
				}
				if err == nil && string(got) != content {
					t.Errorf("from %s: %d bytes", from, len(got))
				}
				if err != nil && (len(got) > 0 || !strings.Contains(err.Error(), "1 MiB") || diag.Hint(err) != "give --from-file a smaller file") {
					t.Errorf("from %s: %d bytes, %v with the hint %q", from, len(got), err, diag.Hint(err))
				}
			}
		})
	}
}
