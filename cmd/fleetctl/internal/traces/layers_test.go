package traces

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// A canary is found in what is encoded and compressed, one in the other, wherever that stands, and nothing is found where it is not.
func TestLayers(t *testing.T) {
	const canary = `canary+/&<>"\4f1e%9a0c-7723-b5d8`
	tr, other := Of(canary), Of(strings.Map(func(r rune) rune { return r ^ 1 }, canary))
	text := strings.Repeat("what is before it, which compresses well\n", 40) + "key: " + canary + "\n" + strings.Repeat("and behind\n", 40)
	standard, forURLs := base64.StdEncoding, base64.URLEncoding
	zipped := packed(t, text, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	deflated := packed(t, text, func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) })
	helm := standard.EncodeToString([]byte(standard.EncodeToString(zipped))) // as a Secret of Helm has it
	secret, err := json.Marshal(map[string]any{"kind": "Secret", "data": map[string]string{"release": helm, "z": "eA=="}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"plain": []byte(text), "gzip": zipped, "zlib": deflated,
		"gzip in the middle":       bytes.Join([][]byte{[]byte("\x1f\x8b\x08 is how it begins"), zipped, []byte("more")}, nil),
		"gzip that is cut off":     zipped[:len(zipped)-4],
		"gzip in gzip":             packed(t, string(zipped), func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		"gzip in base64":           []byte("data: " + standard.EncodeToString(zipped) + "\n"),
		"gzip in base64 for URLs":  []byte(forURLs.EncodeToString(zipped)),
		"a Secret of Helm":         secret,
		"base64 in base64":         []byte(standard.EncodeToString([]byte("export KEY=" + standard.EncodeToString([]byte(text))))),
		"base64, without padding":  []byte(`"` + base64.RawStdEncoding.EncodeToString(append(zipped, 'x')) + `"`),
		"base64, other characters": []byte("x " + base64.RawURLEncoding.EncodeToString(append(zipped, "xy"...)) + "="),
	} {
		if !tr.Within(content) {
			t.Errorf("%s: it is not found", name)
		}
		if other.Within(content) {
			t.Errorf("%s: it finds what is not there", name)
		}
		if name != "plain" && tr.In(content) {
			t.Errorf("%s: it lies in no layer", name)
		}
	}
	for _, content := range []string{"", "x", "\x1f\x8b\x08", "x\x9c", strings.Repeat("A", 21), strings.Repeat("ABCD", 10)} {
		if tr.Within([]byte(content)) {
			t.Errorf("it finds what is not there: %q", content)
		}
	}
}

func packed(t *testing.T, text string, writer func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var out bytes.Buffer
	w := writer(&out)
	_, err := io.WriteString(w, text)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
