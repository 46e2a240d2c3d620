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
		layer(t, entry{name: "a/one", content: "1"}, entry{name: "a/two", content: "2"}, entry{name: "b/old", content: "o"},
			entry{name: "c", content: "c"}),
		layer(t, entry{name: "a/.wh.one"}, entry{name: "b/.wh..wh..opq"}, entry{name: "b/new", content: "n"},
			entry{name: "c/now/a/folder", content: "f"}),
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

// A hard link to a link means what the image means by it, at its own place, and nothing outside.
func TestHardLinksToLinks(t *testing.T) {
	img := mustLoad(t, image(t, runtime.GOARCH, layer(t,
		entry{name: "etc/real", content: "real"}, entry{name: "x/etc/real", content: "other"},
		entry{name: "a/b/c/absolute", link: "/etc/real"}, entry{name: "x/one", link: "a/b/c/absolute", typ: tar.TypeLink},
		entry{name: "a/relative", link: "../etc/real"}, entry{name: "x/y/two", link: "a/relative", typ: tar.TypeLink},
		entry{name: "a/up", link: "../../../../../../etc/real"}, entry{name: "three", link: "a/up", typ: tar.TypeLink},
		entry{name: "same", content: "same"}, entry{name: "same", link: "same", typ: tar.TypeLink},
		entry{name: "sticky", content: "s", mode: 0o6755},
	)))
	for name, want := range map[string]string{"x/one": "real", "x/y/two": "other", "three": "real", "same": "same"} {
		content, err := os.ReadFile(filepath.Join(img.Root, name))
		if err != nil || string(content) != want {
			t.Errorf("%s: %q, %v", name, content, err)
		}
		if path := img.File(name); path == "" {
			t.Errorf("%s is no file of the image", name)
		}
	}
	if info, err := os.Stat(filepath.Join(img.Root, "sticky")); err != nil || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		t.Errorf("sticky: %v, %v", info, err)
	}
}

func TestHostileLayers(t *testing.T) {
	for what, layers := range map[string][][]entry{
		"traversal":            {{{name: "../../escaped", content: "x"}}},
		"absolute":             {{{name: "/escaped/../../../escaped", content: "x"}}},
		"link out":             {{{name: "out", link: "../../../.."}, {name: "out/escaped", content: "x"}}},
		"absolute link out":    {{{name: "out", link: "OUTSIDE"}, {name: "out/escaped", content: "x"}}},
		"link out, next layer": {{{name: "out", link: "../../../../.."}}, {{name: "out/escaped", content: "x"}}},
		"link at the name":     {{{name: "escaped", link: "OUTSIDE/escaped"}}, {{name: "escaped", content: "x"}}},
		"link chain": {{
			{name: "d/e/f", link: "../.."},
			{name: "d/e/f/g", link: "../../../../.."},
			{name: "g/escaped", content: "x"},
		}},
		"hard link out":         {{{name: "escaped", link: "../../../victim", typ: tar.TypeLink}}},
		"hard link over a link": {{{name: "out", link: "OUTSIDE"}, {name: "mine", link: "out/victim", typ: tar.TypeLink}}},
		"hard link to a link out": {{
			{name: "a/b/c/d/e/f/g/h/i/in", link: "OUTSIDE"},
			{name: "out", link: "a/b/c/d/e/f/g/h/i/in", typ: tar.TypeLink},
		}},
		"hard link to a relative link": {{
			{name: "a/b/c/d/in", link: "../../../../victim"},
			{name: "victim", content: "mine"},
			{name: "x/out", link: "a/b/c/d/in", typ: tar.TypeLink},
		}},
		"hard link to a link, and through it": {{
			{name: "a/b/c/d/e/f/g/h/i/in", link: "OUTSIDE"},
			{name: "out", link: "a/b/c/d/e/f/g/h/i/in", typ: tar.TypeLink},
			{name: "out/escaped", content: "x"},
		}},
		"hard link to a link, over it": {{
			{name: "a/b/c/d/e/f/g/h/i/in", link: "OUTSIDE/escaped"},
			{name: "escaped", link: "a/b/c/d/e/f/g/h/i/in", typ: tar.TypeLink},
		}, {{name: "escaped", content: "x"}}},
		"hard link to a hard link to a link": {{
			{name: "a/b/c/d/e/f/g/h/i/in", link: "OUTSIDE"},
			{name: "p/q/r/on", link: "a/b/c/d/e/f/g/h/i/in", typ: tar.TypeLink},
			{name: "out", link: "p/q/r/on", typ: tar.TypeLink},
		}},
		"hard link through a hard link to a link": {{
			{name: "a/b/c/d/e/f/g/h/i/in", link: "OUTSIDE"},
			{name: "out", link: "a/b/c/d/e/f/g/h/i/in", typ: tar.TypeLink},
			{name: "mine", link: "out/victim", typ: tar.TypeLink},
		}},
		"absolute hard link":    {{{name: "mine", link: "OUTSIDE/victim", typ: tar.TypeLink}}},
		"hard link to a folder": {{{name: "d/"}, {name: "mine", link: "d", typ: tar.TypeLink}}},
		"whiteout over a hard link to a link": {{
			{name: "a/b/c/d/e/f/g/h/i/in", link: "OUTSIDE"},
			{name: "out", link: "a/b/c/d/e/f/g/h/i/in", typ: tar.TypeLink},
		}, {{name: "out/.wh.victim"}, {name: "out/.wh..wh..opq"}}},
		"whiteout of nothing": {{{name: "d/.wh."}, {name: ".wh."}, {name: "d/.wh.."}}},
		"whiteout out":        {{{name: "out", link: "OUTSIDE"}}, {{name: "out/.wh.victim"}}},
		"opaque out":          {{{name: "out", link: "OUTSIDE"}}, {{name: "out/.wh..wh..opq"}}},
		"whiteout of dotdot":  {{{name: ".wh..."}}, {{name: ".wh..."}}},
		"loop":                {{{name: "a", link: "b"}, {name: "b", link: "a"}, {name: "a/f", content: "x"}}},
		"device": {{
			{name: "dev/sda", typ: tar.TypeBlock},
			{name: "dev/null", typ: tar.TypeChar},
			{name: "pipe", typ: tar.TypeFifo},
		}},
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
				if d.Type()&fs.ModeSymlink != 0 {
					leadsOut(t, s, p)
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

// leadsOut fails the test where the text of a link points out of the layer or image that it is in, whether or not anything is there.
func leadsOut(t *testing.T, s *Store, link string) {
	t.Helper()
	target, err := os.Readlink(link)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{layersDir, imagesDir} {
		within, err := filepath.Rel(filepath.Join(s.dir, dir), link)
		if err != nil || !filepath.IsLocal(within) {
			continue
		}
		top, rest, _ := strings.Cut(within, string(filepath.Separator))
		if dir == imagesDir && rest == "root" {
			continue // ours: an image of one layer is that layer
		}
		if to, err := filepath.Rel(filepath.Join(s.dir, dir, top),
			filepath.Join(filepath.Dir(link), target)); err != nil || !filepath.IsLocal(to) || filepath.IsAbs(target) {
			t.Errorf("%s points to %s", link, target)
		}
	}
}
