package images

import (
	"archive/tar"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestWhiteouts(t *testing.T) {
	img := mustLoad(t, image(t, runtime.GOARCH,
		layer(t, entry{name: "a/one", content: "1"}, entry{name: "a/two", content: "2"}, entry{name: "b/old", content: "o"}, entry{name: "c", content: "c"}),
		layer(t, entry{name: "a/.wh.one"}, entry{name: "b/.wh..wh..opq"}, entry{name: "b/new", content: "n"}, entry{name: "c/now/a/folder", content: "f"}),
	))
	var got []string
	_ = walk(img.Root, func(name string, d fs.DirEntry) error {
		if !d.IsDir() {
			got = append(got, name)
		}
		return nil
	})
	slices.Sort(got)
	if want := []string{"a/two", "b/new", "c/now/a/folder"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHostileLayers(t *testing.T) {
	for what, layers := range map[string][][]entry{
		"traversal":             {{{name: "../../escaped", content: "x"}}},
		"absolute":              {{{name: "/escaped/../../../escaped", content: "x"}}},
		"link out":              {{{name: "out", link: "../../../.."}, {name: "out/escaped", content: "x"}}},
		"absolute link out":     {{{name: "out", link: "OUTSIDE"}, {name: "out/escaped", content: "x"}}},
		"link out, next layer":  {{{name: "out", link: "../../../../.."}}, {{name: "out/escaped", content: "x"}}},
		"link at the name":      {{{name: "escaped", link: "OUTSIDE/escaped"}}, {{name: "escaped", content: "x"}}},
		"link chain":            {{{name: "d/e/f", link: "../.."}, {name: "d/e/f/g", link: "../../../../.."}, {name: "g/escaped", content: "x"}}},
		"hard link out":         {{{name: "escaped", link: "../../../victim", typ: tar.TypeLink}}},
		"hard link over a link": {{{name: "out", link: "OUTSIDE"}, {name: "mine", link: "out/victim", typ: tar.TypeLink}}},
		"whiteout out":          {{{name: "out", link: "OUTSIDE"}}, {{name: "out/.wh.victim"}}},
		"opaque out":            {{{name: "out", link: "OUTSIDE"}}, {{name: "out/.wh..wh..opq"}}},
		"whiteout of dotdot":    {{{name: ".wh..."}}, {{name: ".wh..."}}},
		"loop":                  {{{name: "a", link: "b"}, {name: "b", link: "a"}, {name: "a/f", content: "x"}}},
		"device":                {{{name: "dev/sda", typ: tar.TypeBlock}, {name: "dev/null", typ: tar.TypeChar}, {name: "pipe", typ: tar.TypeFifo}}},
	} {
		t.Run(what, func(t *testing.T) {
			outside := t.TempDir()
			victim := filepath.Join(outside, "victim")
			if err := os.WriteFile(victim, []byte("untouched"), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(filepath.Join(outside, "deep", "store"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			var all []v1.Layer
			for _, entries := range layers {
				for i := range entries {
					entries[i].link = strings.ReplaceAll(entries[i].link, "OUTSIDE", outside)
				}
				all = append(all, layer(t, entries...))
			}
			loadErr := load(t, s, image(t, runtime.GOARCH, all...))
			if raw, err := os.ReadFile(victim); err != nil || string(raw) != "untouched" {
				t.Errorf("victim: %q %v", raw, err)
			}
			_ = filepath.WalkDir(outside, func(p string, d fs.DirEntry, _ error) error {
				inStore := strings.HasPrefix(p, filepath.Join(s.dir, layersDir)+"/") || strings.HasPrefix(p, filepath.Join(s.dir, imagesDir)+"/")
				if d.Name() == "escaped" && !inStore {
					t.Errorf("escaped to %s", p)
				}
				if d.Type()&(fs.ModeDevice|fs.ModeNamedPipe) != 0 {
					t.Errorf("special file %s", p)
				}
				if d.Type()&fs.ModeSymlink != 0 && !strings.HasPrefix(p, filepath.Join(s.dir, imagesDir)) {
					if target, err := filepath.EvalSymlinks(p); err == nil && !strings.HasPrefix(target, filepath.Join(s.dir, layersDir)) {
						t.Errorf("%s leads to %s", p, target)
					}
				}
				return nil
			})
			if loadErr == nil {
				img, _, _ := s.Lookup(ref)
				_ = walk(img.Root, func(name string, d fs.DirEntry) error {
					if d.Type()&fs.ModeSymlink != 0 {
						target, err := filepath.EvalSymlinks(filepath.Join(img.Root, name))
						if err == nil && target != img.Root && !strings.HasPrefix(target, img.Root+"/") {
							t.Errorf("%s leads to %s", name, target)
						}
					}
					return nil
				})
			}
			nothingLeft(t, s)
		})
	}
}
