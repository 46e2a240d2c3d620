package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"
)

// cacheFormat changes with what is kept, and with how it is made: entries of another one are not found.
const cacheFormat = "render-2 helm-v4.2.4 kustomize-v0.21.1"

// What the cache may hold, and how often that is looked at. 5,000 clusters take some 100 MiB.
const (
	maxCacheBytes = 1 << 30
	pruneInterval = time.Hour
)

// cache keeps lists of objects by a digest of all that they are made of. Entries are whole or they are not there: each carries its own
// digest, and one that was cut, or changed, is as if it were missing. A nil cache keeps nothing.
type cache struct {
	dir   string
	wrote atomic.Bool
}

func newCache(dir string) *cache {
	if dir == "" {
		return nil
	}
	return &cache{dir: filepath.Join(dir, "render")}
}

// key is the name of an entry.
type key [sha256.Size]byte

// digest hashes parts, each with its length, so that no two lists of parts are the same text.
func digest(parts ...[]byte) key {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return key(h.Sum(nil))
}

func (c *cache) file(k key) string {
	name := hex.EncodeToString(k[:])
	return filepath.Join(c.dir, name[:2], name[2:])
}

// entry is the first line about an object; its JSON follows on the next.
type entry struct {
	APIVersion string `json:"a"`
	Kind       string `json:"k"`
	Namespace  string `json:"n,omitempty"`
	Name       string `json:"m"`
	File       string `json:"f,omitempty"`
	Line       int    `json:"l,omitempty"`
	Template   string `json:"t,omitempty"`
}

// get returns what is kept for k.
func (c *cache) get(k key) ([]*content, bool) {
	if c == nil {
		return nil, false
	}
	text, err := os.ReadFile(c.file(k))
	if err != nil || len(text) < sha256.Size {
		return nil, false
	}
	body := text[sha256.Size:]
	if sha256.Sum256(body) != [sha256.Size]byte(text[:sha256.Size]) {
		return nil, false
	}
	all := []*content{}
	for len(body) > 0 {
		head, rest, ok := bytes.Cut(body, []byte("\n"))
		object, rest, ok2 := bytes.Cut(rest, []byte("\n"))
		var e entry
		if !ok || !ok2 || json.Unmarshal(head, &e) != nil {
			return nil, false
		}
		one := &content{json: object, source: Source{e.File, e.Line}, template: e.Template}
		one.APIVersion, one.Kind, one.Metadata.Namespace, one.Metadata.Name = e.APIVersion, e.Kind, e.Namespace, e.Name
		all, body = append(all, one), rest
	}
	return all, true
}

// put keeps objects under k. A cache that cannot be written is none: what was rendered is right without it.
func (c *cache) put(k key, all []*content) {
	if c == nil {
		return
	}
	body := make([]byte, sha256.Size)
	for _, one := range all {
		head, err := json.Marshal(entry{
			one.APIVersion, one.Kind, one.Metadata.Namespace, one.Metadata.Name, one.source.File, one.source.Line, one.template,
		})
		if err != nil {
			return
		}
		body = append(append(append(append(body, head...), '\n'), one.json...), '\n')
	}
	sum := sha256.Sum256(body[sha256.Size:])
	copy(body, sum[:])
	name := c.file(k)
	// Not manifest.WriteFile, which waits for the disk and renames: an entry that a crash cuts short, or that another run is just writing, is found
	// out by its digest.
	err := os.WriteFile(name, body, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			err = os.WriteFile(name, body, 0o600)
		}
	}
	if err != nil {
		_ = os.Remove(name)
		return
	}
	c.wrote.Store(true)
}

// prune takes the oldest entries away where the cache has become too large. It looks once in a while, after something was written.
func (c *cache) prune() {
	if c == nil || !c.wrote.Load() {
		return
	}
	stamp := filepath.Join(c.dir, ".pruned")
	if info, err := os.Stat(stamp); err == nil && time.Since(info.ModTime()) < pruneInterval {
		return
	}
	_ = os.WriteFile(stamp, nil, 0o600)
	c.pruneTo(maxCacheBytes)
}

func (c *cache) pruneTo(limit int64) {
	type kept struct {
		name string
		size int64
		at   time.Time
	}
	var all []kept
	var total int64
	err := filepath.WalkDir(c.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what another run has just removed is not there any more
		}
		if info, err := d.Info(); err == nil {
			all = append(all, kept{name, info.Size(), info.ModTime()})
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		return
	}
	slices.SortFunc(all, func(a, b kept) int { return a.at.Compare(b.at) })
	for _, k := range all {
		if total <= limit {
			return
		}
		if os.Remove(k.name) == nil {
			total -= k.size
		}
	}
}
