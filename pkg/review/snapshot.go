package review

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// snapshot is the files of a commit, for who has no Git repository.
type snapshot struct {
	Commit string
	Files  []snapshotFile
}

// snapshotFile is one of them. Of one that is no regular file, or larger than what anybody reads, there is no content.
type snapshotFile struct {
	Path    string
	Mode    fs.FileMode
	Size    int64
	Content []byte
}

func snapshotOf(git *gitrepo.Repo, commit string) (*snapshot, error) {
	files, err := git.Files(commit)
	if err != nil {
		return nil, err
	}
	s := &snapshot{Commit: commit}
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f := snapshotFile{Path: name, Mode: entry.Type()}
		if f.Mode.IsRegular() {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if f.Size = info.Size(); f.Size <= int64(render.Limits.Bytes) {
				if f.Content, err = fs.ReadFile(files, name); err != nil {
					return err
				}
			}
		}
		s.Files = append(s.Files, f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", commit, err)
	}
	return s, nil
}

// files are a file system of them.
func (s *snapshot) files() fs.FS {
	t := &snapshotFS{byPath: map[string]*snapshotFile{}, folders: map[string][]string{".": nil}}
	for i := range s.Files {
		f := &s.Files[i]
		t.byPath[f.Path] = f
		for name := f.Path; name != "."; name = path.Dir(name) {
			parent := path.Dir(name)
			_, known := t.folders[parent]
			t.folders[parent] = append(t.folders[parent], path.Base(name))
			if known {
				break
			}
		}
	}
	for _, names := range t.folders {
		slices.Sort(names)
	}
	return t
}

type snapshotFS struct {
	byPath  map[string]*snapshotFile
	folders map[string][]string
}

var errTooLarge = errors.New("it is larger than what is read")

// Open implements fs.FS.
func (t *snapshotFS) Open(name string) (fs.File, error) {
	info, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	opened := &snapshotOpen{info: info}
	if info.file != nil {
		opened.Reader = bytes.NewReader(info.file.Content)
	}
	return opened, nil
}

// Stat implements fs.StatFS.
func (t *snapshotFS) Stat(name string) (fs.FileInfo, error) {
	info, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return info, nil
}

// ReadDir implements fs.ReadDirFS.
func (t *snapshotFS) ReadDir(name string) ([]fs.DirEntry, error) {
	names, ok := t.folders[name]
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	out := make([]fs.DirEntry, len(names))
	for i, short := range names {
		out[i] = fs.FileInfoToDirEntry(snapshotInfo{short, t.byPath[path.Join(name, short)]})
	}
	return out, nil
}

func (t *snapshotFS) find(operation, name string) (snapshotInfo, error) {
	if f := t.byPath[name]; f != nil {
		return snapshotInfo{path.Base(name), f}, nil
	}
	if _, folder := t.folders[name]; folder {
		return snapshotInfo{name: path.Base(name)}, nil
	}
	return snapshotInfo{}, &fs.PathError{Op: operation, Path: strings.Clone(name), Err: fs.ErrNotExist}
}

// snapshotInfo is a file, or where it has none a folder.
type snapshotInfo struct {
	name string
	file *snapshotFile
}

func (i snapshotInfo) Name() string { return i.name }
func (i snapshotInfo) IsDir() bool  { return i.file == nil }
func (i snapshotInfo) Sys() any     { return nil }

func (i snapshotInfo) Size() int64 {
	if i.file == nil {
		return 0
	}
	return i.file.Size
}

func (i snapshotInfo) Mode() fs.FileMode {
	if i.file == nil {
		return fs.ModeDir | 0o555
	}
	return i.file.Mode | 0o444
}

// ModTime is not known: nothing of a fleet depends on it.
func (i snapshotInfo) ModTime() time.Time { return time.Time{} }

type snapshotOpen struct {
	info snapshotInfo
	*bytes.Reader
}

func (f *snapshotOpen) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *snapshotOpen) Close() error               { return nil }

func (f *snapshotOpen) Read(p []byte) (int, error) {
	switch {
	case f.Reader == nil:
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: fs.ErrInvalid}
	case int64(len(f.info.file.Content)) != f.info.file.Size:
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errTooLarge}
	}
	return f.Reader.Read(p)
}
