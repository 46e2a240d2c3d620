package embedded

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever a host has left in its folder, or a disk has made of it: what is read is the same when it is written again, and a process that
// is not there is never taken for one.
func FuzzFolder(f *testing.F) {
	f.Add(
		[]byte(
			`{"formatVersion":"1","name":"mgmt","kubernetesVersion":"v1.36.3","images":{"Etcd":"etcd:3"},"imageDir":"/x","mirrors":{"docker.io":"http://127.0.0.1:5000"},"programs":{"Etcd":"/bin/etcd"}}`,
		),
	)
	f.Add([]byte(`{"pid":1234,"startTime":5678,"boot":"0f0e"}`))
	f.Add([]byte(`{"pid":-1}`))
	f.Add([]byte(`{"ready":true}`))
	f.Add([]byte(`{"error":"no ports\n","hint":"%s"}`))
	f.Add([]byte(`{"mirrors":{"a":`))
	f.Add([]byte("null\n"))
	dir := stateDir(f.TempDir())
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, name := range []string{configFile, identityFile} {
			if err := os.WriteFile(dir.path(name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if id, err := dir.supervisor(); err == nil && id.PID <= 1 && id.Alive() {
			t.Errorf("process %d is alive", id.PID)
		}
		if holder := dir.holder(); !strings.HasPrefix(holder, "another supervisor") {
			t.Errorf("%q has it", holder)
		}
		if err := listenTo(t.Context(), io.NopCloser(strings.NewReader(string(content)+"\n"))); err == nil &&
			!strings.Contains(strings.ToLower(string(content)), "ready") {
			t.Errorf("%q is taken for ready", content)
		}
		c, err := dir.readConfig()
		if err != nil {
			if !strings.Contains(err.Error(), configFile) {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if err := dir.writeConfig(c); err != nil {
			t.Fatal(err)
		}
		again, err := dir.readConfig()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
