package secret

import (
	"bytes"
	"errors"
	"testing"

	"filippo.io/age"
)

func TestSeal(t *testing.T) {
	mine, older, strange := newKeys(t), newKeys(t), newKeys(t)
	content := []byte("what a management cluster manages")
	sealed, err := append(mine, older...).Seal(content)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, content) {
		t.Error("it is readable")
	}
	if got, err := mine.Open(sealed); err != nil || !bytes.Equal(got, content) {
		t.Errorf("opened: %q, %v", got, err)
	}
	if _, err := strange.Open(sealed); !errors.Is(err, ErrNoKey) {
		t.Errorf("with a strange key: %v", err)
	}
	if _, err := (Keys{}).Open(sealed); !errors.Is(err, ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := older.Open(sealed); !errors.Is(err, ErrForged) { // it cannot tell who made it
		t.Errorf("with a key that it is encrypted for and not made with: %v", err)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if got, err := mine.Open(changed); err == nil && !bytes.Equal(got, content) {
			t.Fatalf("a changed byte %d gives %q", i, got)
		}
	}
}

// The public half of the key stands in the fleet repo: whoever reads that can encrypt for it, and is not believed.
func TestSealedByAStranger(t *testing.T) {
	mine, strange := newKeys(t), newKeys(t)
	byStranger, err := append(strange, mine...).Seal([]byte("make this"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Open(byStranger); !errors.Is(err, ErrForged) {
		t.Errorf("sealed by another key: %v", err)
	}
	for _, plain := range []string{
		"make this", "fleetctl-sealed-1\nmake this", "fleetctl-sealed-1 " + mine[0].Recipient() + " \nmake this",
		"fleetctl-sealed-1 " + mine[0].Recipient() + " 00\nmake this",
	} {
		var out bytes.Buffer
		w, err := age.Encrypt(&out, mine[0].identity.Recipient())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(plain)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := mine.Open(out.Bytes()); !errors.Is(err, ErrForged) {
			t.Errorf("%q: %v", plain, err)
		}
	}
}

func newKeys(t *testing.T) Keys {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return Keys{key}
}
