package programs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestMain lets the test's own program print a version when it is called by the name of a program that prints one.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		switch filepath.Base(os.Args[0]) {
		case "etcd":
			fmt.Println("etcd Version: 3.6.8\nGit SHA: 0")
		case "kube-apiserver":
			fmt.Println("Kubernetes v1.36.3")
		default:
			fmt.Println("nothing of it")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// folder has links to this program under some names.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // no program of this machine is one for Linux
	}
	dir := folder(t, "etcd", "kube-apiserver", "kube-controller-manager")
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\necho Kubernetes v1.36.3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for _, test := range []struct {
		name, architecture string
		wanted             Wanted
		version, says      string
	}{
		{name: "any version", wanted: Wanted{Name: "etcd"}, version: "v3.6.8"},
		{name: "this version", wanted: Wanted{Name: "kube-apiserver", Version: "v1.36.3"}, version: "v1.36.3"},
		{
			name: "another version", wanted: Wanted{Name: "kube-apiserver", Version: "v1.35.0"},
			says: "kube-apiserver has version v1.36.3 instead of v1.35.0",
		},
		{name: "no version", wanted: Wanted{Name: "kube-controller-manager"}, says: "says no version"},
		{name: "not there", wanted: Wanted{Name: "kubectl"}, says: "there is no kubectl"},
		{name: "no program", wanted: Wanted{Name: "script"}, says: "script is no program for Linux"},
		{name: "a folder", wanted: Wanted{Name: "."}, says: "is not a file"},
		{name: "another architecture", architecture: other, wanted: Wanted{Name: "etcd"}, says: "is for another architecture than " + other},
	} {
		t.Run(test.name, func(t *testing.T) {
			architecture := test.architecture
			if architecture == "" {
				architecture = runtime.GOARCH
			}
			found, err := Folder(t.Context(), dir, architecture, []Wanted{test.wanted})
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
				return
			}
			if err != nil || len(found) != 1 || found[0].Version != test.version || found[0].File != filepath.Join(dir, test.wanted.Name) {
				t.Errorf("got %+v, %v", found, err)
			}
		})
	}
}

// archive is a .tar.gz of files.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	archive := tar.NewWriter(z)
	for name, content := range files {
		err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o755})
		if _, writeErr := archive.Write([]byte(content)); errors.Join(err, writeErr) != nil {
			t.Fatal(err, writeErr)
		}
	}
	if err := errors.Join(archive.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// site serves releases as the projects lay them out.
func site(t *testing.T, change func(files map[string][]byte)) Releases {
	t.Helper()
	sum := func(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
	archive := archive(t, map[string]string{"etcd-v3.6.8-linux-arm64/README.md": "read me", "etcd-v3.6.8-linux-arm64/etcd": "the etcd"})
	files := map[string][]byte{
		"/k8s/v1.36.3/bin/linux/arm64/kube-apiserver":        []byte("the server"),
		"/k8s/v1.36.3/bin/linux/arm64/kube-apiserver.sha256": []byte(sum([]byte("the server")) + "\n"),
		"/etcd/v3.6.8/etcd-v3.6.8-linux-arm64.tar.gz":        archive,
		"/etcd/v3.6.8/SHA256SUMS": []byte(
			"### v3.6.8\n" + strings.Repeat("0", 64) + "  etcd-v3.6.8-linux-amd64.tar.gz\n" + sum(archive) + "  etcd-v3.6.8-linux-arm64.tar.gz\n"),
	}
	if change != nil {
		change(files)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(s.Close)
	return Releases{Kubernetes: s.URL + "/k8s/", Etcd: s.URL + "/etcd"}
}

func TestDownload(t *testing.T) {
	const server, archive = "/k8s/v1.36.3/bin/linux/arm64/kube-apiserver", "/etcd/v3.6.8/etcd-v3.6.8-linux-arm64.tar.gz"
	for _, test := range []struct {
		name   string
		change func(files map[string][]byte)
		says   string
	}{
		{name: "whole"},
		{"a program that was changed", func(files map[string][]byte) { files[server] = []byte("another") }, "and its release says"},
		{"an archive that was changed", func(files map[string][]byte) { files[archive] = append(files[archive], 0) }, "and its release says"},
		{"an archive that is none", func(files map[string][]byte) { files[archive] = []byte("none") }, "and its release says"},
		{"no checksum", func(files map[string][]byte) { files[server+".sha256"] = []byte("none") }, "is no checksum"},
		{"a page to log in", func(files map[string][]byte) { files[archive] = []byte("<html>") }, "answers with a web page"},
		{
			"no line of the archive", func(files map[string][]byte) { files["/etcd/v3.6.8/SHA256SUMS"] = nil },
			"SHA256SUMS does not name etcd-v3.6.8-linux-arm64.tar.gz",
		},
		{"no such version", func(files map[string][]byte) { delete(files, server+".sha256") }, "404 Not Found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			from := site(t, test.change)
			dir := t.TempDir()
			found, err := Download(t.Context(), dir, "arm64", from, []Wanted{{"etcd", "v3.6.8"}, {"kube-apiserver", "v1.36.3"}}, func(string) {})
			if test.says != "" {
				if err == nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
				entries, readErr := os.ReadDir(dir)
				if len(entries) > 1 || readErr != nil || len(entries) == 1 && strings.HasPrefix(entries[0].Name(), "partial-") {
					t.Errorf("left %v, %v", entries, readErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"the etcd", "the server"} {
				content, err := os.ReadFile(found[i].File)
				info, statErr := os.Stat(found[i].File)
				if err != nil || statErr != nil || !bytes.Equal(content, []byte(want)) || info.Mode().Perm() != 0o755 {
					t.Errorf("%+v: %q, %v, %v", found[i], content, err, info.Mode())
				}
			}
		})
	}
}
