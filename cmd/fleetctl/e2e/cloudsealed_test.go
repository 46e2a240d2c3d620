//go:build e2e && clouds

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/cmd/fleetctl/internal/traces"
	"github.com/fleetctl/fleetctl/pkg/secret"
)

// sealedPrefix begins each content that is encrypted with age, such as a snapshot (https://age-encryption.org/v1).
const sealedPrefix = "age-encryption.org/v1\n"

// sealed looks into snapshots, which the fleet's keys open. A snapshot has Secrets of clusters, but not the provider's own credentials.
type sealed struct {
	found *traces.Traces
	keys  secret.Keys
	// opened counts the contents that were sealed.
	opened int
}

// newSealed takes the keys of all fleets in the state folders.
func newSealed(t *testing.T, found *traces.Traces, folders []string) *sealed {
	t.Helper()
	s := &sealed{found: found}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "keys", "fleets", "*.agekey"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			keys, err := secret.ParseKeys(content)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			s.keys = append(s.keys, keys...)
		}
	}
	return s
}

// within tells whether a content has a credential, also if it is sealed.
func (s *sealed) within(content []byte) (bool, error) {
	if s.found.Within(content) {
		return true, nil
	}
	if !bytes.HasPrefix(content, []byte(sealedPrefix)) {
		return false, nil
	}
	plain, err := s.keys.Open(content)
	if err != nil {
		return false, fmt.Errorf("open what is sealed: %w", err)
	}
	s.opened++
	return s.found.Within(plain), nil
}

// eachObject calls do for the content of each object that `git cat-file --batch` prints: "ID KIND SIZE", a line end, the content, a line end.
func eachObject(batch []byte, do func(id string, content []byte) error) error {
	for r := bytes.NewBuffer(batch); r.Len() > 0; {
		line, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the last object is cut: %w", err)
		}
		var id, kind string
		var size int
		if _, err := fmt.Sscan(strings.TrimSpace(line), &id, &kind, &size); err != nil {
			return fmt.Errorf("%q is no object: %w", line, err)
		}
		content := slices.Clone(r.Next(size))
		if end, err := r.ReadByte(); len(content) != size || err != nil || end != '\n' {
			return errors.Join(io.ErrUnexpectedEOF, do(id, content))
		}
		if err := do(id, content); err != nil {
			return fmt.Errorf("object %s: %w", id, err)
		}
	}
	return nil
}

// A credential in a sealed content is found, and one that no key opens is told.
func TestSealedIsSearched(t *testing.T) {
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	const canary = "canary/+0123456789abcdef"
	for text, has := range map[string]bool{"has " + canary + " in it": true, "has none": false} {
		content, err := secret.Keys{key}.Seal([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s := &sealed{found: traces.Of(canary), keys: secret.Keys{key}}
		batch := fmt.Appendf(nil, "1 blob 2\na\n\n2 blob %d\n%s\n", len(content), content)
		seen := false
		err = eachObject(batch, func(_ string, content []byte) error {
			found, err := s.within(content)
			seen = seen || found
			return err
		})
		if err != nil || seen != has || s.opened != 1 {
			t.Errorf("%s: %t, %d opened, %v", text, seen, s.opened, err)
		}
		s.keys = nil
		if _, err := s.within(content); !errors.Is(err, secret.ErrNoKey) {
			t.Errorf("without a key: %v", err)
		}
	}
}
