package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// tarEntry is one entry of a hand-made archive.
type tarEntry struct {
	header  tar.Header
	content string
}

// makeArchive writes entries to a .tar.zst.
func makeArchive(t testing.TB, file string, entries ...tarEntry) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.header
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Size == 0 {
			h.Size = int64(len(e.content))
		}
		h.Mode = 0o644
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil && !strings.Contains(err.Error(), "missed writing") {
		t.Fatal(err)
	}
	_ = w.Close() // an entry that lies about its size cannot be closed
	writeFile(t, file, compress(t, b.Bytes()))
}

func compress(t testing.TB, content []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(content, nil)
}

func writeFile(t testing.TB, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// bundleEntries returns the entries of a valid archive.
func bundleEntries(t *testing.T) []tarEntry {
	t.Helper()
	dir := newBundle(t)
	var entries []tarEntry
	for _, file := range listFiles(t, dir) {
		content, err := os.ReadFile(file)
		must(t, err)
		rel, err := filepath.Rel(dir, file)
		must(t, err)
		entries = append(entries, tarEntry{tar.Header{Name: filepath.ToSlash(rel)}, string(content)})
	}
	return entries
}

func TestHostileArchives(t *testing.T) {
	blob := blobsDir + "/" + strings.Repeat("a", 64)
	file := func(name string) tarEntry { return tarEntry{tar.Header{Name: name}, "evil"} }
	link := func(kind byte, name, to string) tarEntry {
		return tarEntry{header: tar.Header{Typeflag: kind, Name: name, Linkname: to}}
	}
	for name, tt := range map[string]struct {
		entries []tarEntry
		limits  Limits
		entry   string // the entry that the error must name
	}{
		"traversal":        {entries: []tarEntry{file("../evil")}, entry: "../evil"},
		"deep traversal":   {entries: []tarEntry{file("blobs/sha256/../../../evil")}, entry: "blobs/sha256/../../../evil"},
		"absolute":         {entries: []tarEntry{file("/tmp/evil")}, entry: "/tmp/evil"},
		"absolute blob":    {entries: []tarEntry{file("/" + blob)}, entry: "/" + blob},
		"backslashes":      {entries: []tarEntry{file(`..\evil`)}, entry: `..\evil`},
		"drive":            {entries: []tarEntry{file(`C:evil`)}, entry: `C:evil`},
		"other file":       {entries: []tarEntry{file("blobs/sha256/evil")}, entry: "blobs/sha256/evil"},
		"short digest":     {entries: []tarEntry{file(blob[:len(blob)-1])}, entry: blob[:len(blob)-1]},
		"long digest":      {entries: []tarEntry{file(blob + "a")}, entry: blob + "a"},
		"terminal codes":   {entries: []tarEntry{file("evil\x1b[2J\n")}, entry: "evil\x1b[2J\n"},
		"other folder":     {entries: []tarEntry{{header: tar.Header{Typeflag: tar.TypeDir, Name: "../evil/"}}}, entry: "../evil/"},
		"symlink":          {entries: []tarEntry{link(tar.TypeSymlink, blob, "/etc/passwd")}, entry: blob},
		"symlinked folder": {entries: []tarEntry{link(tar.TypeSymlink, "blobs", "/tmp"), file(blob)}, entry: "blobs"},
		"hard link":        {entries: []tarEntry{link(tar.TypeLink, blob, "/etc/passwd")}, entry: blob},
		"character device": {entries: []tarEntry{link(tar.TypeChar, blob, "")}, entry: blob},
		"block device":     {entries: []tarEntry{link(tar.TypeBlock, blob, "")}, entry: blob},
		"pipe":             {entries: []tarEntry{link(tar.TypeFifo, blob, "")}, entry: blob},
		"twice":            {entries: []tarEntry{file(blob), file("./" + blob)}, entry: "./" + blob},
		"entries": {
			entries: []tarEntry{file(blob), file(indexFile)},
			limits:  Limits{Entries: 1, Bytes: 1 << 20, Ratio: 9}, entry: indexFile,
		},
		"size that is a lie": {entries: []tarEntry{{tar.Header{Name: blob, Size: 1 << 50}, "evil"}}, entry: blob},
		"zeros":              {entries: []tarEntry{{tar.Header{Name: blob}, strings.Repeat("\x00", 18<<20)}}, entry: blob},
		"bytes": {
			entries: []tarEntry{{tar.Header{Name: blob}, "12345"}},
			limits:  Limits{Entries: 9, Bytes: 4, Ratio: 9}, entry: "",
		},
		"huge extended names": {entries: []tarEntry{file(strings.Repeat("a", 500<<10))}, entry: "aaa"},
	} {
		for where, opts := range map[string]func(string) []Option{
			"temporary": func(string) []Option { return nil },
			"cached":    func(dir string) []Option { return []Option{WithCache(filepath.Join(dir, "cache"))} },
		} {
			t.Run(name+" "+where, func(t *testing.T) {
				dir := t.TempDir()
				temp := filepath.Join(dir, "temp")
				must(t, os.Mkdir(temp, 0o755))
				t.Setenv("TMPDIR", temp)
				archive := filepath.Join(dir, "b.tar.zst")
				makeArchive(t, archive, tt.entries...)
				options := opts(dir)
				if tt.limits.Entries > 0 {
					options = append(options, withLimits(tt.limits))
				}
				_, err := Open(t.Context(), archive, options...)
				var refused *RefusedError
				if !errors.As(err, &refused) || !strings.Contains(refused.Entry, tt.entry) {
					t.Errorf("error %v, want a refusal that names %q", err, tt.entry)
				}
				if strings.ContainsAny(err.Error(), "\x1b\n") {
					t.Errorf("error %q is not fit for a terminal", err)
				}
				for _, left := range listFiles(t, dir) {
					if left != archive && !strings.HasSuffix(left, ".lock") {
						t.Errorf("%s was written", left)
					}
				}
			})
		}
	}
}

func TestDamagedArchives(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.tar.zst")
	must(t, Pack(t.Context(), newBundle(t), good))
	content, err := os.ReadFile(good)
	must(t, err)
	for name, damaged := range map[string][]byte{
		"empty":     {},
		"gzip":      {0x1f, 0x8b, 8, 0, 0, 0, 0, 0},
		"magic":     content[:4],
		"half":      content[:len(content)/2],
		"checksum":  content[:len(content)-1],
		"flipped":   append(append(bytes.Clone(content[:len(content)/2]), content[len(content)/2]^1), content[len(content)/2+1:]...),
		"no tar":    compress(t, []byte(strings.Repeat("no tar at all ", 100))),
		"empty tar": compress(t, make([]byte, 1024)),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name+".tar.zst")
			writeFile(t, file, damaged)
			if _, err := Open(t.Context(), file); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Other archives: one of a damaged bundle, and one that tar made.
func TestOtherArchives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.tar.zst")
	entries := bundleEntries(t)
	dotted := []tarEntry{
		{header: tar.Header{Typeflag: tar.TypeDir, Name: "./"}},
		{header: tar.Header{Typeflag: tar.TypeDir, Name: "./blobs/sha256/"}},
	}
	for _, e := range entries {
		dotted = append(dotted, tarEntry{tar.Header{Name: "./" + e.header.Name}, e.content})
	}
	makeArchive(t, file, dotted...)
	must(t, openBundle(t, file).Verify(t.Context()))

	for i, e := range entries {
		if !blobName.MatchString(e.header.Name) {
			continue
		}
		entries[i].content = "x" + e.content[1:]
		makeArchive(t, file, entries...)
		var corrupt *CorruptError
		if _, err := Open(t.Context(), file); !errors.As(err, &corrupt) || !strings.HasSuffix(e.header.Name, corrupt.Blob[len("sha256:"):]) {
			t.Errorf("%s flipped: %v", e.header.Name, err)
		}
		entries[i].content = e.content
	}
}

// withLimits replaces DefaultLimits.
func withLimits(l Limits) Option { return func(o *options) { o.limits = l } }
