package secret

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// For every file of keys: it is refused without quoting its content, or its keys are the same after they are written and read again.
func FuzzKeys(f *testing.F) {
	keys := testKey(f)
	f.Add(keys.File())
	f.Add(append(bytes.ToLower(keys.File()), keys.File()...))
	f.Add([]byte("# created: yesterday\r\n\r\nAGE-SECRET-KEY-1QQ\n"))
	f.Add([]byte("AGE-PLUGIN-YUBIKEY-1QQ\n"))
	f.Add([]byte("-----BEGIN AGE ENCRYPTED FILE-----\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		keys, err := ParseKeys(content)
		if err != nil {
			for line := range strings.Lines(string(content)) {
				if line = strings.TrimSpace(line); len(line) > 20 && strings.Contains(err.Error(), line) {
					t.Errorf("the error quotes the file: %v", err)
				}
			}
			return
		}
		again, err := ParseKeys(keys.File())
		if err != nil || !slices.Equal(again.Recipients(), keys.Recipients()) {
			t.Errorf("%v are read again as %v, %v", keys, again, err)
		}
		if got := keys.For(keys.Recipients()); len(got) != len(keys) {
			t.Errorf("of %v these are theirs: %v", keys, got)
		}
	})
}
