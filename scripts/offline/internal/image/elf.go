package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// libraryDirs are where a Debian system keeps shared libraries.
var libraryDirs = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"}

// Closure returns the programs and everything that they need to start (libraries, loader, links on the way) as files of
// an image. The paths are below root, which holds a whole system; a path may be a pattern.
func Closure(root string, patterns ...string) ([]File, error) {
	c := closure{root: root, files: map[string]File{}}
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no file matches %s in %s", pattern, root)
		}
		for _, file := range found {
			if err := c.add(strings.TrimPrefix(file, root)); err != nil {
				return nil, err
			}
		}
	}
	files := make([]File, 0, len(c.files))
	for _, f := range c.files {
		files = append(files, f)
	}
	return files, nil
}

type closure struct {
	root  string
	files map[string]File
}

// add takes the file in, what a link leads to, and what a program links to.
func (c closure) add(name string) error {
	name = merged(name)
	if _, there := c.files[name]; there {
		return nil
	}
	file := filepath.Join(c.root, name)
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(file)
		if err != nil {
			return err
		}
		c.files[name] = File{Path: name, Link: target}
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(name), target)
		}
		return c.add(path.Clean(target))
	}
	c.files[name] = File{Path: name, Source: file, Mode: int64(info.Mode().Perm())}
	return c.addLibraries(name, file)
}

func (c closure) addLibraries(name, file string) error {
	is, err := isELF(file)
	if !is || err != nil {
		return err // a script or data
	}
	program, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("read the program %s: %w", name, err)
	}
	defer func() { _ = program.Close() }()
	libraries, err := program.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read what %s links to: %w", name, err)
	}
	if loader := interpreter(program); loader != "" {
		if err := c.add(loader); err != nil {
			return err
		}
	}
	for _, library := range libraries {
		found := slices.IndexFunc(libraryDirs, func(dir string) bool {
			_, err := os.Lstat(filepath.Join(c.root, dir, library))
			return err == nil
		})
		if found < 0 {
			return fmt.Errorf("%s needs the library %s, which is not in %s", name, library, c.root)
		}
		if err := c.add(path.Join(libraryDirs[found], library)); err != nil {
			return err
		}
	}
	return nil
}

// isELF says whether the file starts as programs and libraries do.
func isELF(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	start := make([]byte, len(elf.ELFMAG))
	if _, err := io.ReadFull(f, start); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return string(start) == elf.ELFMAG, nil
}

// UsrMerge are the links that make the old names of a Debian system's folders lead to where everything lies now.
func UsrMerge() []File {
	links := make([]File, 0, len(oldDirs))
	for _, dir := range oldDirs {
		links = append(links, File{Path: dir, Link: "usr" + dir})
	}
	return links
}

var oldDirs = []string{"/bin", "/lib", "/lib64", "/sbin"}

// merged is the path without the links of UsrMerge.
func merged(name string) string {
	for _, dir := range oldDirs {
		if strings.HasPrefix(name, dir+"/") {
			return "/usr" + name
		}
	}
	return name
}

// interpreter is the loader that the kernel starts the program with.
func interpreter(program *elf.File) string {
	section := program.Section(".interp")
	if section == nil {
		return ""
	}
	content, err := section.Data()
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(content), "\x00")
}
