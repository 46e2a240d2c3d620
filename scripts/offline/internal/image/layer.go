package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is one entry of a layer: a file on disk, a file with the given content, a symbolic link, or, with none of them,
// a folder.
type File struct {
	Path    string // absolute, in the image
	Source  string // a file on disk
	Content []byte
	Link    string
	Mode    int64 // 0 stands for 0755, or 0644 where there is Content
}

// epoch is the time of every file in an image, so that the same inputs make the same image.
var epoch = time.Unix(0, 0)

// writeLayer writes files as a tar archive. The folders that hold them are added.
func writeLayer(w io.Writer, files []File) error {
	out := tar.NewWriter(w)
	for _, f := range withFolders(files) {
		if err := writeFile(out, f); err != nil {
			return fmt.Errorf("add %s: %w", f.Path, err)
		}
	}
	return out.Close()
}

// withFolders is files with every parent folder before what it holds, in an order that depends on names alone.
func withFolders(files []File) []File {
	all := map[string]File{}
	for _, f := range files {
		f.Path = path.Clean(f.Path)
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			if _, there := all[dir]; !there {
				all[dir] = File{Path: dir}
			}
		}
		all[f.Path] = f
	}
	sorted := make([]File, 0, len(all))
	for _, f := range all {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return sorted
}

func writeFile(out *tar.Writer, f File) error {
	h := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: f.Mode, ModTime: epoch, Format: tar.FormatPAX}
	if h.Mode == 0 {
		h.Mode = 0o755
	}
	switch {
	case f.Link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		return out.WriteHeader(h)
	case f.Source != "":
		return copyFile(out, h, f.Source)
	case f.Content != nil:
		h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Content))
		if f.Mode == 0 {
			h.Mode = 0o644
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		_, err := out.Write(f.Content)
		return err
	default:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return out.WriteHeader(h)
	}
}

func copyFile(out *tar.Writer, h *tar.Header, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return err
}

// fileLayer is an uncompressed layer that lies on disk. Compressing would cost minutes and be undone at once: nothing
// here goes over a network.
type fileLayer struct {
	file   string
	digest v1.Hash
	size   int64
}

// newFileLayer reads the tar archive in file once, to know its digest.
func newFileLayer(file string) (v1.Layer, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, in)
	if err != nil {
		return nil, err
	}
	return &fileLayer{file: file, size: size, digest: v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(sum.Sum(nil))}}, nil
}

func (l *fileLayer) Digest() (v1.Hash, error)             { return l.digest, nil }
func (l *fileLayer) DiffID() (v1.Hash, error)             { return l.digest, nil }
func (l *fileLayer) Compressed() (io.ReadCloser, error)   { return os.Open(l.file) }
func (l *fileLayer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.file) }
func (l *fileLayer) Size() (int64, error)                 { return l.size, nil }
func (l *fileLayer) MediaType() (types.MediaType, error)  { return types.OCIUncompressedLayer, nil }
