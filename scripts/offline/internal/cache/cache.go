// Package cache keeps what was built, by what it was built from. Everything lies under one folder:
//
//	store/<name>-<key>/   finished outputs, never changed once they are there
//	programs/<name>       links to the programs of the last build
//	tmp/                  builds under way, and what killed ones left behind
package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/report"
)

// Cache is a folder of outputs. One process at a time may hold it.
type Cache struct {
	dir    string
	lock   *flock.Flock
	report *report.Reporter
}

// lockPoll is how often a cache that another build holds is tried: a file lock cannot be waited for in another way that a context could
// end.
const lockPoll = 200 * time.Millisecond

// Open takes the cache in dir, making it if it is not there. It waits, and says so, while another build has it.
func Open(ctx context.Context, dir string, r *report.Reporter) (*Cache, error) {
	for _, sub := range []string{"store", "programs", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("make the cache: %w", err)
		}
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	held, err := lock.TryLock()
	if err == nil && !held {
		step := r.Start("waiting for another build, which has " + dir)
		_, err = lock.TryLockContext(ctx, lockPoll)
		step.End(err)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the cache %s: %w", dir, err)
	}
	c := &Cache{dir: dir, lock: lock, report: r}
	return c, c.emptyTemp()
}

// Look is the cache in dir for Has alone, which needs nobody to wait.
func Look(dir string) *Cache { return &Cache{dir: dir} }

// Close lets other processes have the cache.
func (c *Cache) Close() error { return c.lock.Unlock() }

// Dir is the cache's folder.
func (c *Cache) Dir() string { return c.dir }

// Make returns the folder that holds the named output with that key, calling build to fill it if it is not there yet.
// An output that build did not finish is not kept. Older outputs of the same name are removed: they are never asked for
// again, and they are big.
func (c *Cache) Make(ctx context.Context, name string, key *Key, build func(ctx context.Context, dir string) error) (string, error) {
	final, there, err := c.find(name, key)
	if err != nil || there {
		return final, err
	}
	step := c.report.Start(name)
	err = c.fill(ctx, name, final, build)
	step.End(err)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return final, c.removeOlder(name, final)
}

// Has tells whether the named output with that key is there.
func (c *Cache) Has(name string, key *Key) (bool, error) {
	_, there, err := c.find(name, key)
	return there, err
}

// find returns where the output has to be, and whether it is there.
func (c *Cache) find(name string, key *Key) (final string, there bool, err error) {
	id, err := key.String()
	if err != nil {
		return "", false, fmt.Errorf("%s: %w", name, err)
	}
	final = filepath.Join(c.dir, "store", name+"-"+id)
	if _, err := os.Stat(final); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return final, false, err
	}
	return final, true, nil
}

// Link makes programs/<name> stand for file, so that people and scripts need not know keys.
func (c *Cache) Link(name, file string) error {
	link := filepath.Join(c.dir, "programs", name)
	target, err := filepath.Rel(filepath.Dir(link), file)
	if err != nil {
		return err
	}
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	if err := os.RemoveAll(link); err != nil {
		return err
	}
	return os.Symlink(target, link)
}

func (c *Cache) fill(ctx context.Context, name, final string, build func(context.Context, string) error) error {
	dir, err := os.MkdirTemp(filepath.Join(c.dir, "tmp"), name+"-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	started := time.Now()
	if err := build(ctx, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.Rename(dir, final); err != nil {
		return err
	}
	return os.Chtimes(final, time.Now(), started)
}

func (c *Cache) removeOlder(name, keep string) error {
	found, err := filepath.Glob(filepath.Join(c.dir, "store", name+"-*"))
	if err != nil {
		return err
	}
	for _, dir := range found {
		// A longer name may start with this one: what follows must be a key and nothing else.
		suffix := strings.TrimPrefix(filepath.Base(dir), name+"-")
		if dir == keep || strings.Contains(suffix, "-") || len(suffix) != len(filepath.Base(keep))-len(name)-1 {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove the older %s: %w", name, err)
		}
	}
	return nil
}

func (c *Cache) emptyTemp() error {
	entries, err := os.ReadDir(filepath.Join(c.dir, "tmp"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(c.dir, "tmp", e.Name())); err != nil {
			return fmt.Errorf("remove what an interrupted build left: %w", err)
		}
	}
	return nil
}
