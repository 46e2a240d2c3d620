package images

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// tarOf makes a layer of lines such as "f bin/tool", "d etc", "l bin/sh /bin/tool", "h bin/ash bin/tool".
func tarOf(lines string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for line := range strings.Lines(lines) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		h := &tar.Header{Name: words[len(words)-1], Mode: 0o755, Typeflag: tar.TypeReg, Size: 1}
		if len(words) > 2 {
			h.Name, h.Linkname = words[1], words[2]
		}
		if kinds := map[string]byte{
			"d": tar.TypeDir, "l": tar.TypeSymlink, "h": tar.TypeLink, "c": tar.TypeChar,
			"p": tar.TypeFifo,
		}; kinds[words[0]] != 0 {
			h.Typeflag, h.Size = kinds[words[0]], 0
		}
		if w.WriteHeader(h) == nil { // what cannot be written to an archive is not read from one
			_, _ = w.Write(make([]byte, h.Size))
		}
	}
	_ = w.Close() // it says again what WriteHeader did
	return b.Bytes()
}

// Whatever the layers of an image hold, nothing of them gets out of their folders, no link leads out, and nothing is left but files,
// folders and links.
func FuzzLayers(f *testing.F) {
	for _, layers := range [][2]string{
		{"f usr/bin/tool\nl bin /usr/bin\nd etc\n", "f bin/other\nh bin/alias bin/other\nf usr/bin/.wh.tool\n"},
		{"f ../../escaped\n", "f /escaped/../../../escaped\n"},
		{"l out ../../../..\nf out/escaped\n", "f out/escaped\n"},
		{"l d/e/f ../..\nl d/e/f/g ../../../../..\nf g/escaped\n", "f d/e/f/.wh..wh..opq\n"},
		{"h escaped ../../victim\nl out /tmp\nh mine out/victim\n", "f out/.wh.victim\nf .wh...\n"},
		{"l a b\nl b a\nf a/f\n", "d a\nf b/c\n"},
		{"c dev/null\np pipe\nd .\nf ./\n", "l dev/null /dev/null\nd dev/null\n"},
	} {
		f.Add(layers[0], layers[1])
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		if len(first)+len(second) > 1<<11 {
			return // names as deep as a tree takes nothing but time
		}
		base := t.TempDir()
		merged := filepath.Join(base, "merged")
		dirs := []string{merged}
		if err := os.Mkdir(merged, 0o700); err != nil {
			t.Fatal(err)
		}
		for i, lines := range []string{first, second} {
			dir := filepath.Join(base, []string{"first", "second"}[i])
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, dir)
			if err := unpackLayer(bytes.NewReader(tarOf(lines)), dir); err != nil {
				break
			}
			if err := mergeLayer(t.Context(), dir, merged); err != nil {
				break
			}
		}
		entries, err := os.ReadDir(base)
		if err != nil || len(entries) != len(dirs) {
			t.Errorf("beside %v there are %v, %v", dirs, entries, err)
		}
		for _, dir := range dirs {
			if err := walk(dir, func(name string, info fs.DirEntry) error { return sound(t, dir, name, info) }); err != nil {
				t.Error(err)
			}
		}
	})
}

// sound checks one entry of an unpacked layer.
func sound(t *testing.T, dir, name string, info fs.DirEntry) error {
	t.Helper()
	switch info.Type() {
	case 0, fs.ModeDir:
		return nil
	case fs.ModeSymlink:
		target, err := os.Readlink(filepath.Join(dir, name))
		if leads := path.Join(path.Dir(name), target); err != nil || path.IsAbs(target) || leads != "." && !filepath.IsLocal(leads) {
			t.Errorf("%s leads to %q, %v", name, target, err)
		}
	default:
		t.Errorf("%s is a %s", name, info.Type())
	}
	return nil
}
