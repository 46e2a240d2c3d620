//go:build e2e

package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Images of the bundle, of the control plane and of a manager.
const (
	serverImage  = "registry.k8s.io/kube-apiserver:v1.36.3"
	managerImage = "registry.k8s.io/cluster-api/cluster-api-controller:v1.14.2"
)

// copied is a bundle that a test may damage.
type copied struct {
	*testing.T
	dir string
}

// linkOrCopy shares a file that is never written to, also between file systems.
func linkOrCopy(from, to string) error {
	err := os.Link(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o644)
}

// copyBundle copies the index; blobs are the bundle's own until they are replaced.
func copyBundle(t *testing.T) *copied {
	t.Helper()
	from, c := os.Getenv(envBundle), &copied{t, t.TempDir()}
	blobs := filepath.Join("blobs", "sha256")
	if err := os.MkdirAll(filepath.Join(c.dir, blobs), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"index.json", "oci-layout"} {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(c.dir, name), raw, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(from, blobs))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := linkOrCopy(filepath.Join(from, blobs, e.Name()), filepath.Join(c.dir, blobs, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *copied) blob(hex string) string { return filepath.Join(c.dir, "blobs", "sha256", hex) }

func (c *copied) read(path string, into any) {
	c.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		c.Fatal(err)
	}
}

// index changes the index's entry of an image; nil takes it out.
func (c *copied) index(image string, change func(d *v1.Descriptor) *v1.Descriptor) {
	c.Helper()
	path := filepath.Join(c.dir, "index.json")
	index := &v1.IndexManifest{}
	c.read(path, index)
	kept := index.Manifests[:0:0]
	for _, d := range index.Manifests {
		if d.Annotations["org.opencontainers.image.ref.name"] != image {
			kept = append(kept, d)
		} else if changed := change(&d); changed != nil {
			kept = append(kept, *changed)
		}
	}
	index.Manifests = kept
	raw, err := json.Marshal(index)
	if err == nil {
		err = os.WriteFile(path, raw, 0o644)
	}
	if err != nil {
		c.Fatal(err)
	}
}

// add writes a blob and points a descriptor at it.
func (c *copied) add(content any, d *v1.Descriptor) {
	c.Helper()
	raw, err := json.Marshal(content)
	if err != nil {
		c.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	d.Digest, d.Size = v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum[:])}, int64(len(raw))
	if err := os.WriteFile(c.blob(d.Digest.Hex), raw, 0o644); err != nil {
		c.Fatal(err)
	}
}

// truncate cuts the end off an image's layer.
func (c *copied) truncate(image string) {
	c.Helper()
	c.index(image, func(d *v1.Descriptor) *v1.Descriptor {
		m := &v1.Manifest{}
		c.read(c.blob(d.Digest.Hex), m)
		layer := c.blob(m.Layers[len(m.Layers)-1].Digest.Hex)
		raw, err := os.ReadFile(layer)
		if err == nil {
			err = os.Remove(layer)
		}
		if err == nil {
			err = os.WriteFile(layer, raw[:len(raw)-1000], 0o644)
		}
		if err != nil {
			c.Fatal(err)
		}
		return d
	})
}

// otherArchitecture makes an image claim another one.
func (c *copied) otherArchitecture(image string) {
	c.Helper()
	c.index(image, func(d *v1.Descriptor) *v1.Descriptor {
		m, config := &v1.Manifest{}, &v1.ConfigFile{}
		c.read(c.blob(d.Digest.Hex), m)
		c.read(c.blob(m.Config.Digest.Hex), config)
		config.Architecture = "mips"
		c.add(config, &m.Config)
		c.add(m, d)
		d.Platform = nil
		return d
	})
}

// cli is fleetctl with folders of its own.
type cli struct {
	*testing.T
	repo, state, cache string
}

// newCLI unpacks images to the cache: one for several saves the time for those that are as they should be.
func newCLI(t *testing.T, cache string) *cli {
	t.Helper()
	base := t.TempDir()
	c := &cli{t, filepath.Join(base, "faults"), filepath.Join(base, "state"), cache}
	if err := os.MkdirAll(c.repo, 0o755); err != nil {
		t.Fatal(err)
	}
	return c
}

// run returns the exit code and what fleetctl says on standard error.
func (c *cli) run(args ...string) (int, string) {
	c.Helper()
	cmd := exec.Command(os.Getenv(envProgram), args...)
	cmd.Dir = c.repo
	// The way to registries is closed: what the bundle lacks is not there.
	cmd.Env = append(os.Environ(), "FLEETCTL_STATE_DIR="+c.state, "FLEETCTL_CACHE_DIR="+c.cache, "XDG_CACHE_HOME="+c.cache,
		"HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		c.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// hosts are the folders of embedded hosts: what has processes and data.
func (c *cli) hosts() []string {
	c.Helper()
	found, err := filepath.Glob(filepath.Join(c.state, "clusters", "*", "embedded"))
	if err != nil {
		c.Fatal(err)
	}
	return found
}

// initFails requires that init on the embedded host fails and says those words, and that teardown then leaves nothing.
func (c *cli) initFails(bundle string, words ...string) {
	c.Helper()
	code, said := c.run("init", "--host", "embedded", "--provider", "docker", "--bundle", bundle, "--timeout", "3m")
	if code == 0 {
		c.Error("init succeeded")
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			c.Errorf("init does not say %q:\n%s", w, said)
		}
	}
	if len(c.hosts()) > 0 {
		if code, said := c.run("teardown"); code != 0 {
			c.Errorf("teardown afterwards: exit %d\n%s", code, said)
		}
	}
	if left := c.hosts(); len(left) > 0 {
		c.Errorf("left over: %v", left)
	}
}

// TestInitNamesWhatIsWrong meets what users meet. No case unpacks an image that a later one has damaged.
func TestInitNamesWhatIsWrong(t *testing.T) {
	cache := t.TempDir()
	t.Run("image of the control plane truncated", func(t *testing.T) {
		b := copyBundle(t)
		b.truncate(serverImage)
		newCLI(t, cache).initFails(b.dir, serverImage)
	})
	t.Run("image of a manager truncated", func(t *testing.T) {
		b := copyBundle(t)
		b.truncate(managerImage)
		newCLI(t, cache).initFails(b.dir, managerImage)
	})
	t.Run("image of a manager missing", func(t *testing.T) {
		b := copyBundle(t)
		b.index(managerImage, func(*v1.Descriptor) *v1.Descriptor { return nil })
		newCLI(t, cache).initFails(b.dir, managerImage)
	})
	t.Run("image of a manager for another architecture", func(t *testing.T) {
		b := copyBundle(t)
		b.otherArchitecture(managerImage)
		newCLI(t, cache).initFails(b.dir, managerImage, "linux/mips")
	})
	t.Run("port of the docker provider taken", func(t *testing.T) {
		l, err := net.Listen("tcp", ":19000")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		newCLI(t, cache).initFails(os.Getenv(envBundle), "docker provider", "19000")
	})
	t.Run("disk for state full", func(t *testing.T) {
		c := newCLI(t, cache)
		if err := os.MkdirAll(c.state, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", c.state, "tmpfs", 0, "size=16m"); err != nil {
			t.Fatalf("mount a small disk: %v (this takes root, as .ci/run has it)", err)
		}
		defer func() {
			if err := syscall.Unmount(c.state, 0); err != nil {
				t.Error(err)
			}
		}()
		c.initFails(os.Getenv(envBundle), "disk for state", c.state)
	})
}
