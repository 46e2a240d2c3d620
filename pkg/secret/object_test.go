package secret

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Flux decrypts what kustomize has made of a file: in another order, as JSON, with other labels. The MAC does not fit then.
func TestDecryptObject(t *testing.T) {
	keys := newKeys(t)
	sealed, err := Encrypt([]byte("kind: Secret\napiVersion: v1\nmetadata: {name: a}\nstringData: {z: late, b: 'early\n\n  text'}\n"),
		Rule{EncryptedRegex: "^(data|stringData)$", Recipients: keys.Recipients()})
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := yaml.Unmarshal(sealed, &object); err != nil {
		t.Fatal(err)
	}
	object["metadata"].(map[string]any)["labels"] = map[string]any{"app": "mine"}
	applied, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decrypt(applied, keys); err == nil {
		t.Error("Decrypt takes what was changed")
	}
	plain, err := DecryptObject(applied, keys)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata   struct{ Labels map[string]string }
		StringData map[string]string `yaml:"stringData"`
		SOPS       any
	}
	if err := yaml.Unmarshal(plain, &got); err != nil {
		t.Fatal(err)
	}
	if got.StringData["z"] != "late" || got.StringData["b"] != "early\ntext" || got.Metadata.Labels["app"] != "mine" || got.SOPS != nil {
		t.Errorf("got %+v", got)
	}
	if _, err := DecryptObject(applied, newKeys(t)); !errors.Is(err, ErrNoKey) {
		t.Errorf("with a strange key: %v", err)
	}
	moved := strings.Replace(string(applied), `"z":`, `"y":`, 1) // a value is bound to its field
	if _, err := DecryptObject([]byte(moved), keys); err == nil {
		t.Error("a value in another field decrypts")
	}
}
