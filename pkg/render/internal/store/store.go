// Package store keeps rendered content for later runs: bytes, by a digest of all their inputs. The contract: Get returns exactly the
// content that some run has Put under the key, or nothing. A store that is truncated, changed, unreadable or not writable behaves like an
// empty one, and is never an error. The package does not know what the bytes mean.
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

// The limits of the cache. 5,000 clusters take some 100 MiB. An unfinished file that is older than staleAfter was abandoned.
const (
	maxCacheBytes = 1 << 30
	staleAfter    = time.Hour
	// unusedFor is how long the folder of a repo is kept after the last run.
	unusedFor = 30 * 24 * time.Hour
)

// Store keeps bytes by a digest of all their inputs. One run writes all its entries to one file, a pack. A file for each entry would take
// two to three times as long (BenchmarkStore), which for some entries is longer than rendering. Each entry has its own digest, so a
// truncated or changed entry counts as missing. Several processes may use a folder at once. A nil store keeps nothing.
type Store struct {
	dir string

	mu    sync.Mutex
	users int // runs that have not ended
	packs []*pack
	known map[Key]entry
	fresh *packWriter // the new entries of these runs; nil before the first one
}

// FolderFor returns the folder below dir with the rendered content of the fleet repo in repo. It returns "" if dir is "" or if the folder
// cannot be made. Each repo has its own folder, because rendering a repo writes there, and an entry that a hostile repo has forged must not
// reach another repo. FolderFor makes the folder, because the confined process that renders cannot. It removes the folders of repos that
// were not rendered for a long time.
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
	_ = os.Chtimes(own, now, now) // on an error the folder only looks older, and may be removed early
	if entries, err := os.ReadDir(all); err == nil {
		removeUnused(all, entries, now)
	}
	return own
}

// removeUnused removes the folders of repos that were not rendered for a long time, and files of versions that had one folder for all
// repos.
func removeUnused(dir string, entries []fs.DirEntry, now time.Time) {
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && (!entry.IsDir() || now.Sub(info.ModTime()) > unusedFor) {
			_ = os.RemoveAll(filepath.Join(dir, entry.Name())) // on an error a later run removes it
		}
	}
}

// entry is the place of an entry in a pack.
type entry struct {
	pack   *pack
	at     int64
	length int
}

// New returns the store in a folder, which need not exist. It returns nil if dir is "". Call Use before Get and Put.
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

// Use opens the store for a run. The returned function ends the run, and makes its entries available to other runs.
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
		} else if !errors.Is(err, fs.ErrNotExist) { // another run has merged it with others
			_ = os.Remove(name)
		}
	}
}

// close writes the new entries, and limits the number and the size of the packs.
func (c *Store) close() {
	if c.fresh != nil {
		c.merge()
		_ = c.fresh.finish() // the result of the run does not depend on the cache
	}
	for _, p := range c.packs {
		_ = p.file.Close() // it was only read
	}
	if c.fresh != nil {
		c.pruneTo(maxCacheBytes)
	}
	c.packs, c.known, c.fresh = nil, nil, nil
}

// maxPacks is the most packs in a folder.
const maxPacks = 16

// merge copies the smallest packs into the new pack if there are too many.
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

// Get returns a copy of the entry for k.
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

// Put keeps body under k for later runs. Outside of a run it keeps nothing.
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

// pruneTo removes the oldest files until their size is within the limit, and files that killed runs left behind.
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
			return nil //nolint:nilerr // another run has just removed it
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
		_ = os.Remove(name) // on an error a later run removes it
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
