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
	"github.com/fleetctl/fleetctl/pkg/within"
)

// snapshot has the files of a commit, for a process without a Git repository.
type snapshot struct {
	Commit string
	Files  []snapshotFile
}

// snapshotFile is a file of a snapshot. It has no content if it is not a regular file, if it is larger than any file
// that is read, or if the clone lacks the content.
type snapshotFile struct {
	Path    string
	Mode    fs.FileMode
	Size    int64
	Content []byte
	// Absent: the clone does not have its content.
	Absent bool
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
			err = f.read(files, entry)
		}
		s.Files = append(s.Files, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", commit, err)
	}
	return s, nil
}

// read reads a file. To ask for its size first takes as long as reading it, so it does not ask if the name belongs to a
// file that is usually small.
func (f *snapshotFile) read(files fs.FS, entry fs.DirEntry) error {
	if !slices.Contains([]string{".yaml", ".yml", ".tpl", ".json", ".md"}, path.Ext(f.Path)) {
		info, err := entry.Info()
		if errors.Is(err, gitrepo.ErrNotHere) { // such a file, for example a picture, may not be needed
			f.Absent = true
			return nil
		}
		if err != nil {
			return err
		}
		if f.Size = info.Size(); f.Size > int64(render.Limits.Bytes) {
			return nil
		}
	}
	content, err := fs.ReadFile(files, f.Path)
	if errors.Is(err, within.ErrTooLarge) { // such a file has only its size in a comparison
		info, err := entry.Info()
		if err == nil {
			f.Size = info.Size()
		}
		return err
	}
	if err != nil {
		return err
	}
	if f.Size = int64(len(content)); f.Size <= int64(render.Limits.Bytes) {
		f.Content = content
	}
	return nil
}

// AppendBinary implements encoding.BinaryAppender, in less time than gob takes.
func (s *sides) AppendBinary(dst []byte) ([]byte, error) {
	size := len(dst) + 1<<12
	for _, side := range []*snapshot{s.Before, s.After} {
		if side != nil {
			for i := range side.Files {
				size += len(side.Files[i].Content) + len(side.Files[i].Path) + 17
			}
		}
	}
	p := newPacker(size)
	p.out = append(p.out, dst...)
	p.text(s.Dir)
	p.text(s.CacheDir)
	for _, side := range []*snapshot{s.Before, s.After} {
		p.flag(side != nil)
		if side != nil {
			side.pack(p)
		}
	}
	return p.out, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. The files are parts of text.
func (s *sides) UnmarshalBinary(text []byte) error {
	u := &unpacker{in: text}
	s.Dir, s.CacheDir = u.text(), u.text()
	for _, side := range []**snapshot{&s.Before, &s.After} {
		if u.flag() {
			*side = unpackSnapshot(u)
		}
	}
	return u.done()
}

func (s *snapshot) pack(p *packer) {
	p.text(s.Commit)
	p.unsigned(uint64(len(s.Files)))
	for i := range s.Files {
		f := &s.Files[i]
		p.bytes([]byte(f.Path))
		p.unsigned(uint64(f.Mode))
		p.unsigned(uint64(f.Size)) //nolint:gosec // of a file
		p.bytes(f.Content)
		p.flag(f.Absent)
	}
}

func unpackSnapshot(u *unpacker) *snapshot {
	s := &snapshot{Commit: u.text()}
	s.Files = make([]snapshotFile, u.count())
	for i := range s.Files {
		f := &s.Files[i]
		f.Path, f.Mode, f.Size = string(u.bytes()), fs.FileMode(u.unsigned()), int64(u.unsigned()) //nolint:gosec // what was written
		f.Content, f.Absent = u.bytes(), u.flag()
	}
	return s
}

// files returns the snapshot as a file system.
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

// errAbsent has the text of gitrepo.ErrNotHere, for a process without a Git repository.
var errAbsent = errors.New("the clone does not have its content: a partial clone leaves contents out, and git fetch --refetch " +
	"--no-filter brings them")

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

// snapshotInfo describes a file, or a folder if it has no file.
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

// ModTime is not known, and nothing in a fleet depends on it.
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
	case f.info.file.Absent:
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errAbsent}
	case int64(len(f.info.file.Content)) != f.info.file.Size:
		return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errTooLarge}
	}
	return f.Reader.Read(p)
}
