package secret

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// metadataField is the field with SOPS's metadata of a file.
const metadataField = "sops"

// metadata is the part of SOPS's metadata that this package uses. Files with other kinds of keys, or other rules, are refused.
type metadata struct {
	Age               []wrappedKey `yaml:"age"`
	LastModified      string       `yaml:"lastmodified"`
	MAC               string       `yaml:"mac"`
	EncryptedRegex    string       `yaml:"encrypted_regex,omitempty"`
	MACOnlyEncrypted  bool         `yaml:"mac_only_encrypted,omitempty"`
	UnencryptedSuffix string       `yaml:"unencrypted_suffix,omitempty"`
	Version           string       `yaml:"version"`
}

// wrappedKey is the data key, encrypted for one recipient.
type wrappedKey struct {
	Recipient string `yaml:"recipient"`
	Enc       string `yaml:"enc"`
}

// formatVersion is the version of SOPS whose format this is.
const formatVersion = "3.13.3"

// macOnlyEncryptedSeed is the beginning of the MAC if SOPS computes it only over encrypted values.
var macOnlyEncryptedSeed = []byte{
	0x8a, 0x3f, 0xd2, 0xad, 0x54, 0xce, 0x66, 0x52, 0x7b, 0x10, 0x34, 0xf3, 0xd1, 0x47, 0xbe, 0x0b,
	0x0b, 0x97, 0x5b, 0x3b, 0xf4, 0x4f, 0x72, 0xc6, 0xfd, 0xad, 0xec, 0x81, 0x76, 0xf2, 0x7d, 0x69,
}

// Recipients are the public keys that a file is encrypted for.
func Recipients(content []byte) ([]string, error) {
	f, err := parseEncrypted(content)
	if err != nil {
		return nil, err
	}
	return f.recipients(), nil
}

// Encrypt encrypts the fields of a YAML file that a rule names. The file must hold one document, and not be encrypted yet. Comments
// stay, those of encrypted fields encrypted too.
func Encrypt(content []byte, rule Rule) ([]byte, error) {
	f, err := parse(content)
	if err != nil {
		return nil, err
	}
	if f.meta != nil {
		return nil, diag.Errorf("`fleetctl secret edit` changes it", "encrypt: the file is encrypted already")
	}
	f.meta = &metadata{EncryptedRegex: rule.EncryptedRegex}
	if len(rule.Recipients) == 0 {
		return nil, diag.Errorf("name public keys under age in "+RulesFile, "encrypt: there is no recipient")
	}
	key := make([]byte, dataKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return f.encrypt(key, rule.Recipients, nil)
}

// Decrypt returns the file in clear. It fails if none of the keys fits, or if the file was changed after its encryption.
func Decrypt(content []byte, keys Keys) ([]byte, error) {
	f, _, err := decrypt(content, keys)
	if err != nil {
		return nil, err
	}
	return f.bytes()
}

// DecryptObject returns a manifest in clear as Flux does: after kustomize has changed its order and its labels, so that its MAC fits no
// more. What it returns proves nothing about who wrote it.
func DecryptObject(content []byte, keys Keys) ([]byte, error) {
	f, _, err := decryptValues(content, keys)
	if err != nil {
		return nil, err
	}
	return f.bytes()
}

// Update replaces the content of a file by an edited text. It keeps the ciphertext of unchanged values, so that the difference of two
// revisions shows which values changed.
func Update(content, edited []byte, keys Keys) ([]byte, error) {
	old, key, err := decrypt(content, keys)
	if err != nil {
		return nil, err
	}
	f, err := parse(edited)
	if err != nil {
		return nil, err
	}
	if f.meta != nil {
		return nil, diag.Errorf("leave it out: fleetctl writes it", "encrypt: the field %s is of SOPS itself", metadataField)
	}
	f.meta = old.meta
	return f.encrypt(key, nil, old.seen)
}

// Rotate encrypts a file with a new data key, for the given recipients. The same fields stay encrypted.
func Rotate(content []byte, keys Keys, recipients []string) ([]byte, error) {
	if len(recipients) == 0 {
		return nil, diag.Errorf("name public keys under age in "+RulesFile, "encrypt: there is no recipient")
	}
	f, _, err := decrypt(content, keys)
	if err != nil {
		return nil, err
	}
	key := make([]byte, dataKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	return f.encrypt(key, recipients, nil)
}

// file is a parsed file.
type file struct {
	top  *yaml.Node
	meta *metadata // nil in clear
	// seen maps field and value, as decrypted, to what stood in the file.
	seen map[string]string

	regex *regexp.Regexp
	mac   hash.Hash
}

// parse reads a file, in clear or encrypted, and takes the metadata off.
func parse(content []byte) (*file, error) {
	documents, err := yamledit.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	if len(documents) != 1 || documents[0].Kind != yaml.MappingNode {
		return nil, diag.Errorf("put each object into a separate file", "file has to hold one object")
	}
	f := &file{top: documents[0], seen: map[string]string{}}
	for i := 0; i+1 < len(f.top.Content); i += 2 {
		if f.top.Content[i].Value != metadataField {
			continue
		}
		f.meta = &metadata{}
		decoded := f.top.Content[i+1]
		if err := decoded.Decode(f.meta); err != nil {
			return nil, fmt.Errorf("read the metadata of SOPS: %w", err)
		}
		if other := othersRules(decoded); other != "" {
			return nil, diag.Errorf("use the sops program for this file", "file was encrypted with %q, which is not supported here", other)
		}
		f.top.Content = slices.Delete(f.top.Content, i, i+2)
		break
	}
	return f, nil
}

// othersRules names what in a file's metadata is not in use here, or "".
func othersRules(meta *yaml.Node) string {
	known := []string{"age", "lastmodified", "mac", "encrypted_regex", "mac_only_encrypted", "unencrypted_suffix", "version"}
	for i := 0; i+1 < len(meta.Content); i += 2 {
		name, value := meta.Content[i].Value, meta.Content[i+1]
		empty := len(value.Content) == 0 && (value.Kind != yaml.ScalarNode || value.Value == "" || value.ShortTag() == "!!null")
		if !slices.Contains(known, name) && !empty {
			return name
		}
	}
	return ""
}

func parseEncrypted(content []byte) (*file, error) {
	f, err := parse(content)
	if err == nil && f.meta == nil {
		err = diag.Errorf("`fleetctl secret encrypt` encrypts it", "file is not encrypted")
	}
	return f, err
}

func (f *file) recipients() []string {
	out := make([]string, 0, len(f.meta.Age))
	for _, w := range f.meta.Age {
		out = append(out, w.Recipient)
	}
	return out
}

// decrypt returns the file in clear, and its data key. It refuses a file that was changed since.
func decrypt(content []byte, keys Keys) (*file, []byte, error) {
	f, key, err := decryptValues(content, keys)
	if err != nil {
		return nil, nil, err
	}
	wanted, _, err := open(key, f.meta.MAC, f.meta.LastModified)
	if err != nil || subtle.ConstantTimeCompare([]byte(strings.ToUpper(wanted)), []byte(f.sum())) != 1 {
		return nil, nil, diag.Errorf("take the file from a revision that decrypts", "decrypt: the file was changed after it was encrypted")
	}
	return f, key, nil
}

// decryptValues is decrypt without the look at the MAC.
func decryptValues(content []byte, keys Keys) (*file, []byte, error) {
	f, err := parseEncrypted(content)
	if err != nil {
		return nil, nil, err
	}
	key, err := unwrap(f.meta.Age, keys)
	if err != nil {
		return nil, nil, err
	}
	if err := f.prepare(); err != nil {
		return nil, nil, err
	}
	if err := f.walk(f.top, nil, func(n *yaml.Node, field string, secret bool) error { return f.openNode(key, n, field, secret) },
		func(text, field string) (string, error) {
			plain, _, err := open(key, text, field)
			if errors.Is(err, errNotEncrypted) {
				return text, nil // SOPS once left comments in clear
			}
			f.seen[field+"\x00"+typeComment+"\x00"+plain] = text
			return plain, err
		}); err != nil {
		return nil, nil, diag.Wrap("decrypt", err, "take the file from a revision that decrypts")
	}
	return f, key, nil
}

// openNode decrypts one value, and counts it.
func (f *file) openNode(key []byte, n *yaml.Node, field string, secret bool) error {
	plain, kind, err := scalar(n)
	if err != nil || kind == "" {
		return err
	}
	if secret {
		sealed := n.Value
		if plain, kind, err = open(key, sealed, field); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSuffix(field, ":"), err)
		}
		if kind == typeComment { // SOPS makes an item of a comment in a list
			n.Tag, n.Value = commentTag, plain
			return nil
		}
		value, err := node(plain, kind)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSuffix(field, ":"), err)
		}
		n.Kind, n.Tag, n.Style, n.Value = value.Kind, value.Tag, value.Style, value.Value
		f.seen[field+"\x00"+kind+"\x00"+plain] = sealed
	}
	f.count(plain, secret)
	return nil
}

// encrypt encrypts the file in place, for recipients, or without any for its present recipients, and returns it. It takes the encryption
// of unchanged values from old.
func (f *file) encrypt(key []byte, recipients []string, old map[string]string) ([]byte, error) {
	if err := f.prepare(); err != nil {
		return nil, err
	}
	again := func(plain, kind, field string) (string, error) {
		if sealed, ok := old[field+"\x00"+kind+"\x00"+plain]; ok {
			return sealed, nil
		}
		return seal(key, plain, kind, field)
	}
	found := false
	err := f.walk(f.top, nil, func(n *yaml.Node, field string, secret bool) error {
		plain, kind, err := scalar(n)
		if err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSuffix(field, ":"), err)
		}
		if kind == "" {
			return nil
		}
		f.count(plain, secret)
		if !secret {
			return nil
		}
		found = true
		n.Kind, n.Tag, n.Style = yaml.ScalarNode, "", 0
		n.Value, err = again(plain, kind, field)
		if n.Value == "" {
			n.Style = yaml.DoubleQuotedStyle
		}
		return err
	}, func(text, field string) (string, error) { return again(text, typeComment, field) })
	if err != nil {
		return nil, diag.Wrap("encrypt", err, "")
	}
	if !found {
		return nil, diag.Errorf("see encrypted_regex in "+RulesFile, "encrypt: the file has no field that is to be encrypted")
	}
	if recipients != nil {
		if err := f.wrapFor(key, recipients); err != nil {
			return nil, err
		}
	}
	f.meta.LastModified, f.meta.Version = now(), formatVersion
	if f.meta.MAC, err = seal(key, f.sum(), typeString, f.meta.LastModified); err != nil {
		return nil, err
	}
	meta := &yaml.Node{}
	if err := meta.Encode(f.meta); err != nil {
		return nil, err
	}
	f.top.Content = append(f.top.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: metadataField}, meta)
	return f.bytes()
}

func (f *file) wrapFor(key []byte, recipients []string) error {
	f.meta.Age = nil
	for _, r := range recipients {
		enc, err := wrap(key, r)
		if err != nil {
			return err
		}
		f.meta.Age = append(f.meta.Age, wrappedKey{Recipient: r, Enc: enc})
	}
	return nil
}

func (f *file) prepare() (err error) {
	f.mac = sha512.New()
	if f.meta.MACOnlyEncrypted {
		f.mac.Write(macOnlyEncryptedSeed)
	}
	if f.meta.EncryptedRegex != "" {
		f.regex, err = regexp.Compile(f.meta.EncryptedRegex)
	}
	return err
}

func (f *file) count(plain string, secret bool) {
	if secret || !f.meta.MACOnlyEncrypted {
		f.mac.Write([]byte(plain))
	}
}

func (f *file) sum() string { return strings.ToUpper(hex.EncodeToString(f.mac.Sum(nil))) }

func (f *file) bytes() ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(f.top); err != nil {
		return nil, fmt.Errorf("write the file: %w", err)
	}
	return out.Bytes(), enc.Close()
}
