package gitrepo

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Whatever is in a git configuration: it is read without harm, every name of a variable is as git writes it, and what a program called git
// prints is read as it was meant.
func FuzzSettings(f *testing.F) {
	for _, text := range []string{
		"[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n[gpg \"ssh\"]\n\tprogram = \"C:\\\\Program Files\\\\ssh-keygen.exe\"\n[user]\n" +
			"\tsigningKey = key::ssh-ed25519 AAAA me@host # c\n",
		"[core]\n\tbare\n[a \"b.c\"]\nD=1\nd=2\n", "[include]\n\tpath = ~/other\n[includeIf \"gitdir:~/clients/\"]\n\tpath = .gitconfig-work\n",
		"[a]\nb = \"x\\\ny\" ; c\n", "[", "[a \"\\\"]", "\ufeff[a]\nb=c\n", "[user]\n\tname = a\x00b\n",
	} {
		f.Add(text, "user.signingkey", "a\nb")
	}
	f.Add("", "", "ab\nb")
	f.Fuzz(func(t *testing.T, text, name, value string) {
		files := &configFiles{settings: settings{}, lists: map[string][]string{}}
		if err := files.readFrom(strings.NewReader(text), filepath.Join(t.TempDir(), "config"), maxIncludes); err == nil {
			all := files.settings
			for name := range all {
				section, _, ok := strings.Cut(name, ".")
				if !ok || section != strings.ToLower(section) {
					t.Errorf("%q is no name of a variable", name)
				}
				all.on(name)
			}
		}
		if strings.ContainsAny(name, "\n\x00") || strings.Contains(value, "\x00") {
			return // nor does git take them
		}
		got := listed("first.entry\n1\x00" + name + "\n" + value + "\x00bare.word\x00")
		if _, ok := got[""]; ok || name != "" && name != "bare.word" && got[name] != value || got["bare.word"] != "true" || !got.on("bare.word") {
			t.Errorf("%q = %q is read as %v", name, value, got)
		}
	})
}

// Whatever is given as a deploy key: it is refused without a word of it, or its public half is one line that any SSH server takes, of the
// key whose fingerprint is shown.
func FuzzDeployKey(f *testing.F) {
	key, err := GenerateDeployKey("acme")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(key.Private, "fleet acme")
	f.Add(key.Private, "acme\nssh-ed25519 AAAA")
	f.Add([]byte("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----\n"), "")
	f.Add([]byte("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n"),
		"x")
	f.Fuzz(func(t *testing.T, private []byte, comment string) {
		key, err := ParseDeployKey(private, comment)
		if err != nil {
			if text := strings.TrimSpace(string(private)); len(text) > 20 && strings.Contains(err.Error(), text) {
				t.Errorf("the error repeats the key: %v", err)
			}
			return
		}
		public, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(key.Public))
		if err != nil || len(options) > 0 || len(rest) > 0 || strings.Count(key.Public, "\n") != 1 {
			t.Fatalf("%q is not one line: %v", key.Public, err)
		}
		if got := ssh.FingerprintSHA256(public); got != key.Fingerprint {
			t.Errorf("the fingerprint of %q is %s, not %s", key.Public, got, key.Fingerprint)
		}
	})
}
