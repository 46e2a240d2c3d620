package support

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/status"
)

// unpack reads a bundle.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for r := tar.NewReader(zip); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !fs.ValidPath(header.Name) || header.Mode != 0o600 {
			t.Errorf("%s has mode %o", header.Name, header.Mode)
		}
		entries[header.Name] = string(content)
	}
}

// There is a bundle for a cluster that does not answer, too. The bundle tells this, and has the data of this machine.
func TestBundleWithoutACluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	r, err := Write(t.Context(), file, Sources{
		Name: "mgmt", Status: status.Sources{
			Cluster:     status.Cluster{Name: "mgmt", State: "stopped"},
			Unreachable: errors.New("it is stopped, and was asked with " + canary),
		},
		Private: [][]byte{[]byte(`{"url": "http://127.0.0.1", "password": "` + canary + `"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unread) != 2 || !strings.Contains(r.Unread[0], "it is stopped") || strings.Contains(r.Unread[0], canary) ||
		r.Unread[1] != unseenSecrets {
		t.Errorf("unread: %q", r.Unread)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != r.Bytes {
		t.Errorf("%v, %v", info, err)
	}
	// The README's own text is not redacted. Other texts in it are redacted, and the test looks for secrets in them.
	readme := ""
	for name, content := range unpack(t, file) {
		if strings.Contains(content, canary) {
			t.Errorf("%s has the secret", name)
		}
		if strings.HasSuffix(name, readmeFile) {
			readme = content
		}
	}
	if !strings.Contains(readme, readmeText) || !strings.Contains(readme, unseenSecrets) || !strings.Contains(readme, "it is stopped") {
		t.Errorf("the bundle's own words are not all there:\n%s", readme)
	}
	// If the file cannot be written, no part of it is left.
	bad := filepath.Join(t.TempDir(), "no", "such", "folder.tar.gz")
	if _, err := Write(t.Context(), bad, Sources{Name: "mgmt"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
