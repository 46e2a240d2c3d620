package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Key identifies an output by everything that it is made of. Two builds with the same key give the same output, so the
// order of the calls is part of it, and every value is framed by its length: no two lists of inputs look alike.
type Key struct {
	sum hash.Hash
	err error
}

// NewKey starts the key of an output. The recipe names what is done with the inputs; change it when the code that does
// it changes its result.
func NewKey(recipe string) *Key {
	k := &Key{sum: sha256.New()}
	return k.Add("recipe", recipe)
}

// Add mixes in named values.
func (k *Key) Add(name string, values ...string) *Key {
	k.frame(name)
	for _, v := range values {
		k.frame(v)
	}
	return k
}

// AddFiles mixes in the contents of the files that the patterns match, by their names relative to dir.
func (k *Key) AddFiles(dir string, patterns ...string) *Key {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no file matches %s in %s", pattern, dir)
		}
		k.keep(err)
		slices.Sort(found)
		for _, file := range found {
			k.addFile(filepath.Base(file), file)
		}
	}
	return k
}

// String is the key, or the reason why there is none.
func (k *Key) String() (string, error) {
	if k.err != nil {
		return "", fmt.Errorf("hash the inputs: %w", k.err)
	}
	return hex.EncodeToString(k.sum.Sum(nil))[:20], nil
}

func (k *Key) addFile(name, file string) {
	content := sha256.New()
	f, err := os.Open(file)
	if err != nil {
		k.keep(err)
		return
	}
	defer f.Close()
	_, err = io.Copy(content, f)
	k.keep(err)
	k.Add(name, hex.EncodeToString(content.Sum(nil)))
}

func (k *Key) frame(value string) { fmt.Fprintf(k.sum, "%d:%s,", len(value), value) }

func (k *Key) keep(err error) {
	if k.err == nil {
		k.err = err
	}
}
