// Package image makes container images out of files on disk, without a container engine or a registry.
package image

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Config is how a container of the image starts.
type Config struct {
	Entrypoint []string
	User       string
	Env        []string
	StopSignal string
}

// PathEnv is the search path of a container whose programs lie in the usual places.
const PathEnv = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// users names root and the user that release images run as; programs that look up who they are fail without it.
const users = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"

const group = "root:x:0:\nnonroot:x:65532:\n"

// certificateFiles are where the systems that build images keep the authorities they trust.
var certificateFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/cert.pem",
}

// Base is what every image of a static program holds beside it: users, a place for temporary files, and the
// certificate authorities of this machine.
func Base() ([]File, error) {
	files := []File{
		{Path: "/etc/passwd", Content: []byte(users)},
		{Path: "/etc/group", Content: []byte(group)},
		{Path: "/etc/nsswitch.conf", Content: []byte("hosts: files dns\n")},
		{Path: "/home/nonroot", Mode: 0o777},
		{Path: "/tmp", Mode: 0o1777},
	}
	for _, file := range certificateFiles {
		if _, err := os.Stat(file); err == nil {
			return append(files, File{Path: "/etc/ssl/certs/ca-certificates.crt", Source: file, Mode: 0o644}), nil
		}
	}
	return nil, errors.New("no certificate authorities on this machine: install the package ca-certificates")
}

// Write makes an image with one layer that holds files, in the folder dir; Read reads it back.
func Write(dir string, files []File, config Config) error {
	layer := filepath.Join(dir, "layer.tar")
	if err := writeTar(layer, files); err != nil {
		return err
	}
	if err := WriteLayers(dir, config, layer); err != nil {
		return err
	}
	return os.Remove(layer)
}

// WriteLayers makes an image of layers that lie in tar archives.
func WriteLayers(dir string, config Config, archives ...string) error {
	img := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	for _, archive := range archives {
		layer, err := newFileLayer(archive)
		if err != nil {
			return err
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			return err
		}
	}
	img, err := configure(img, config)
	if err != nil {
		return err
	}
	return store(dir, img)
}

// Extend makes an image of base and one more layer.
func Extend(dir string, base v1.Image, archive string) error {
	layer, err := newFileLayer(archive)
	if err != nil {
		return err
	}
	img, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return err
	}
	return store(dir, img)
}

// Read returns the image that Write made in dir. Its layers stay on disk until they are asked for.
func Read(dir string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("read the image in %s: %w", dir, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the image in %s: %w", dir, err)
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("read the image in %s: it holds %d images, not one", dir, len(manifest.Manifests))
	}
	return index.Image(manifest.Manifests[0].Digest)
}

func configure(img v1.Image, config Config) (v1.Image, error) {
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Created = v1.Time{Time: epoch}
	file.Config = v1.Config{
		Entrypoint: config.Entrypoint,
		User:       config.User,
		Env:        append([]string{PathEnv}, config.Env...),
		StopSignal: config.StopSignal,
	}
	return mutate.ConfigFile(img, file)
}

func store(dir string, img v1.Image) error {
	out, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return out.AppendImage(img)
}

func writeTar(file string, files []File) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buffered := bufio.NewWriterSize(f, 1<<20)
	if err := writeLayer(buffered, files); err != nil {
		return err
	}
	return buffered.Flush()
}
