// Package node makes the images that stand for machines: the kind node, and the load balancer that the docker provider
// puts before control planes. It needs root and debootstrap, and no container engine.
package node

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/fleetctl/fleetctl/scripts/offline/internal/cache"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/command"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/image"
	"github.com/fleetctl/fleetctl/scripts/offline/internal/recipe"
)

//go:embed rootfs.sh
var rootfsScript string

//go:embed files
var overlay embed.FS

// suite is the Debian release that nodes run.
const suite = "bookworm"

// packages are what a node needs beyond Debian's base, and what the load balancer's image is cut out of.
const packages = "systemd,dbus,conntrack,iptables,nftables,iproute2,ethtool,util-linux,mount,kmod,socat,ebtables,ipset," +
	"runc,libseccomp2,pigz,e2fsprogs,bash,ca-certificates,curl,jq,procps,haproxy,busybox-static"

// mirrorVariable names another place for debootstrap to find the packages than its own default.
const mirrorVariable = "FLEETCTL_DEBIAN_MIRROR"

// Builder makes node images.
type Builder struct {
	Cache     *cache.Cache
	KindFiles string            // kind's images/base/files
	Programs  map[string]string // paths by name
}

// Missing says why node images cannot be made on this machine; nil if they can.
func Missing() error {
	var missing []error
	if runtime.GOOS != "linux" {
		missing = append(missing, fmt.Errorf("this is %s, and nodes are Linux", runtime.GOOS))
	}
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("not root: debootstrap and chroot need it"))
	}
	for _, program := range []string{"debootstrap", "jq", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, fmt.Errorf("no %s: apt-get install %s, or run setup-engine.sh", program, program))
		}
	}
	return errors.Join(missing...)
}

// Debian returns a folder with the root file system of a fresh Debian that has the packages of a node.
func (b Builder) Debian(ctx context.Context) (string, error) {
	key := cache.NewKey("debian/1").Add("packages", suite, packages, runtime.GOARCH)
	dir, err := b.Cache.Make(ctx, "node-debian", key, func(ctx context.Context, dir string) error {
		args := []string{"debootstrap", "--variant=minbase", "--include=" + packages, suite, filepath.Join(dir, "root")}
		if source := os.Getenv(mirrorVariable); source != "" {
			args = append(args, source)
		}
		_, err := command.Command{Args: args}.Run(ctx)
		return err
	})
	return filepath.Join(dir, "root"), err
}

// layer returns the tar archive of a node's root file system without any image in it.
func (b Builder) layer(ctx context.Context, debian string) (string, error) {
	key := cache.NewKey("node-layer/1").Add("debian", debian).Add("script", rootfsScript).Add("kind", b.KindFiles)
	for _, p := range recipe.Node {
		key.Add(p.Name, b.Programs[p.Name])
	}
	if err := fs.WalkDir(overlay, "files", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := overlay.ReadFile(name)
		key.Add(name, string(content))
		return err
	}); err != nil {
		return "", err
	}
	dir, err := b.Cache.Make(ctx, "node-layer", key, func(ctx context.Context, dir string) error {
		return b.makeLayer(ctx, debian, dir)
	})
	return filepath.Join(dir, "layer.tar"), err
}

func (b Builder) makeLayer(ctx context.Context, debian, dir string) error {
	root, over, programs := filepath.Join(dir, "root"), filepath.Join(dir, "overlay"), filepath.Join(dir, "programs")
	script := filepath.Join(dir, "rootfs.sh")
	files, err := fs.Sub(overlay, "files")
	if err != nil {
		return err
	}
	if err := errors.Join(os.CopyFS(over, files), os.WriteFile(script, []byte(rootfsScript), 0o755), os.Mkdir(programs, 0o755)); err != nil {
		return err
	}
	for _, p := range recipe.Node {
		if err := os.Symlink(b.Programs[p.Name], filepath.Join(programs, p.Name)); err != nil {
			return err
		}
	}
	steps := [][]string{
		{"cp", "-a", debian, root},
		{"bash", script, root, b.KindFiles, over, programs, recipe.Kubernetes, recipe.PauseImage},
		{
			"tar", "--create", "--numeric-owner", "--sort=name", "--exclude=./dev/*", "--file", filepath.Join(dir, "layer.tar"),
			"--directory", root, ".",
		},
		{"rm", "-rf", root, over, programs, script},
	}
	for _, args := range steps {
		if _, err := (command.Command{Args: args}).Run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Image returns a node image that has the given images in its containerd.
func (b Builder) Image(ctx context.Context, name, debian string, images map[string]v1.Image) (v1.Image, error) {
	layer, err := b.layer(ctx, debian)
	if err != nil {
		return nil, err
	}
	key := cache.NewKey("node-image/1").Add("layer", layer).Add("containerd", b.Programs["containerd"], b.Programs["ctr"])
	for _, ref := range sortedRefs(images) {
		digest, err := images[ref].Digest()
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", ref, err)
		}
		key.Add(ref, digest.String())
	}
	dir, err := b.Cache.Make(ctx, name, key, func(ctx context.Context, dir string) error {
		content := filepath.Join(dir, "images.tar")
		if err := b.importImages(ctx, images, content); err != nil {
			return err
		}
		if err := image.WriteLayers(dir, nodeConfig, layer, content); err != nil {
			return err
		}
		return os.Remove(content)
	})
	if err != nil {
		return nil, err
	}
	return image.Read(dir)
}

// nodeConfig is that of kind's base image: systemd stops on its own signal, and asks whether it is in a container.
var nodeConfig = image.Config{
	Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
	Env:        []string{"container=docker"},
	StopSignal: "SIGRTMIN+3",
}
