package kind

import (
	"os"
	"strings"
	"testing"
)

// Whatever is in the record: it is the same when it is written again, or the error names the file.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"network":"kind"}`))
	f.Add([]byte(`{"network":1}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`null`))
	f.Add([]byte{})
	dir := stateDir(f.TempDir())
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(dir.path(recordFile), content, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := dir.read()
		if err != nil {
			if !strings.Contains(err.Error(), dir.path(recordFile)) {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if err := dir.write(r); err != nil {
			t.Fatal(err)
		}
		if again, err := dir.read(); err != nil || again != r {
			t.Errorf("%+v is read again as %+v, %v", r, again, err)
		}
	})
}
