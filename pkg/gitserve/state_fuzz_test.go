package gitserve

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// For every state file and every hello line: the state is the same after it is written again, and nothing else is taken for a running
// server.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"repoDir":"/home/me/fleet","listen":"172.18.0.1","port":41234,"username":"fleetctl","password":"secret"}`))
	f.Add([]byte(`{"listen":"fe80::1%eth0","port":-1}`))
	f.Add([]byte(`{"listen":"::","port":99999}`))
	f.Add([]byte(`{"listen":""}`))
	f.Add([]byte(`{"taken":"127.0.0.1:80"}`))
	f.Add([]byte(`{"error":"no"}`))
	f.Add([]byte("4711\n"))
	f.Add([]byte("null"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, name := range []string{stateFile, pidFile} {
			if err := os.WriteFile(filepath.Join(dir, name), content, private); err != nil {
				t.Fatal(err)
			}
		}
		if pid, err := readPID(dir); err == nil && strings.Trim(string(content), " \t\r\n\v\f\u0085\u00a0+-0123456789") != "" {
			t.Errorf("%q is taken for process %d", content, pid)
		}
		if h, err := listenTo(t.Context(), io.NopCloser(strings.NewReader(string(content)+"\n"))); (h == nil) == (err == nil) {
			t.Errorf("both or neither: %v, %v", h, err)
		}
		s, err := readState(dir)
		if err != nil {
			if !strings.Contains(err.Error(), stateFile) {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if err := s.write(dir); err != nil {
			t.Fatal(err)
		}
		again, err := readState(dir)
		if err != nil {
			t.Fatal(err)
		}
		if *s != *again || s.identity() != again.identity() || s.reachable() != again.reachable() {
			t.Errorf("%+v is read again as %+v", s, again)
		}
	})
}
