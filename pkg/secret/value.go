package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	dataKeySize = 32
	nonceSize   = 32
)

// The types of values, as SOPS names them.
const (
	typeString  = "str"
	typeInt     = "int"
	typeFloat   = "float"
	typeBool    = "bool"
	typeTime    = "time"
	typeBytes   = "bytes"
	typeComment = "comment"
)

var encrypted = regexp.MustCompile(`^ENC\[AES256_GCM,data:(.*),iv:(.+),tag:(.+),type:(.+)\]$`)

// errNotEncrypted and errDamaged are what can be wrong with a value. Neither quotes it.
var (
	errNotEncrypted = errors.New("value is not encrypted")
	errDamaged      = errors.New("value was changed after it was encrypted, or moved to another field")
)

// seal encrypts a value. field is bound to it: the value decrypts nowhere else in the file.
func seal(key []byte, plain, kind, field string) (string, error) {
	if plain == "" && kind == typeString {
		return "", nil
	}
	iv := make([]byte, nonceSize)
	if _, err := rand.Read(iv); err != nil {
		return "", err
	}
	gcm, err := cipherFor(key, len(iv))
	if err != nil {
		return "", err
	}
	out := gcm.Seal(nil, iv, []byte(plain), []byte(field))
	text := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("ENC[AES256_GCM,data:%s,iv:%s,tag:%s,type:%s]", text(out[:len(out)-gcm.Overhead()]), text(iv),
		text(out[len(out)-gcm.Overhead():]), kind), nil
}

// open decrypts a value.
func open(key []byte, value, field string) (plain, kind string, err error) {
	if value == "" {
		return "", typeString, nil
	}
	parts := encrypted.FindStringSubmatch(value)
	if parts == nil {
		return "", "", errNotEncrypted
	}
	var raw [3][]byte
	for i := range raw {
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil {
			return "", "", errDamaged
		}
	}
	if len(raw[1]) == 0 {
		return "", "", errDamaged
	}
	gcm, err := cipherFor(key, len(raw[1]))
	if err != nil {
		return "", "", err
	}
	out, err := gcm.Open(nil, raw[1], append(raw[0], raw[2]...), []byte(field))
	if err != nil {
		return "", "", errDamaged
	}
	return string(out), parts[4], nil
}

func cipherFor(key []byte, nonce int) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithNonceSize(block, nonce)
}

// scalar reads a YAML scalar as SOPS does. It returns the text that is encrypted and counted, and the type. kind is "" for null.
func scalar(n *yaml.Node) (plain, kind string, err error) {
	var value any
	if err := n.Decode(&value); err != nil {
		return "", "", err
	}
	switch v := value.(type) {
	case nil:
		return "", "", nil
	case string:
		return v, typeString, nil
	case int:
		return strconv.Itoa(v), typeInt, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), typeFloat, nil
	case bool:
		if v {
			return "True", typeBool, nil
		}
		return "False", typeBool, nil
	case time.Time:
		text, err := v.MarshalText()
		return string(text), typeTime, err
	case []byte:
		return string(v), typeString, nil
	}
	return "", "", fmt.Errorf("value of the type %s cannot be encrypted: put it in quotes", strings.TrimPrefix(n.ShortTag(), "!!"))
}

// node is the YAML scalar of a decrypted value.
func node(plain, kind string) (*yaml.Node, error) {
	n := &yaml.Node{}
	switch kind {
	case typeString, typeBytes:
		n.SetString(plain)
		return n, nil
	case typeBool:
		value, err := strconv.ParseBool(plain)
		if err != nil {
			return nil, errDamaged
		}
		return n, n.Encode(value)
	case typeInt, typeFloat, typeTime:
		n.Kind, n.Value = yaml.ScalarNode, plain
		return n, nil
	}
	return nil, fmt.Errorf("value has the unknown type %.20q", kind)
}
