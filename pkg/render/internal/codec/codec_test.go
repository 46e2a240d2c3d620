package codec

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	sigsyaml "sigs.k8s.io/yaml"
)

// documents are all that the charts make of their golden values: what a fleet is made of.
func documents(t testing.TB) [][]byte {
	t.Helper()
	files, err := filepath.Glob("../../../../templates/testdata/golden/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	var all [][]byte
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range bytes.SplitSeq(content, []byte("\n---\n")) {
			all = append(all, append(bytes.TrimPrefix(text, []byte("---\n")), '\n'))
		}
	}
	return all
}

// readsAsLibrary fails where the reader and sigs.k8s.io/yaml differ; false where the reader leaves it to the library.
func readsAsLibrary(t testing.TB, text []byte) bool {
	t.Helper()
	n := ReadBlock(text)
	if n == nil {
		return false
	}
	got := n.AppendJSON(nil)
	want, err := sigsyaml.YAMLToJSONStrict(text)
	if err != nil {
		t.Fatalf("the library refuses what is read as %s: %v\n%s", got, err, text)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("read as\n%s\nand by the library as\n%s\n%s", got, want, text)
	}
	return true
}

// What is read is what sigs.k8s.io/yaml reads, byte for byte, and that is nearly all that charts make.
func TestReadsAsTheLibrary(t *testing.T) {
	all := documents(t)
	read := 0
	for _, text := range all {
		if readsAsLibrary(t, text) {
			read++
		}
	}
	if len(all) < 100 || read < len(all)*9/10 {
		t.Errorf("%d of %d documents are read", read, len(all))
	}
}

// What is written reads as it was, for the library; where PlainYAML is sure, it is what the library writes.
func writesAsLibrary(t testing.TB, src []byte) {
	t.Helper()
	text := AppendYAML(nil, src)
	back, err := sigsyaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("the library does not read what is written: %v\n%s", err, text)
	}
	if !bytes.Equal(back, src) {
		t.Fatalf("written of\n%s\nand read as\n%s\n%s", src, back, text)
	}
	if plain, sure := PlainYAML(src); sure {
		if want, err := sigsyaml.JSONToYAML(src); err != nil || plain != string(want) {
			t.Fatalf("written as\n%s\nand by the library as\n%s (%v)", plain, want, err)
		}
	}
}

func TestWritesAsTheLibrary(t *testing.T) {
	for _, text := range documents(t) {
		if src, err := sigsyaml.YAMLToJSON(text); err == nil && len(src) >= 3 { // else comments alone
			writesAsLibrary(t, src)
		}
	}
}

// FuzzCodec holds the reader and the writer to the library: what both read is the same, and what is written of it reads as that.
func FuzzCodec(f *testing.F) {
	for _, text := range documents(f)[:20] {
		f.Add(text)
	}
	f.Add([]byte("a: b\nc:\n- d\n- e: f\n  g: 1\nh:\n  i: |\n    j\n\n    k\n  l: |-\n    m\nn: [o, \"p\", 3]\nq: [{\"r\":\"s\\u003c\"}]\n" +
		"t: {}\nu: ''\nv:\nw: true\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 || bytes.Contains(text, []byte("---")) {
			return // the reader is given one document
		}
		n := ReadBlock(text)
		if n == nil {
			return
		}
		readsAsLibrary(t, text)
		src := n.AppendJSON(nil)
		writesAsLibrary(t, src)
		// Every field is where the scanner says that it is.
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(src, &fields); err != nil {
			t.Fatal(err)
		}
		for name, want := range fields {
			if slices.ContainsFunc([]byte(name), func(c byte) bool {
				return c == '\\' || c == '"' || c < ' ' || c > '~' || c == '<' || c == '>' || c == '&'
			}) {
				continue // the scanner takes no name that JSON writes in another way
			}
			at, _, ok := SpotOf(src, 0, name)
			if !ok {
				continue // one before it is written so
			}
			if end := SkipJSON(src, at); at == 0 || end < 0 || !bytes.Equal(src[at:end], want) {
				t.Fatalf("%q is at %d to %d of %s", name, at, end, src)
			}
		}
	})
}

// BenchmarkRead reads what the charts make, beside the library.
func BenchmarkRead(b *testing.B) {
	all := slices.DeleteFunc(documents(b), func(text []byte) bool { return ReadBlock(text) == nil })
	size := 0
	for _, text := range all {
		size += len(text)
	}
	b.Run("codec", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, text := range all {
				ReadBlock(text).AppendJSON(nil)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, text := range all {
				if _, err := sigsyaml.YAMLToJSON(text); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkWrite writes it again, beside the library.
func BenchmarkWrite(b *testing.B) {
	var all [][]byte
	size := 0
	for _, text := range documents(b) {
		if n := ReadBlock(text); n != nil {
			all = append(all, n.AppendJSON(nil))
			size += len(all[len(all)-1])
		}
	}
	b.Run("codec", func(b *testing.B) {
		b.SetBytes(int64(size))
		var buffer []byte
		for b.Loop() {
			for _, src := range all {
				buffer = AppendYAML(buffer[:0], src)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, src := range all {
				if _, err := sigsyaml.JSONToYAML(src); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
