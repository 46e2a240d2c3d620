package secret

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Somebody may write the private key where the public one belongs. No error shows it, however it is written.
func TestPrivateKeyAsRecipient(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	_, private, _ := strings.Cut(string(Keys{key}.File()), "\n")
	private = strings.TrimSpace(private)
	if !strings.HasPrefix(private, "AGE-SECRET-KEY-1") {
		t.Fatal("the file of a key does not begin as it should")
	}
	secretPart := strings.TrimPrefix(private, "AGE-SECRET-KEY-1")
	for _, recipient := range []string{private, strings.ToLower(private), " " + private, private[:40]} {
		_, encrypting := Encrypt([]byte("a: b\n"), Rule{Recipients: []string{recipient}})
		_, sealing := SealText([]byte("a"), []string{recipient})
		_, reading := ParseRules(NewRules([]string{key.Recipient(), recipient}))
		for what, err := range map[string]error{"encrypt": encrypting, "seal": sealing, "rules": reading} {
			if err == nil || strings.Contains(strings.ToUpper(err.Error()+diag.Hint(err)), secretPart[:10]) ||
				!strings.Contains(diag.Hint(err), "age1") {
				t.Errorf("%s for %d characters: %v (%s)", what, len(recipient), err, diag.Hint(err))
			}
		}
	}
	if _, err := SealText([]byte("a"), []string{"age1x"}); err == nil || !strings.Contains(err.Error(), `"age1x" is no recipient`) {
		t.Errorf("got %v", err)
	}
}
