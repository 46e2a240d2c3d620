//go:build unix

package management

import (
	"os"
	"path/filepath"
	"testing"
)

// The folder may be a clone that somebody else fills: a symbolic link in it leads no file out of it.
func TestIssuerFilesStayInTheFolder(t *testing.T) {
	got, err := issuerFiles(
		[]byte(`{"issuer":"https://a.example","jwks_uri":"https://a.example/openid/v1/jwks"}`), []byte(someKeys), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	outside, dir := t.TempDir(), t.TempDir()
	precious := filepath.Join(outside, "precious")
	link := filepath.Join(dir, "openid", "v1", "jwks")
	for _, err := range []error{
		os.WriteFile(precious, []byte("precious"), 0o600), os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(precious, link),
		got.write(dir), got.write(dir),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if content, err := os.ReadFile(precious); err != nil || string(content) != "precious" {
		t.Errorf("%q, %v", content, err)
	}
	led := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(led, ".well-known")); err != nil {
		t.Fatal(err)
	}
	if err := got.write(led); err == nil {
		t.Error("a folder led out of it")
	}
	if all, err := os.ReadDir(outside); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
