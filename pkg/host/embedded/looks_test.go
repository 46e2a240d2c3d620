package embedded_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
)

// If nobody can tell whether a host was ever complete, its data stays.
func TestWhatCannotBeReadIsKept(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "control-plane", "data")
	err := os.MkdirAll(filepath.Dir(data), 0o700)
	if err == nil {
		err = os.WriteFile(data, []byte("all that there is"), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "host.json"), []byte(`{"name": "test", "imageDir": "`+dir+`"}`), 0o600)
	}
	if err == nil {
		err = os.Symlink("complete", filepath.Join(dir, "complete")) // leads to itself: neither there nor not there
	}
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h, err := embedded.New("test", embedded.Options{StateDir: dir, Executable: exe, Args: []string{"-test.run=^$"}})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := h.State(t.Context()); err == nil {
		t.Errorf("it is %q", st)
	}
	if err := h.Create(t.Context(), host.CreateOptions{}); err == nil {
		t.Error("it was made anew")
	}
	if content, err := os.ReadFile(data); err != nil || string(content) != "all that there is" {
		t.Errorf("the data: %q, %v", content, err)
	}
}
