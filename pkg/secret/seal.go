package secret

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// sealedBy begins the line before a sealed content: format, public key, and the code over the content that only who has the private key
// can make.
const sealedBy = "fleetctl-sealed-1"

// ErrForged says that a file was encrypted for a key by somebody who does not have that key.
var ErrForged = errors.New("it was not made with a key that is known here")

// Seal encrypts content for all keys. Only a holder of one of the keys can read it, and only a holder of the first key can have made it.
// Encryption alone does not give the second property: the public half of a key is in the fleet repo, so anybody could encrypt for it.
func (ks Keys) Seal(content []byte) ([]byte, error) {
	if len(ks) == 0 {
		return nil, fmt.Errorf("seal: %w", ErrNoKey)
	}
	to := make([]age.Recipient, 0, len(ks))
	for _, k := range ks {
		to = append(to, k.identity.Recipient())
	}
	code, err := ks[0].code(content)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s %s %s\n", sealedBy, ks[0].Recipient(), hex.EncodeToString(code))
	if err == nil {
		_, err = w.Write(content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return out.Bytes(), nil
}

// Open returns the content that Seal has sealed. Errors: ErrNoKey if none of the keys can decrypt it, ErrForged if none of the keys has
// sealed it.
func (ks Keys) Open(sealed []byte) ([]byte, error) {
	identities := make([]age.Identity, 0, len(ks))
	for _, k := range ks {
		identities = append(identities, k.identity)
	}
	if len(identities) == 0 {
		return nil, ErrNoKey
	}
	r, err := age.Decrypt(bytes.NewReader(sealed), identities...)
	if _, none := errors.AsType[*age.NoIdentityMatchError](err); none {
		return nil, ErrNoKey
	}
	var plain []byte
	if err == nil {
		plain, err = io.ReadAll(r) // as long as what is sealed, which is in memory
	}
	if err != nil {
		return nil, diag.Wrap("decrypt", err, "the file is damaged, or none that fleetctl has made")
	}
	line, content, found := bytes.Cut(plain, []byte("\n"))
	fields := strings.Fields(string(line))
	if !found || len(fields) != 3 || fields[0] != sealedBy {
		return nil, ErrForged
	}
	given, err := hex.DecodeString(fields[2])
	if err != nil {
		return nil, ErrForged
	}
	for _, k := range ks {
		if k.Recipient() != fields[1] {
			continue
		}
		if code, err := k.code(content); err != nil || !hmac.Equal(code, given) {
			return nil, ErrForged
		}
		return content, nil
	}
	return nil, ErrForged
}

// code is what only who has the key can say of content.
func (k Key) code(content []byte) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, []byte(k.identity.String()), nil, sealedBy, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(content)
	return mac.Sum(nil), nil
}
