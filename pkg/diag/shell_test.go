package diag

import "testing"

func TestShellCommand(t *testing.T) {
	got := ShellCommand("host", "exec", "--", "sh", "-c", "echo 'a' > b", "", "--set", "a.b=…")
	if want := `host exec -- sh -c 'echo '\''a'\'' > b' '' --set a.b=…`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
