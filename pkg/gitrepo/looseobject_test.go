package gitrepo

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// Whoever may write into .git can put an object there that is longer than it says, or the index of a pack that says that it has more
// objects than it has. fleetctl refuses both before they fill the memory.
func TestFilesThatLie(t *testing.T) {
	const most, size = 1 << 20, 16 << 20
	SetShelf(t, most, 512<<20)
	object := func(head string, fill byte) []byte {
		var packed bytes.Buffer
		w := zlib.NewWriter(&packed)
		if _, err := fmt.Fprintf(w, "%s%s", head, bytes.Repeat([]byte{fill}, size)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return packed.Bytes()
	}
	for name, test := range map[string]struct {
		lie  func(loose string) error
		says string
	}{
		"content": {func(loose string) error { return os.WriteFile(loose, object("blob 100\x00", 'a'), 0o600) }, "longer than it says"},
		"size":    {func(loose string) error { return os.WriteFile(loose, object("blob ", '9'), 0o600) }, "longer than it says"},
		"type":    {func(loose string) error { return os.WriteFile(loose, object("b", 'b'), 0o600) }, "longer than it says"},
		"an index": {func(loose string) error {
			dir := filepath.Join(filepath.Dir(loose), "..", "pack")
			names, err := filepath.Glob(filepath.Join(dir, "*.idx"))
			if err != nil || len(names) != 1 {
				return fmt.Errorf("indexes: %v, %w", names, err)
			}
			content, err := os.ReadFile(names[0])
			if err != nil {
				return err
			}
			copy(content[8:8+1024], bytes.Repeat([]byte{0, 8, 0, 0}, 256)) // half a million objects
			if err := os.Remove(names[0]); err != nil {
				return err
			}
			return os.WriteFile(names[0], content, 0o600)
		}, "inconsistent with object count"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			gittest.Git(t, dir, "init", "--quiet", "--initial-branch", "main")
			if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a: b\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			gittest.Git(t, dir, "add", "--all")
			gittest.Git(t, dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "--message", "a")
			hash := strings.TrimSpace(gittest.Git(t, dir, "rev-parse", "HEAD:a.yaml"))
			head := strings.TrimSpace(gittest.Git(t, dir, "rev-parse", "HEAD"))
			loose := filepath.Join(dir, ".git", "objects", hash[:2], hash[2:])
			if name == "an index" {
				gittest.Git(t, dir, "repack", "-a", "-d", "--quiet")
			} else if err := os.Remove(loose); err != nil { // which nobody may write to
				t.Fatal(err)
			}
			if err := test.lie(loose); err != nil {
				t.Fatal(err)
			}
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			files, err := r.Files(head)
			if err == nil {
				_, err = fs.ReadFile(files, "a.yaml")
			}
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), test.says) || name != "an index" &&
				(!strings.Contains(err.Error(), hash) || diag.Hint(err) == "") {
				t.Errorf("error %v with the hint %q", err, diag.Hint(err))
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > size/2 {
				t.Errorf("%d MiB were allocated for it", took>>20)
			}
		})
	}
}
