package change

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// A chart is found in the commit in which it had the wanted content, whatever later commits have changed.
func TestChartHistory(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append(
			[]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	commit := func(name, content string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-qm", name)
	}
	git("init", "-q")
	first := []manifest.File{{Path: "charts/x/Chart.yaml", Content: []byte("one\n")}}
	history := ChartHistory(t.Context(), dir)
	commit("fleet.yaml", "")
	if files, err := history("x", scaffold.Digest(first)); err != nil || files != nil {
		t.Errorf("before there was one: %v, %v", files, err)
	}
	commit("charts/x/Chart.yaml", "one\n")
	commit("charts/x/Chart.yaml", "two\n")
	commit("README.md", "unrelated\n")
	if files, err := history("x", scaffold.Digest(first)); err != nil || len(files) != 1 || string(files[0].Content) != "one\n" {
		t.Errorf("got %v, %v", files, err)
	}
	if files, err := history("x", "0000"); err != nil || files != nil {
		t.Errorf("what never was: %v, %v", files, err)
	}
}
