// Package secret encrypts files of the fleet repo in the format of SOPS, with age keys. The sops program and Flux can read its files, and
// it can read theirs. Values are encrypted one by one, so that a review shows which values changed. A MAC over all values proves that
// they were not changed without a key.
//
// SOPS's own library is not used, because it has the SDKs of five clouds as dependencies, and takes a tenth of a second before main. The
// format is simple, and tests compare this package with files of sops.
package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Key is a private age key. It prints as its public half.
type Key struct{ identity *age.X25519Identity }

// Keys are private keys, the one to encrypt with first.
type Keys []Key

// NewKey makes a key.
func NewKey() (Key, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return Key{}, fmt.Errorf("make an age key: %w", err)
	}
	return Key{identity}, nil
}

// ParseKeys reads a file as age-keygen writes it. No error quotes it.
func ParseKeys(content []byte) (Keys, error) {
	identities, err := age.ParseIdentities(bytes.NewReader(content))
	if err != nil {
		return nil, errors.New("not a file of age keys: lines that begin with AGE-SECRET-KEY-1 were expected")
	}
	keys := make(Keys, 0, len(identities))
	for _, i := range identities {
		x, ok := i.(*age.X25519Identity)
		if !ok {
			return nil, errors.New("the file has an age key of an unknown kind: fleetctl knows keys that begin with AGE-SECRET-KEY-1")
		}
		keys = append(keys, Key{x})
	}
	return keys, nil
}

// Recipient is the public half, age1…: it may be known to everybody.
func (k Key) Recipient() string { return k.identity.Recipient().String() }

// String keeps the key out of logs.
func (k Key) String() string { return k.Recipient() }

// GoString keeps the key out of %#v.
func (k Key) GoString() string { return k.Recipient() }

// Recipients are the public halves.
func (ks Keys) Recipients() []string {
	out := make([]string, 0, len(ks))
	for _, k := range ks {
		out = append(out, k.Recipient())
	}
	return out
}

// For returns the keys whose public half is among recipients, in the order of ks.
func (ks Keys) For(recipients []string) Keys {
	return slices.DeleteFunc(slices.Clone(ks), func(k Key) bool { return !slices.Contains(recipients, k.Recipient()) })
}

// File is the content of a private file with the keys, as age-keygen writes it and Flux reads it.
func (ks Keys) File() []byte {
	var out bytes.Buffer
	for _, k := range ks {
		fmt.Fprintf(&out, "# public key: %s\n%s\n", k.Recipient(), k.identity)
	}
	return out.Bytes()
}

// wrap encrypts a data key for one recipient.
func wrap(dataKey []byte, recipient string) (string, error) {
	to, err := recipientOf(recipient)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	armored := armor.NewWriter(&out)
	w, err := age.Encrypt(armored, to)
	if err == nil {
		_, err = w.Write(dataKey)
	}
	if err == nil {
		err = errors.Join(w.Close(), armored.Close())
	}
	if err != nil {
		return "", fmt.Errorf("encrypt for %s: %w", recipient, err)
	}
	return out.String(), nil
}

// errPrivate is the error about a private age key where a public one belongs. It does not quote the key.
var errPrivate = diag.Errorf("write the public key instead, age1…: `age-keygen -y FILE` prints it. Whoever has read this place has the "+
	"private key, so make a new one with `fleetctl secret rotate --new-key`", "a recipient is a private age key")

func isPrivate(text string) bool { return strings.Contains(strings.ToUpper(text), "AGE-SECRET-KEY-") }

// recipientOf reads a public age key. No error quotes a private one, which somebody may have written in its place.
func recipientOf(text string) (*age.X25519Recipient, error) {
	to, err := age.ParseX25519Recipient(text)
	switch {
	case err == nil:
		return to, nil
	case isPrivate(text):
		return nil, errPrivate
	}
	return nil, diag.Errorf("write a public age key, age1…", "%.80q is no recipient: %v", text, err)
}

// unwrap decrypts a data key with whichever of the keys can.
func unwrap(wrapped []wrappedKey, keys Keys) ([]byte, error) {
	identities := make([]age.Identity, 0, len(keys))
	for _, k := range keys {
		identities = append(identities, k.identity)
	}
	recipients := make([]string, 0, len(wrapped))
	for _, w := range wrapped {
		recipients = append(recipients, w.Recipient)
		if len(identities) == 0 {
			continue
		}
		r, err := age.Decrypt(armor.NewReader(strings.NewReader(w.Enc)), identities...)
		if err != nil {
			continue
		}
		key, err := io.ReadAll(io.LimitReader(r, dataKeySize+1))
		if err == nil && len(key) == dataKeySize {
			return key, nil
		}
	}
	return nil, diag.Wrap("decrypt", fmt.Errorf("%w: it is encrypted for %s", ErrNoKey, strings.Join(recipients, ", ")),
		"give the file with that key: --age-key-file, or the environment variable SOPS_AGE_KEY_FILE")
}

// ErrNoKey says that none of the keys at hand decrypts a file.
var ErrNoKey = errors.New("no private key for it is known here")

// now is when a file was last encrypted, as SOPS writes it.
func now() string { return time.Now().UTC().Format(time.RFC3339) }
