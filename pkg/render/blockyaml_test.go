package render

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/render/internal/codec"
)

// What the fast way reads, the library reads as the same.
func sameJSON(t testing.TB, text []byte) bool {
	t.Helper()
	n := codec.ReadBlock(text)
	if n == nil {
		return false
	}
	got := n.AppendJSON(nil)
	want, err := toJSON(text)
	if err != nil {
		t.Fatalf("the library refuses what is read as %s: %v\n%s", got, err, text)
	}
	if c := contentIn(n); c != nil {
		slow, err := newContent(want)
		if err != nil || c.identity != slow.identity {
			t.Fatalf("known as %v, and to the library as %v (%v)\n%s", c.identity, slow, err, text)
		}
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("read as\n%s\nand by the library as\n%s\n%s", got, want, text)
	}
	return true
}

// The fast way reads nearly all that the charts make.
func TestReadBlock(t *testing.T) {
	files, err := filepath.Glob("../../templates/testdata/golden/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files (%v)", err)
	}
	all, read := 0, 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range split(content) {
			if _, ok := d.start(); !ok {
				continue
			}
			all++
			if sameJSON(t, d.text) {
				read++
			} else {
				t.Logf("for the library, in %s:\n%s", file, d.text)
			}
		}
	}
	t.Logf("%d of %d", read, all)
	if all < 100 || read < all*9/10 {
		t.Errorf("%d of %d documents are read the fast way", read, all)
	}
}

func TestReadBlockLeavesToTheLibrary(t *testing.T) {
	for _, text := range []string{
		"a: 1.5\n", "a: 010\n", "a: yes\n", "on: a\n", "a: 1e3\n", "a: 0x1\n", "a: 1_000\n", "a: 2026-01-01\n",
		"a: 1:30\n", "a: ~\n", "a: !x b\n",
		"a: &x b\n", "a: *x\n", "<<: {a: b}\n", "a: b: c\n", "a: b\na: c\n", "a: b\n c: d\n", "a: b\n\n c\n", "a: 1\n b\n", "a: b\n # c\n d\n",
		"a: 'b\n c'\n", "\"a\":\"b\"\n", "a:\n  {b: c}\n  d\n", "a: >\n  b\n", "a:\tb\n", "a: b # c\n", "- a\n", "a\n",
		"a: \"b\n", "a: 'b''c'\n", "a: [b\n", "a: [b c: d]\n", "a: {b}\n", "a: {b: c, b: d}\n", "a: {1: c}\n", "? a\n: b\n", "a: |\n\n  b\n",
		"a: é\n", "a: b\r\n", "{a: b}\n",
		"a: |+\n  b\n", "a: |\n  b", "a: |2\n    b\n", "a:\n  b: c\n d: e\n", "a: \"\\x41\"\n", "...\n", "a: b\n...\nc: d\n", "%a\n", "a: @b\n",
		"a: `b\n", "a: \"b\" c\n",
		"a: " + strings.Repeat("[", 1<<20) + "\n", "a:\n" + strings.Repeat("- ", 1<<20) + "b\n",
	} {
		if n := codec.ReadBlock([]byte(text)); n != nil {
			t.Errorf("%q is read as %s", text, n.AppendJSON(nil))
		}
	}
}

func TestReadBlockReads(t *testing.T) {
	for _, text := range []string{
		"a:\n- - b\n  - c: d\n    e: f\n- - - g\n", "a:\n  {}\nb:\n  [c, {\"d\":\"e\"}]\n", "a: b\n c\n",
		"a: b\n  c\n  >d - e\nf:\n- g h\n  - i\n- j: k\n    l\n",
		"a: {\"b\":1,\"c\":\"d\\u003c\"}\n",
	} {
		if !sameJSON(t, []byte(text)) {
			t.Errorf("%q is not read", text)
		}
	}
}

func FuzzReadBlock(f *testing.F) {
	for _, text := range []string{
		"a: b\nc:\n- d\n- e: f\n  g: 1\nh:\n  i: |\n    j\n\n    k\n  l: |-\n    m\nn: [o, \"p\", 3]\nq: [{\"r\":\"s\\u003c\"}]\nt: {}\nu: " +
			"''\nv:\nw: true\n",
		"a:\n- - b\n  - c: d\n    e: f\n- - - g\n", "a:\n  {}\nb:\n  [c, {\"d\":\"e\"}]\n",
		"a: b\n  c\n  >d - e\nf:\n- g h\n  - i\n- j: k\n    l\n", "a: {\"b\":1,\"c\":\"d\"}\n",
		"# x\na: --b=c,d\n\"e f\": 'g'\n", "a:\n  - b: c\n    d:\n    - e\n", "a: x:y\nb: /c/d\nc: ./e\n", "a:\nb:\n  c:\nd:\n",
		"apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: \"b\"}\n", "a: b\n  \nc: |\n  d\n   e\n# f\n", "a: 1m\nb: 10g\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 1<<12 && Screen("a.yaml", text) == nil && len(split(text)) == 1 {
			sameJSON(t, text)
		}
	})
}
