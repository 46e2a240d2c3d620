package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links a path may lead over. The kernel has the same limit.
const maxLinks = 40

// realName resolves symbolic links in the folders of name, as a process with a chroot to root would. The result leads over no link. Its
// last element is not resolved: it may be missing or a link. Missing folders are no error.
func realName(root *os.Root, name string) (string, error) {
	done, rest, links := ".", strings.Split(name, "/"), 0
	for len(rest) > 1 {
		element := rest[0]
		rest = rest[1:]
		next, err := step(root, done, element)
		if err != nil {
			return "", err
		}
		if next.link == nil {
			done = next.name
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%q leads over too many links", name)
		}
		done, rest = next.name, append(next.link, rest...)
	}
	return path.Join(done, rest[0]), nil
}

// stepped is the result of a step: the path name, and the elements of the link's target if the step met a link.
type stepped struct {
	name string
	link []string
}

// step goes from the folder dir to the entry element in it.
func step(root *os.Root, dir, element string) (stepped, error) {
	switch element {
	case "", ".":
		return stepped{name: dir}, nil
	case "..":
		return stepped{name: path.Dir(dir)}, nil // of "." it is ".", as at the root
	}
	name := path.Join(dir, element)
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return stepped{name: name}, nil
	}
	if err != nil {
		return stepped{}, err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return stepped{name: name}, nil
	}
	target, err := root.Readlink(name)
	if err != nil {
		return stepped{}, err
	}
	if path.IsAbs(target) {
		dir = "."
	}
	return stepped{name: dir, link: strings.Split(target, "/")}, nil
}

// relativeTarget rewrites the target of a link at name as a relative path, so that without a chroot it leads to the file that the image
// means. name itself must not lead over links.
func relativeTarget(name, target string) string {
	if !path.IsAbs(target) {
		target = path.Join("/", path.Dir(name), target)
	}
	relative, err := filepath.Rel(path.Join("/", path.Dir(name)), path.Clean(target))
	if err != nil {
		return "." // cannot be: both are absolute
	}
	return relative
}

// Program returns the path on this machine of the program name, which is a path in the image, or a name to find in the image's PATH. The
// error is fs.ErrNotExist if the image has no such program.
func (i Image) Program(name string) (string, error) {
	root, err := os.OpenRoot(i.Root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	candidates := []string{name}
	if !strings.Contains(name, "/") {
		candidates = candidates[:0]
		for dir := range strings.SplitSeq(i.pathVariable(), ":") {
			candidates = append(candidates, path.Join(dir, name))
		}
	} else if !path.IsAbs(name) {
		candidates[0] = path.Join("/", i.Config.WorkingDir, name)
	}
	for _, candidate := range candidates {
		found, err := executable(root, strings.TrimLeft(path.Clean(candidate), "/"))
		if err == nil {
			return filepath.Join(i.Root, filepath.FromSlash(found)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("image %s: %s: %w", i.Ref, name, err)
		}
	}
	return "", fmt.Errorf("image %s has no program %s: %w", i.Ref, name, fs.ErrNotExist)
}

// pathVariable is PATH as the image sets it.
func (i Image) pathVariable() string {
	for _, e := range i.Config.Env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			return value
		}
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// executable resolves all links of name. It fails if the result is not a program.
func executable(root *os.Root, name string) (string, error) {
	for range maxLinks {
		resolved, err := realName(root, name)
		if err != nil {
			return "", err
		}
		info, err := root.Lstat(resolved)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				return "", errors.New("it is not a program")
			}
			return resolved, nil
		}
		target, err := root.Readlink(resolved)
		if err != nil {
			return "", err
		}
		name = path.Join(path.Dir(resolved), target)
	}
	return "", errors.New("it leads over too many links")
}

// File returns the path on this machine of a file of the image, or "" if the image has none of that name.
func (i Image) File(name string) string {
	root, err := os.OpenRoot(i.Root)
	if err != nil {
		return ""
	}
	defer root.Close()
	name = strings.TrimLeft(path.Clean(name), "/")
	if _, err := root.Stat(name); err != nil { // os.Root also refuses a name that leads out of the image
		return ""
	}
	return filepath.Join(i.Root, filepath.FromSlash(name))
}
