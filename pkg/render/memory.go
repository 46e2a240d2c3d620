package render

import (
	"encoding/hex"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// memory is kustomize's file system in memory for files of any name. That one takes only letters, digits and a few signs, and no space;
// Flux builds on a disk, which takes every name. Other characters become their hexadecimal code behind a colon.
type memory struct{ filesys.FileSystem }

func newMemory() filesys.FileSystem { return memory{filesys.MakeFsInMemory()} }

// WriteFile implements filesys.FileSystem, as the methods below.
func (m memory) WriteFile(name string, content []byte) error {
	return m.FileSystem.WriteFile(inCode(name), content)
}

func (m memory) ReadFile(name string) ([]byte, error) { return m.FileSystem.ReadFile(inCode(name)) }

func (m memory) Open(name string) (filesys.File, error) { return m.FileSystem.Open(inCode(name)) }

func (m memory) IsDir(name string) bool { return m.FileSystem.IsDir(inCode(name)) }

func (m memory) Exists(name string) bool { return m.FileSystem.Exists(inCode(name)) }

func (m memory) ReadDir(name string) ([]string, error) {
	names, err := m.FileSystem.ReadDir(inCode(name))
	for i := range names {
		names[i] = fromCode(names[i])
	}
	return names, err
}

func (m memory) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	dir, file, err := m.FileSystem.CleanedAbs(inCode(name))
	return filesys.ConfirmedDir(fromCode(string(dir))), fromCode(file), err
}

// inCode is a path with only the characters that kustomize's file system in memory takes.
func inCode(name string) string {
	parts := strings.Split(name, string(filepath.Separator))
	for i, part := range parts {
		if part == filesys.SelfDir || part == filesys.ParentDir {
			continue
		}
		var b strings.Builder
		for at := range len(part) {
			c := part[at]
			dots := c == '.' && at > 0 && part[at-1] == '.' // which it refuses, too
			isPlain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.", c) >= 0
			if isPlain && !dots {
				b.WriteByte(c)
				continue
			}
			b.WriteString(":" + hex.EncodeToString([]byte{c}))
		}
		parts[i] = b.String()
	}
	return strings.Join(parts, string(filepath.Separator))
}

func fromCode(name string) string {
	first, rest, found := strings.Cut(name, ":")
	if !found {
		return name
	}
	var b strings.Builder
	b.WriteString(first)
	for part := range strings.SplitSeq(rest, ":") {
		c, _ := hex.DecodeString(part[:2]) // inCode has written it
		b.Write(c)
		b.WriteString(part[2:])
	}
	return b.String()
}
