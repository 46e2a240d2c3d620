package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// maxText bounds the result of OpenText, in bytes. A file of the fleet repo is about a thousandth of it.
const maxText = 16 << 20

// SealText encrypts a text as a whole, whatever is in it. The age program decrypts it as well.
func SealText(text []byte, recipients []string) ([]byte, error) {
	to := make([]age.Recipient, 0, len(recipients))
	for _, r := range recipients {
		recipient, err := recipientOf(r)
		if err != nil {
			return nil, err
		}
		to = append(to, recipient)
	}
	var out bytes.Buffer
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, to...)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = errors.Join(w.Close(), armored.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return out.Bytes(), nil
}

// OpenText decrypts what SealText has made.
func OpenText(content []byte, keys Keys) ([]byte, error) {
	identities := make([]age.Identity, 0, len(keys))
	for _, k := range keys {
		identities = append(identities, k.identity)
	}
	if len(identities) == 0 {
		return nil, ErrNoKey
	}
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(content)), identities...)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, ErrNoKey
	}
	if err != nil {
		return nil, diag.Wrap("decrypt", err, "it is no file that `fleetctl secret edit` has kept")
	}
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return nil, diag.Wrap("decrypt", err, "it is no file that `fleetctl secret edit` has kept")
	}
	if len(text) > maxText { // a part of it would be taken for what is to become of the Secret
		return nil, diag.Errorf("shorten the file: `age --decrypt` shows it whole", "decrypt: the text has more than %d MiB", maxText>>20)
	}
	return text, nil
}
