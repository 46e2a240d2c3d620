// Package store keeps what was rendered for the next run: bytes by a digest of all that they are made of. The contract: Get returns exactly
// the content that some run has Put under the key, or nothing. A store that is truncated, changed, unreadable or not writable behaves like
// an empty one, and is never an error. It knows nothing of what it keeps.
package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// What the cache may hold: 5,000 clusters take some 100 MiB. A file that was begun and is older than staleAfter was given up.
const (
	maxCacheBytes = 1 << 30
	staleAfter    = time.Hour
	// unusedFor is how long the folder of a repo is kept that nobody renders.
	unusedFor = 30 * 24 * time.Hour
)

// Store keeps bytes by a digest of all that they are made of. What one run makes goes into one file, a pack: a file for each entry takes
// two to three times as long (BenchmarkStore), longer than to render some of them. Entries are whole or they are not there: each carries
// its own digest, and one that was cut, or changed, is as if it were missing. Several processes may use a folder at once. A nil store
// keeps nothing.
type Store struct {
	dir string

	mu    sync.Mutex
	users int // runs that go on
	packs []*pack
	known map[Key]entry
	fresh *packWriter // of what these runs make; nil before there is something
}

// FolderFor is the folder below dir that keeps what was rendered of the fleet repo in a folder; "" where there cannot be one, or dir is
// "". Each repo has its own: what renders a repo may write there, and what it might have forged there no other repo is rendered from. It
// is made, for who renders need not be able to, and those of repos that nobody has rendered for long are removed.
func FolderFor(dir, repo string) string {
	if dir == "" {
		return ""
	}
	actual, err := filepath.Abs(repo)
	if err != nil {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(actual); err == nil {
		actual = resolved
	}
	all := filepath.Join(dir, "render")
	sum := sha256.Sum256([]byte(actual))
	own := filepath.Join(all, hex.EncodeToString(sum[:16]))
	if os.MkdirAll(own, 0o700) != nil {
		return ""
	}
	now := time.Now()
	_ = os.Chtimes(own, now, now) // or it is made anew when it is needed
	if entries, err := os.ReadDir(all); err == nil {
		removeUnused(all, entries, now)
	}
	return own
}

// removeUnused removes folders of repos that were not rendered for long, and the files of versions that had one folder for all.
func removeUnused(dir string, entries []fs.DirEntry, now time.Time) {
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && (!entry.IsDir() || now.Sub(info.ModTime()) > unusedFor) {
			_ = os.RemoveAll(filepath.Join(dir, entry.Name())) // or another run does
		}
	}
}

// entry is where something is kept.
type entry struct {
	pack   *pack
	at     int64
	length int
}

// New is the store in a folder, which need not be there; nil where dir is "". Whoever uses it calls Use.
func New(dir string) *Store {
	if dir == "" {
		return nil
	}
	return &Store{dir: dir}
}

// Key is the name of an entry.
type Key [sha256.Size]byte

// Digest hashes parts, each with its length, so that no two lists of parts are the same text.
func Digest(parts ...[]byte) Key {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	return Key(h.Sum(nil))
}

// Use opens the cache for a run. Call the function that it returns when the run is done: then what it made is there for others.
func (c *Store) Use() (done func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users++; c.users == 1 {
		c.open()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.users--; c.users == 0 {
			c.close()
		}
	}
}

func (c *Store) open() {
	c.known = map[Key]entry{}
	names, err := filepath.Glob(filepath.Join(c.dir, "*"+packSuffix))
	if err != nil {
		return
	}
	for _, name := range names {
		if p, err := openPack(name); err == nil {
			c.packs = append(c.packs, p)
			p.each(func(k Key, at entry) { c.known[k] = at })
		} else if !errors.Is(err, fs.ErrNotExist) { // another run has put it together with others
			_ = os.Remove(name)
		}
	}
}

// close keeps what is new, and sees to it that neither files nor bytes become too many.
func (c *Store) close() {
	if c.fresh != nil {
		c.merge()
		_ = c.fresh.finish() // a cache that cannot be written is none: what was rendered is right without it
	}
	for _, p := range c.packs {
		_ = p.file.Close() // it was only read
	}
	if c.fresh != nil {
		c.pruneTo(maxCacheBytes)
	}
	c.packs, c.known, c.fresh = nil, nil, nil
}

// maxPacks is how many packs there may be.
const maxPacks = 16

// merge takes the smallest packs into the one that is being written, once there are too many of them.
func (c *Store) merge() {
	if len(c.packs) < maxPacks {
		return
	}
	slices.SortFunc(c.packs, func(a, b *pack) int { return int(a.size - b.size) })
	for _, p := range c.packs[:maxPacks/2] {
		whole := true
		p.each(func(k Key, at entry) {
			if record := at.record(k); record != nil && c.known[k].pack == p {
				whole = c.fresh.add(k, record) && whole
			}
		})
		if whole {
			c.fresh.replaces = append(c.fresh.replaces, p)
		}
	}
}

// Get returns what is kept for k. It is the caller's own.
func (c *Store) Get(k Key) ([]byte, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	at, ok := c.known[k]
	c.mu.Unlock()
	if !ok {
		return nil, false
	}
	body := at.record(k)
	return body, body != nil
}

// Put keeps a body under k, for the runs that begin after this one. Outside of a run it keeps nothing.
func (c *Store) Put(k Key, body []byte) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users == 0 {
		return
	}
	if c.fresh == nil {
		c.fresh = newPack(c.dir)
	}
	c.fresh.add(k, body)
}

// pruneTo takes the oldest files away where there is more than a limit of bytes, and what runs that were ended left behind.
func (c *Store) pruneTo(limit int64) {
	type kept struct {
		name string
		size int64
		at   time.Time
	}
	var all []kept
	var total int64
	var stale []string
	err := filepath.WalkDir(c.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what another run has just removed is not there any more
		}
		if info, err := d.Info(); err == nil {
			if filepath.Ext(name) != packSuffix && time.Since(info.ModTime()) > staleAfter {
				stale = append(stale, name)
				return nil
			}
			all = append(all, kept{name, info.Size(), info.ModTime()})
			total += info.Size()
		}
		return nil
	})
	if err != nil {
		return
	}
	for _, name := range stale {
		_ = os.Remove(name) // or another run does
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
