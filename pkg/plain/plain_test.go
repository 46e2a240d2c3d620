package plain

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// hostile are texts that somebody else chose, each with the effect that it must not have.
var hostile = []string{
	"prod\x1b[2J\x1b[1;1H✓ all is well",
	"prod\r✓ all is well",
	"prod\n✓ management cluster prod",
	"\u009b31mred, without an escape",
	"\x9b31m: a byte that is no UTF-8",
	"user\u202e gpj.exe",
	"\u2066isolated\u2069 \u200fright \u061c \u200bnothing \ufeffnothing",
	"tag \U000e0041\U000e007f",
	"\u2028line\u2029paragraph\u0085next",
	"::add-mask::x",
	"  \t::set-output name=x::y",
	"a\n::error::b",
	"\u00a0::set-output name=x::y",
	"\u2003 \u3000::error::x",
	"\u200d\ufe0f::error::x",
	"::\u200d::error::x, and :\u200d:error::x",
	"prod\u3164, prod\u034f, prod\U000e0100, prod\ufe01: all look like prod",
	"text ##[command]x and ##vso[task.setvariable variable=x]y",
	"bell \a, backspace \b\b\b, delete \x7f, nul \x00",
	"\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\",
}

// command is what a runner of CI acts on: GitHub's takes leading blanks of any alphabet away, and looks for ##[ anywhere. It compares as
// people do, to whom joiners are nothing.
var command = regexp.MustCompile(`(?m)^[\s\p{Z}\x{200c}\x{200d}\x{fe0f}]*:[\x{200c}\x{200d}\x{fe0f}]*:|##[A-Za-z]*\[`)

// shown fails the test where text may do something to who reads it.
func shown(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: no UTF-8: %q", what, text)
	}
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		if r != '\n' && r != '\t' && Hidden(r) {
			t.Errorf("%s: %U in %q", what, r, text)
		}
	}
	if at := command.FindString(text); at != "" {
		t.Errorf("%s: the command %q in %q", what, at, text)
	}
}

func guard(parts ...string) string {
	var b bytes.Buffer
	g := &Guard{W: &b}
	for _, part := range parts {
		if n, err := g.Write([]byte(part)); err != nil || n != len(part) {
			panic(err)
		}
	}
	return b.String()
}

func TestHostileText(t *testing.T) {
	for _, text := range hostile {
		shown(t, "guard", guard(text+"\n"))
		if line := Line(text); strings.ContainsAny(line, "\n\r\t") {
			t.Errorf("%q is more than a line", line)
		}
		if s := Unbroken(text); strings.ContainsAny(s, "\n\r\t\v\f\u0085\u2028\u2029") {
			t.Errorf("%q is more than a line", s)
		}
	}
}

func TestGuard(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain: text, ünïcödé ✓ 👩‍🚀 — a::b c:: d\n", "plain: text, ünïcödé ✓ 👩‍🚀 — a::b c:: d\n"},
		{"a\tb\r\nc\n", "a\tb\r\nc\n"},
		{"# heading\n## heading [x]\n", "# heading\n## heading [x]\n"},
		{"a\x1b[31mb\n", "a\\x1b[31mb\n"},
		{"a\rb\n", "a\\rb\n"},
		{"x\u202ey\u009bz\xff\n", "x\\u202ey\\x9bz\\xff\n"},
		{" ::error::x\n", " :\\:error::x\n"},
		{"\u00a0\u3000::error::x\n", "\u00a0\u3000:\\:error::x\n"},
		{"1 ❤️ 👩‍🚀 a\u00a0::b\n", "1 ❤️ 👩‍🚀 a\u00a0::b\n"},
		{"##[x] ##vso[y]\n", "##\\[x] ##vso\\[y]\n"},
		{Red.String() + "bad" + Reset.String() + "\n", "\x1b[31mbad\x1b[0m\n"},
		{Command.String() + "error title=a" + Command.String() + "b::c\n", "::error title=a::b::c\n"},
		{Dim.String() + "::error::x\n", "\x1b[2m:\\:error::x\n"},
		{mark() + "?" + "\x1b" + "r\n", "\\x1b" + mark()[1:] + "?\\x1br\n"},
	} {
		if got := guard(c.in); got != c.want {
			t.Errorf("%q\ngot  %q\nwant %q", c.in, got, c.want)
		}
		if got := guard(strings.Split(c.in, "")...); utf8.ValidString(c.in) && got != c.want {
			t.Errorf("%q, rune by rune\ngot  %q\nwant %q", c.in, got, c.want)
		}
	}
}

// However text comes, it is shown as if it had come whole, and does nothing.
func FuzzGuard(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, at int) {
		whole := guard(text + "\n")
		shown(t, "guard", whole)
		if at = max(0, min(at, len(text))); guard(text[:at], text[at:]+"\n") != whole {
			t.Errorf("%q in two parts\ngot  %q\nwant %q", text, guard(text[:at], text[at:]+"\n"), whole)
		}
		if again := guard(whole); again != whole {
			t.Errorf("%q, guarded twice, is %q", whole, again)
		}
		if Suspicious(text+"\n") != (whole != text+"\n") {
			t.Errorf("%q: suspicious is %v", text, Suspicious(text))
		}
		shown(t, "Line", guard(Line(text)))
		shown(t, "Markdown", guard(Markdown(text)))
	})
}

// JSON and YAML mean the same afterwards, and do nothing to who reads them.
func FuzzData(f *testing.F) {
	for _, text := range hostile {
		f.Add(text, "key")
		f.Add("value", text)
	}
	f.Add("##a", "##[b")
	f.Add(strings.Repeat("a long text ", 30)+"\u202e", "k")
	f.Fuzz(func(t *testing.T, value, key string) {
		if !utf8.ValidString(value) || !utf8.ValidString(key) {
			return // JSON has no such strings
		}
		want := map[string]any{key + "k": value, "list": []any{value, "##plain", map[string]any{key + "n": value}}, "block": value + "\nsecond\n"}
		src, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		text := JSON(src)
		if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v\ngot  %q\nwant %q", err, got, want)
		}
		shown(t, "JSON", string(text))
		if guarded := guard(string(text)); guarded != string(text) {
			t.Errorf("the guard changes it: %q", guarded)
		}
		if src, err = yaml.Marshal(want); err != nil {
			t.Fatal(err)
		}
		if text, err = YAML(src); err != nil {
			t.Fatal(err)
		}
		got = nil
		if err := yaml.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v\ngot  %q\nwant %q\n%s", err, got, want, text)
		}
		shown(t, "YAML", string(text))
		if guarded := guard(string(text)); guarded != string(text) {
			t.Errorf("the guard changes it: %q", guarded)
		}
	})
}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"scales pool general of prod/shop from 3 to 5", "scales pool general of prod/shop from 3 to 5"},
		{"upgrades cluster prod/shop to v1.36.3 (replaces 3 machines)", "upgrades cluster prod/shop to v1.36.3 (replaces 3 machines)"},
		{"50 % of it: all", "50 % of it: all"},
		{"Scale pool md-0 of cluster demo to replicas 3 (#2)", "Scale pool md-0 of cluster demo to replicas 3 (#2)"},
		{"fixes GH-12", "`fixes GH-12`"},
		{"mentions acme/other#2", "`mentions acme/other#2`"},
		{"[click](https://example.com)", "`[click](https://example.com)`"},
		{"![x](//example.com/x.png)", "`![x](//example.com/x.png)`"},
		{"see https://example.com", "`see https://example.com`"},
		{"WWW.example.com", "`WWW.example.com`"},
		{"<img src=x>", "`<img src=x>`"},
		{"@team #12 !3", "`@team #12 !3`"},
		{":red_circle:", "`:red_circle:`"},
		{"a`b``c", "```a`b``c```"},
		{"`a", "`` `a ``"},
		{"- item", "`- item`"},
		{"a\r| b |", "`a\\r| b |`"},
		{"*bold* _it_", "`*bold* _it_`"},
	} {
		if got := Markdown(c.in); got != c.want {
			t.Errorf("%q\ngot  %q\nwant %q", c.in, got, c.want)
		}
	}
	if got, want := Fenced("diff", "a\n```\n\u202e\r````x\n"), "`````diff\na\n```\n\\u202e\\r````x\n`````\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A text of any size takes a bounded part of a line, and leaves no colour behind.
func TestUnbrokenIsBounded(t *testing.T) {
	for name, text := range map[string]string{
		"long": strings.Repeat("x", 10<<20), "line ends": strings.Repeat("\n", 10<<20), "of wide characters": strings.Repeat("é\u2028", 1<<20),
	} {
		s := Unbroken(text)
		if len(s) > 7*MaxText || !utf8.ValidString(s) || !strings.HasSuffix(s, "…") {
			t.Errorf("%s: %d bytes", name, len(s))
		}
	}
	if s := Unbroken(Dim.String() + strings.Repeat("x", MaxText) + Reset.String()); !strings.HasSuffix(s, "…"+Reset.String()) {
		t.Errorf("the colour stays: %q", s[len(s)-40:])
	}
	if s := strings.Repeat("x", MaxText); Unbroken(s) != s {
		t.Error("a text at the bound is cut")
	}
}
