//go:build e2e && clouds

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/cmd/fleetctl/internal/traces"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// canaries are credentials that nobody else has, and all that anybody on this machine or in a management cluster could see while they were
// in use. No byte of them may be in it, except in the places that have to hold them.
type canaries struct {
	fleet *fleet
	// given are all that were given by now.
	given func(t *testing.T) []string
	// manager is the provider's Deployment, which gets them as files from its Secrets.
	manager kube.Key
	// secrets may hold them: the provider reads them there.
	secrets []kube.Key
	// more are folders beside those of the fleet that hold what fleetctl has written, such as the remote of the fleet repo.
	more []string

	mu   sync.Mutex
	seen map[string]string // by content, what it is
	// environments are those that processes had in the last look, by the process.
	environments map[int]string
	looks        int
}

// watch begins to look at the processes of this machine, again and again until the test ends, and keeps what each fleetctl says.
func (c *canaries) watch(t *testing.T) {
	t.Helper()
	c.seen, c.environments = map[string]string{}, map[int]string{}
	c.fleet.heard = func(said string) { c.note(said, "what fleetctl has said") }
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				c.look(t)
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-ended
	})
}

func (c *canaries) note(content, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.seen[content]; !known {
		c.seen[content] = what
	}
}

// look keeps the arguments of all processes, and the environments of all but this one and those that it has started: the user's own
// environment is where the credentials come from. A process that has just been started has the environment of its parent for a moment, so
// that one counts which two looks have found.
func (c *canaries) look(t *testing.T) {
	before := c.environments
	c.environments = map[int]string{}
	for _, p := range processTable(t) {
		c.note(p.command, "the arguments of "+p.name)
		if p.pid == os.Getpid() || p.parent == os.Getpid() {
			continue
		}
		environment, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid)) // one that has ended has none
		if c.environments[p.pid] = string(environment); before[p.pid] == string(environment) {
			c.note(string(environment), "the environment of "+p.name+": "+p.command)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
}

// areHidden looks for the credentials in everything that was seen, in the files of this machine, in Git, and in the objects of management
// clusters. held tells whether they have to be somewhere now where they may be, which shows that this finds what it looks for.
func (c *canaries) areHidden(t *testing.T, held bool, at ...*kube.Client) {
	t.Helper()
	begin := time.Now()
	secrets := c.given(t)
	found := traces.Of(secrets...)
	c.mu.Lock()
	seen, looks := len(c.seen), c.looks
	for content, what := range c.seen {
		if found.Within([]byte(content)) {
			t.Errorf("a credential is in %s", what)
		}
	}
	c.mu.Unlock()
	if looks == 0 {
		t.Error("nobody has looked at the processes")
	}
	f := c.fleet
	inside := newSealed(t, found, []string{f.state, f.lost()})
	holders := c.inFiles(t, inside, append([]string{f.dir, f.state, f.home, f.temp, f.base, cache}, c.more...))
	for _, client := range at {
		holders += c.inObjects(t, found, client)
	}
	if held && holders == 0 {
		t.Error("no credential is where it has to be: this does not find what it looks for")
	}
	t.Logf("none of %d credentials shows, in %d texts of %d looks and in all files, %d of them sealed; %d places may hold them; it took %s",
		len(secrets), seen, looks, inside.opened, holders, time.Since(begin).Round(time.Millisecond))
}

// inFiles looks into all files of the folders, and into all objects of the Git repositories there. It returns how many hold credentials and
// may.
func (c *canaries) inFiles(t *testing.T, inside *sealed, folders []string) (holders int) {
	t.Helper()
	images := imageDir() // what is unpacked there was in the bundle before anybody had a credential
	looked := map[string]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // it was a temporary file
			case err != nil:
				return err
			case looked[path] || path == images:
				return skip(d)
			}
			looked[path] = true
			if d.IsDir() {
				c.inRepository(t, inside, path)
			}
			if !d.Type().IsRegular() {
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if c.mayHold(path) {
				if inside.found.In(content) {
					holders++
					c.isClosed(t, path)
				}
				return nil
			}
			has, err := inside.within(content)
			if has || err != nil {
				t.Errorf("a credential is in %s: %t, %v", path, has, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	return holders
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// mayHold tells whether a file is where a management cluster on this machine keeps Secrets: the database of its API server, and what that
// gives the provider to read.
func (c *canaries) mayHold(file string) bool {
	below, is := strings.CutPrefix(file, filepath.Join(c.fleet.state, "clusters")+string(filepath.Separator))
	if !is { // what a runner that has died had
		below, is = strings.CutPrefix(file, filepath.Join(c.fleet.lost(), "clusters")+string(filepath.Separator))
	}
	if !is {
		return false
	}
	_, below, _ = strings.Cut(below, string(filepath.Separator)) // without the name of the management cluster
	within := func(dir ...string) bool {
		return strings.HasPrefix(below, filepath.Join(dir...)+string(filepath.Separator))
	}
	return within("embedded", "control-plane", "etcd") ||
		within("embedded", "runner", "run", c.manager.Namespace, c.manager.Name, "volumes")
}

// isClosed requires that nobody else on this machine may open a file.
func (c *canaries) isClosed(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%s is open to others: %v", file, err)
	}
}

// inRepository looks into all objects of a Git repository, packed objects and those that nothing leads to included.
func (c *canaries) inRepository(t *testing.T, inside *sealed, dir string) {
	t.Helper()
	for _, part := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, part)); err != nil {
			return
		}
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "git", "--git-dir", dir, "cat-file", "--batch", "--batch-all-objects", "--unordered")
	cmd.Stderr = &said
	objects, err := cmd.Output()
	if err != nil {
		t.Errorf("read the objects of %s: %v: %s", dir, err, said.String())
	}
	err = eachObject(objects, func(id string, content []byte) error {
		has, err := inside.within(content)
		if has {
			t.Errorf("a credential is in object %s of the Git repository %s", id, dir)
		}
		return err
	})
	if err != nil {
		t.Errorf("look into the Git repository %s: %v", dir, err)
	}
}

// inObjects looks into all objects of an API server, and returns how many Secrets hold credentials and may.
func (c *canaries) inObjects(t *testing.T, found *traces.Traces, client *kube.Client) (holders int) {
	t.Helper()
	kinds, err := client.Kinds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	objects, failed := client.ListKinds(t.Context(), kinds, "")
	for _, one := range failed {
		t.Errorf("list %s: %v", one.Kind, one.Err)
	}
	for i := range objects {
		obj := &objects[i]
		content, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if !found.Within(content) {
			continue
		}
		if key := (kube.Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}); obj.GetKind() == "Secret" && slices.Contains(c.secrets, key) {
			holders++
		} else {
			t.Errorf("a credential is in %s %s at %s", obj.GetKind(), key, client.Host())
		}
	}
	return holders
}

// inSupportBundle makes a support bundle, which areHidden looks into.
func (c *canaries) inSupportBundle(t *testing.T, more ...string) {
	t.Helper()
	bundle := filepath.Join(c.fleet.base, fmt.Sprintf("support-%d.tar.gz", time.Now().UnixNano()))
	c.fleet.ok(append([]string{"support-bundle", "--file", bundle}, more...)...)
	unpackBundle(t, bundle) // it is whole, and not empty
}
