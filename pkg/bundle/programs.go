package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Programs describes an image of programs. The bundle has this one image under several references.
type Programs struct {
	// Refs are the references.
	Refs []string
	// Files maps paths in the image to files of this machine. The files must not be links.
	Files map[string]string
}

// addPrograms adds the image of p. The same programs give the same image.
func (w *Writer) addPrograms(ctx context.Context, p *Programs, architecture string) (err error) {
	const op = "make an image of programs"
	dir, remove, err := atomicfile.TempFolder("", "programs")
	if err != nil {
		return diag.Wrap(op, err, "free some space, or set TMPDIR")
	}
	defer func() { _ = remove() }() // the folder is temporary
	name := filepath.Join(dir, "layer.tar.gz")
	if err := p.layer(ctx, name); err != nil {
		return diag.Wrap(op, err, "free some space, or set TMPDIR")
	}
	layer, err := tarball.LayerFromFile(name)
	if err != nil {
		return diag.Wrap(op, err, "")
	}
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: architecture, RootFS: v1.RootFS{Type: "layers"}})
	if err == nil {
		img, err = mutate.AppendLayers(img, layer)
	}
	if err != nil {
		return diag.Wrap(op, err, "")
	}
	for _, ref := range p.Refs {
		full, err := FullReference(ref)
		if err != nil {
			return err
		}
		d, err := w.storeImage(ctx, img)
		if err == nil {
			err = w.recordImage(full, d, nil)
		}
		if err != nil {
			return diag.Wrap(op, err, "")
		}
	}
	return nil
}

// layer writes the archive with the programs to the file name. A program with several paths is in the archive once; its other paths are
// links.
func (p *Programs) layer(ctx context.Context, name string) (err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(z)
	paths := make([]string, 0, len(p.Files))
	folders := map[string]bool{}
	for at := range p.Files {
		paths = append(paths, at)
		for dir := path.Dir(at); dir != "/" && dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	slices.Sort(paths)
	var written []program
	for _, at := range paths {
		if written, err = writeProgram(ctx, out, program{path: at}, p.Files[at], written); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), z.Close())
}

// program is a written program with the FileInfo of its source.
type program struct {
	path string
	info os.FileInfo
}

func writeProgram(ctx context.Context, out *tar.Writer, p program, file string, written []program) ([]program, error) {
	in, err := within.OpenNamed(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if p.info, err = in.Stat(); err != nil {
		return nil, err
	}
	h := tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(p.path, "/"), Mode: 0o755, Size: p.info.Size()}
	if i := slices.IndexFunc(written, func(w program) bool { return os.SameFile(w.info, p.info) }); i >= 0 {
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, strings.TrimPrefix(written[i].path, "/"), 0
		return written, out.WriteHeader(&h)
	}
	if err := out.WriteHeader(&h); err != nil {
		return nil, err
	}
	return append(written, p), copyTo(ctx, out, in)
}
