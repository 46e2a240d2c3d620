package secret

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// testKey is for these tests alone.
func testKey(t testing.TB) Keys {
	t.Helper()
	keys, err := ParseKeys(read(t, "key.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func decode(t *testing.T, content []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(content, &v); err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	return v
}

func ruleFor(keys Keys) Rule {
	return Rule{Recipients: keys.Recipients(), EncryptedRegex: SecretFields}
}

// Files that the sops program (3.13.3) has encrypted can be read, comments and types included, for each way to choose fields.
func TestDecryptWhatSOPSWrote(t *testing.T) {
	want := decode(t, read(t, "plain.yaml"))
	for _, name := range []string{"by-sops.yaml", "by-sops-all.yaml", "by-sops-mac-only.yaml"} {
		t.Run(name, func(t *testing.T) {
			got, err := Decrypt(read(t, name), testKey(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, decode(t, got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, comment := range []string{"# the password of the shop", "# two", "# lines", "# first", "# of items", "# inline"} {
				if !bytes.Contains(got, []byte(comment)) {
					t.Errorf("the comment %q is lost:\n%s", comment, got)
				}
			}
		})
	}
}

func TestEncryptAndBack(t *testing.T) {
	keys, plain := testKey(t), read(t, "plain.yaml")
	sealed, err := Encrypt(plain, ruleFor(keys))
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{"correct horse", "first", "123456789012", "shop", "žluť"} {
		if bytes.Contains(sealed, []byte(leak)) {
			t.Errorf("%q is in clear:\n%s", leak, sealed)
		}
	}
	if some, err := Recipients(sealed); err != nil || len(some) == 0 {
		t.Errorf("it is not known whom it is encrypted for: %v, %v", some, err)
	}
	if some, err := Recipients(plain); err == nil {
		t.Errorf("a file in clear is taken for one that is encrypted for %v", some)
	}
	got, err := Decrypt(sealed, keys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, plain), decode(t, got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := Encrypt(sealed, ruleFor(keys)); err == nil {
		t.Error("it was encrypted twice")
	}
}

// Any byte of an encrypted value, or of the code over all values, and any value in clear, that is not what was encrypted is found.
func TestFlippedBytesAreFound(t *testing.T) {
	keys := testKey(t)
	sealed, err := Encrypt(read(t, "plain.yaml"), ruleFor(keys))
	if err != nil {
		t.Fatal(err)
	}
	flips := 0
	for at := range sealed {
		line := lineAt(sealed, at)
		if from := bytes.Index(line, []byte(": ENC[")); from < 0 || at-bytes.LastIndexByte(sealed[:at], '\n')-1 < from+2 {
			continue
		}
		changed := bytes.Clone(sealed)
		changed[at] ^= 1
		if got, err := Decrypt(changed, keys); err == nil && !cmp.Equal(decode(t, got), decode(t, read(t, "plain.yaml"))) {
			t.Errorf("byte %d, in %q, is not missed", at, line)
		}
		flips++
	}
	if flips < 1000 {
		t.Errorf("only %d flips", flips)
	}
	for _, swap := range [][2]string{
		{"name: all", "name: al"},
		{"namespace: default", "namespace: kube-system"},
		{"type: Opaque", "type: other"},
	} {
		if _, err := Decrypt(bytes.Replace(sealed, []byte(swap[0]), []byte(swap[1]), 1), keys); err == nil {
			t.Errorf("%s became %s, and nobody said so", swap[0], swap[1])
		}
	}
}

func lineAt(content []byte, at int) []byte {
	from, to := bytes.LastIndexByte(content[:at], '\n')+1, bytes.IndexByte(content[at:], '\n')
	return content[from : at+to]
}

// A value moved to another field does not decrypt.
func TestMovedValue(t *testing.T) {
	keys := testKey(t)
	sealed, err := Encrypt([]byte("kind: Secret\nstringData:\n  a: first\n  b: other\n"), ruleFor(keys))
	if err != nil {
		t.Fatal(err)
	}
	swapped := strings.NewReplacer("  a: ENC", "  b: ENC", "  b: ENC", "  a: ENC").Replace(string(sealed))
	if _, err := Decrypt([]byte(swapped), keys); err == nil {
		t.Error("values that changed places decrypt")
	}
}

func TestOtherKey(t *testing.T) {
	sealed, err := Encrypt(read(t, "plain.yaml"), ruleFor(testKey(t)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range []Keys{nil, {other}} {
		if _, err := Decrypt(sealed, keys); !errors.Is(err, ErrNoKey) {
			t.Errorf("with %v: %v", keys, err)
		}
	}
}

func TestUpdateKeepsWhatStays(t *testing.T) {
	keys := testKey(t)
	sealed, err := Encrypt([]byte("kind: Secret\nstringData:\n  # why\n  a: first\n  b: other\n"), ruleFor(keys))
	if err != nil {
		t.Fatal(err)
	}
	updated, err := Update(sealed, []byte("kind: Secret\nstringData:\n  # why\n  a: first\n  b: new\n  c: more\n"), keys)
	if err != nil {
		t.Fatal(err)
	}
	before, after := strings.Split(string(sealed), "\n"), strings.Split(string(updated), "\n")
	for i, line := range before[:4] { // the comment and a
		if after[i] != line {
			t.Errorf("line %d changed:\n%s\n%s", i+1, line, after[i])
		}
	}
	if before[4] == after[4] {
		t.Error("the changed value did not")
	}
	got, err := Decrypt(updated, keys)
	if err != nil || !strings.Contains(string(got), "c: more") {
		t.Errorf("%s\n%v", got, err)
	}
}

func TestRotate(t *testing.T) {
	keys := testKey(t)
	sealed, err := Encrypt(read(t, "plain.yaml"), ruleFor(keys))
	if err != nil {
		t.Fatal(err)
	}
	next, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := Rotate(sealed, keys, []string{next.Recipient()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decrypt(rotated, keys); !errors.Is(err, ErrNoKey) {
		t.Errorf("the old key: %v", err)
	}
	if _, err := Decrypt(rotated, Keys{next}); err != nil {
		t.Error(err)
	}
	if bytes.Equal(lineAt(sealed, bytes.Index(sealed, []byte("password"))), lineAt(rotated, bytes.Index(rotated, []byte("password")))) {
		t.Error("the data key is the old one")
	}
}

func TestRefused(t *testing.T) {
	keys := testKey(t)
	for name, content := range map[string]string{
		"two objects":   "a: b\n---\nc: d\n",
		"a list":        "- a\n",
		"nothing":       "",
		"no secret":     "kind: ConfigMap\n",
		"an alias":      "data:\n  a: &x b\n  c: *x\n",
		"no YAML":       "a: [\n",
		"a huge number": "data:\n  a: 123456789012345678901234567890000000000000000000000\n  b: 18446744073709551615\n",
	} {
		if out, err := Encrypt([]byte(content), ruleFor(keys)); err == nil {
			t.Errorf("%s was encrypted:\n%s", name, out)
		}
	}
	if _, err := Encrypt([]byte("data: {a: b}\n"), Rule{EncryptedRegex: SecretFields}); err == nil {
		t.Error("it was encrypted for nobody")
	}
	if _, err := Decrypt([]byte("data: {a: b}\nsops: {pgp: [{fp: x}], age: []}\n"), keys); err == nil ||
		!strings.Contains(err.Error(), "pgp") {
		t.Errorf("a file with other keys: %v", err)
	}
}

func TestRules(t *testing.T) {
	keys := testKey(t)
	content := NewRules(keys.Recipients())
	rules, err := ParseRules(content)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := rules.For("a/b/git-auth.sops.yaml")
	if diff := cmp.Diff(ruleFor(keys), rule); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := rules.For("a/b/secret.yaml"); err == nil {
		t.Error("a file of another name has a rule")
	}
	next, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	replaced, err := Replace(content, keys.Recipients(), []string{next.Recipient()})
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(string(content), keys[0].Recipient(), next.Recipient(), 1); string(replaced) != want {
		t.Errorf("got\n%s\nwant\n%s", replaced, want)
	}
}

func TestKeysStayPrivate(t *testing.T) {
	keys := testKey(t)
	private := strings.TrimSpace(strings.SplitN(string(read(t, "key.txt")), "\n", 2)[1])
	if s := keys[0].String() + keys[0].GoString(); strings.Contains(s, private) {
		t.Error("a printed key is its private half")
	}
	if _, err := ParseKeys([]byte(private[:30])); err == nil || strings.Contains(err.Error(), private[:30]) {
		t.Errorf("the error quotes the key: %v", err)
	}
	again, err := ParseKeys(keys.File())
	if err != nil || !cmp.Equal(again.Recipients(), keys.Recipients()) {
		t.Errorf("%v %v", again, err)
	}
}

func FuzzDecrypt(f *testing.F) {
	for _, name := range []string{"by-sops.yaml", "by-sops-all.yaml", "plain.yaml"} {
		f.Add(read(f, name))
	}
	keys := testKey(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		plain, err := Decrypt(content, keys)
		if err != nil {
			return
		}
		sealed, err := Encrypt(plain, Rule{Recipients: keys.Recipients()})
		if err != nil {
			return // nothing in it
		}
		if _, err := Decrypt(sealed, keys); err != nil {
			t.Errorf("cannot be decrypted again: %v", err)
		}
	})
}

// For every set of rules: the new key takes the place of the replaced key in the rules that have the replaced key, and in no others. A
// second run changes nothing.
func FuzzRules(f *testing.F) {
	f.Add(NewRules([]string{"age1old", "age1other"}))
	f.Add([]byte("creation_rules: # all\n- {path_regex: a, age: 'age1old , age1new'}\n- age: >-\n    age1old,\n    age1other\n- " +
		"path_regex: '['\n- age: \"\"\n"))
	f.Add([]byte("creation_rules:\n- &a {age: age1old}\n- *a\n- age: [age1old]\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		rules, err := ParseRules(content)
		if err != nil {
			return
		}
		if rule, err := rules.For("a.sops.yaml"); err == nil &&
			slices.ContainsFunc(rule.Recipients, func(r string) bool { return strings.ContainsAny(r, ", \n") }) {
			t.Errorf("recipients %q", rule.Recipients)
		}
		replaced, err := Replace(content, []string{"age1old"}, []string{"age1new"})
		if err != nil {
			return
		}
		after, err := ParseRules(replaced)
		if err != nil || len(after.rules) != len(rules.rules) {
			t.Fatalf("of %v became %v, %v", rules, after, err)
		}
		for i, before := range rules.rules {
			want := splitKeys(before.Age)
			if slices.Contains(want, "age1old") {
				want = append(slices.DeleteFunc(want, func(r string) bool { return r == "age1old" || r == "age1new" }), "age1new")
			}
			got := after.rules[i]
			if !slices.Equal(splitKeys(got.Age), want) || got.PathRegex != before.PathRegex || got.EncryptedRegex != before.EncryptedRegex {
				t.Errorf("rule %d is %+v, and was %+v", i, got, before)
			}
		}
		if again, err := Replace(replaced, []string{"age1old"}, []string{"age1new"}); err != nil || !bytes.Equal(again, replaced) {
			t.Errorf("a second time: %q, %v", again, err)
		}
	})
}
