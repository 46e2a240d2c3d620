package render

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

// cacheFormat changes with what is kept, and with how it is made: entries of another one are not found.
const cacheFormat = "render-3 helm-v4.2.4 kustomize-v0.21.1"

// What the cache may hold: 5,000 clusters take some 100 MiB. A file that was begun and is older than staleAfter was given up.
const (
	maxCacheBytes = 1 << 30
	staleAfter    = time.Hour
	// unusedFor is how long the folder of a repo is kept that nobody renders.
	unusedFor = 30 * 24 * time.Hour
)

// cache keeps lists of objects by a digest of all that they are made of. What one run makes goes into one file, a pack: a file for each entry
// would take longer than to render some of them. Entries are whole or they are not there: each carries its own digest, and one that was cut,
// or changed, is as if it were missing. Several processes may use a folder at once. A nil cache keeps nothing.
type cache struct {
	dir string

	mu    sync.Mutex
	users int // runs that go on
	packs []*pack
	known map[key]entry
	fresh *packWriter // of what these runs make; nil before there is something
}

// CacheFor is the folder below dir that keeps what was rendered of the fleet repo in a folder; "" where there cannot be one, or dir is "". Each repo
// has its own: what renders a repo may write there, and what it might have forged there no other repo is rendered from. It is made, for who renders
// need not be able to, and those of repos that nobody has rendered for long are removed.
func CacheFor(dir, repo string) string {
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

func newCache(dir string) *cache {
	if dir == "" {
		return nil
	}
	return &cache{dir: dir}
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

// use opens the cache for a run. Call the function that it returns when the run is done: then what it made is there for others.
func (c *cache) use() (done func()) {
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

func (c *cache) open() {
	c.known = map[key]entry{}
	names, err := filepath.Glob(filepath.Join(c.dir, "*"+packSuffix))
	if err != nil {
		return
	}
	for _, name := range names {
		if p, err := openPack(name); err == nil {
			c.packs = append(c.packs, p)
			p.each(func(k key, at entry) { c.known[k] = at })
		} else if !errors.Is(err, fs.ErrNotExist) { // another run has put it together with others
			_ = os.Remove(name)
		}
	}
}

// close keeps what is new, and sees to it that neither files nor bytes become too many.
func (c *cache) close() {
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
func (c *cache) merge() {
	if len(c.packs) < maxPacks {
		return
	}
	slices.SortFunc(c.packs, func(a, b *pack) int { return int(a.size - b.size) })
	for _, p := range c.packs[:maxPacks/2] {
		whole := true
		p.each(func(k key, at entry) {
			if record := at.record(k); record != nil && c.known[k].pack == p {
				whole = c.fresh.add(k, record) && whole
			}
		})
		if whole {
			c.fresh.replaces = append(c.fresh.replaces, p)
		}
	}
}

// get returns what is kept for k.
func (c *cache) get(k key) ([]*content, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	at, ok := c.known[k]
	c.mu.Unlock()
	if !ok {
		return nil, false
	}
	return decodeContents(at.record(k))
}

// put keeps objects under k.
func (c *cache) put(k key, all []*content) {
	if c == nil {
		return
	}
	record := appendContents(nil, all)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users == 0 {
		return
	}
	if c.fresh == nil {
		c.fresh = newPack(c.dir)
	}
	c.fresh.add(k, record)
}

// pruneTo takes the oldest files away where there is more than a limit of bytes, and what runs that were ended left behind.
func (c *cache) pruneTo(limit int64) {
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
