package secret

import (
	"bytes"
	"errors"
	"testing"
)

func TestText(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("a: [\x00 not YAML")
	sealed, err := SealText(text, []string{other.Recipient(), key.Recipient()})
	if err != nil || bytes.Contains(sealed, []byte("not YAML")) {
		t.Fatalf("%q, %v", sealed, err)
	}
	if got, err := OpenText(sealed, Keys{key}); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%q, %v", got, err)
	}
	stranger, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range []Keys{nil, {stranger}} {
		if _, err := OpenText(sealed, keys); !errors.Is(err, ErrNoKey) {
			t.Error(err)
		}
	}
	if _, err := OpenText([]byte("text"), Keys{key}); err == nil || errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	if _, err := SealText(text, []string{"nobody"}); err == nil {
		t.Error("it was encrypted for nobody")
	}
}

// A text that is too large is refused. A part of it would become what is to stand in the Secret.
func TestOpenLargeText(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for size, opens := range map[int]bool{maxText: true, maxText + 1: false} {
		sealed, err := SealText(make([]byte, size), []string{key.Recipient()})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := OpenText(sealed, Keys{key}); (err == nil) != opens || err == nil && len(text) != size {
			t.Errorf("%d bytes: %d bytes, %v", size, len(text), err)
		}
	}
}
