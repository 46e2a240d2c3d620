package gitrepo

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzKnownHosts gives the reader any known_hosts. No content of the user's own file is an error. Everything that the strict reading
// accepts, the lenient reading accepts too, with the same result. One more unreadable line changes only the strict reading.
func FuzzKnownHosts(f *testing.F) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
	const host = "git.example.com"
	for _, content := range []string{
		host + " " + key + "\n", "[" + host + "]:2222," + host + " " + key, "*." + host + ",!x." + host + " " + key + " comment\r\n",
		"@cert-authority *.example.com " + key, "@revoked " + host + " " + key, "# nobody\n\n", host + " ssh-ed25519 AAAA",
		"|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= " + key, "|1|x|y " + key, host, "", "\x00",
	} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 32<<10 { // a single line may be as long as that
			return
		}
		lenient, err := parseKnownHosts(content, false)
		if err != nil {
			t.Fatalf("the user's own file is refused: %v", err)
		}
		algorithms := func() []string { return lenient.HostKeyAlgorithms(host + ":22") }
		want := algorithms()
		if strict, err := parseKnownHosts(content, true); err == nil {
			if got := strict.HostKeyAlgorithms(host + ":22"); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("algorithms %q, read strictly %q", want, got)
			}
		}
		more := append(bytes.Clone(content), "\nno line of known_hosts\n"...)
		if lenient, err = parseKnownHosts(more, false); err != nil || strings.Join(algorithms(), " ") != strings.Join(want, " ") {
			t.Errorf("with one bad line more: %v, algorithms %q, want %q", err, algorithms(), want)
		}
		if _, err := parseKnownHosts(more, true); err == nil {
			t.Error("the strict reading takes a bad line")
		}
	})
}
