package gitserve_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	git "github.com/go-git/go-git/v5"                             //nolint:depguard // Flux clones with it
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http" //nolint:depguard // the same
	"github.com/go-git/go-git/v5/storage/memory"                  //nolint:depguard // the same

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest" //nolint:depguard // runs git for tests
	"github.com/fleetctl/fleetctl/pkg/gitserve"
)

var creds = gitserve.Credentials{Username: "fleetctl", Password: "correct horse"}

// fleet makes a working tree with three commits.
func fleet(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	gittest.Git(t, dir, "init", "--quiet", "--initial-branch", "main")
	for _, content := range []string{"1", "2", "3"} {
		commit(t, dir, content)
	}
	return dir
}

func commit(t *testing.T, dir, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "add", "--all")
	gittest.Git(t, dir, "commit", "--quiet", "--message", content)
}

// start serves dir and returns the URL with credentials in it, as only a test may write it.
func start(t *testing.T, dir string) (*httptest.Server, string) {
	t.Helper()
	s := httptest.NewServer(gitserve.NewHandler(dir, creds, nil))
	t.Cleanup(s.Close)
	return s, strings.Replace(s.URL, "http://", "http://fleetctl:correct%20horse@", 1) + gitserve.RepoPath
}

func fileAt(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestClone(t *testing.T) {
	dir := fleet(t)
	_, url := start(t, dir)
	for name, args := range map[string][]string{
		"full":       {"clone", "--quiet"},
		"depth 1":    {"clone", "--quiet", "--depth", "1"},
		"protocol 0": {"-c", "protocol.version=0", "clone", "--quiet"},
		"protocol 1": {"-c", "protocol.version=1", "clone", "--quiet"},
		"no gzip":    {"-c", "protocol.version=0", "clone", "--quiet", "--single-branch", "--branch", "main"},
	} {
		t.Run(name, func(t *testing.T) {
			into := filepath.Join(t.TempDir(), "clone")
			gittest.Git(t, dir, append(args, url, into)...)
			want := "3\n"
			if name == "depth 1" {
				want = "1\n"
			}
			if out := gittest.Git(t, into, "rev-list", "--count", "HEAD"); out != want || fileAt(t, into) != "3" {
				t.Errorf("%s commits, want %s; content %q", out, want, fileAt(t, into))
			}
		})
	}
}

// A commit in the folder is all it takes; a fetch with many haves has a gzip body.
func TestFetchAfterCommit(t *testing.T) {
	dir := fleet(t)
	_, url := start(t, dir)
	into := filepath.Join(t.TempDir(), "clone")
	gittest.Git(t, dir, "clone", "--quiet", url, into)
	for range 40 {
		gittest.Git(t, into, "commit", "--quiet", "--allow-empty", "--message", "local")
	}
	commit(t, dir, "4")
	gittest.Git(t, into, "fetch", "--quiet", "origin")
	if out := gittest.Git(t, into, "show", "origin/main:fleet.yaml"); out != "4" {
		t.Errorf("fetched %q", out)
	}
}

// This is how Flux clones.
func TestGoGitClone(t *testing.T) {
	dir := fleet(t)
	s, _ := start(t, dir)
	clone := func(password string) (*git.Repository, error) {
		return git.CloneContext(t.Context(), memory.NewStorage(), nil, &git.CloneOptions{
			URL: s.URL + gitserve.RepoPath, Depth: 1, SingleBranch: true, ReferenceName: "refs/heads/main", Tags: git.NoTags,
			Auth: &githttp.BasicAuth{Username: creds.Username, Password: password},
		})
	}
	repo, err := clone(creds.Password)
	if err != nil {
		t.Fatal(err)
	}
	head, err := repo.Head()
	if err != nil || head.Hash().String() != strings.TrimSpace(gittest.Git(t, dir, "rev-parse", "HEAD")) {
		t.Errorf("Head %v, %v", head, err)
	}
	if _, err := clone("wrong"); err == nil {
		t.Error("a wrong password was taken")
	}
}

func TestOtherKindsOfRepositories(t *testing.T) {
	dir := fleet(t)
	bare := filepath.Join(t.TempDir(), "bare.git")
	gittest.Git(t, dir, "clone", "--quiet", "--bare", dir, bare)
	linked := filepath.Join(t.TempDir(), "linked")
	gittest.Git(t, dir, "worktree", "add", "--quiet", "-b", "side", linked)
	for _, d := range []string{bare, linked} {
		_, url := start(t, d)
		if out := gittest.Git(t, dir, "ls-remote", url, "refs/heads/main"); !strings.HasSuffix(out, "refs/heads/main\n") {
			t.Errorf("%s: %q", d, out)
		}
	}
}

func TestPushRefused(t *testing.T) {
	dir := fleet(t)
	s, url := start(t, dir)
	before := gittest.Git(t, dir, "rev-parse", "HEAD")
	cmd := exec.Command("git", "push", url, "HEAD:refs/heads/other")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), gittest.Environment()...)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("pushed: %s", out)
	}
	if code, _ := request(t, s, http.MethodPost, "/git-receive-pack", nil, nil); code != http.StatusForbidden {
		t.Errorf("receive-pack: %d", code)
	}
	if gittest.Git(t, dir, "rev-parse", "HEAD") != before || strings.Contains(gittest.Git(t, dir, "branch"), "other") {
		t.Error("the repository has changed")
	}
}

func request(t *testing.T, s *httptest.Server, method, path string, body io.Reader, header http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+gitserve.RepoPath+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(creds.Username, creds.Password)
	maps.Copy(req.Header, header)
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(content)
}

func TestRequests(t *testing.T) {
	dir := fleet(t)
	s, _ := start(t, dir)
	basic := func(user, password string) http.Header {
		req := &http.Request{Header: http.Header{}}
		req.SetBasicAuth(user, password)
		return req.Header
	}
	packed := func(content string) io.Reader {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write([]byte(content)); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		return &b
	}
	request1 := http.Header{"Content-Type": {"application/x-git-upload-pack-request"}}
	gzipped := http.Header{"Content-Type": request1["Content-Type"], "Content-Encoding": {"gzip"}}
	for name, c := range map[string]struct {
		method, path string
		body         io.Reader
		header       http.Header
		want         int
	}{
		"advertisement":      {"GET", "/info/refs?service=git-upload-pack", nil, nil, 200},
		"wrong password":     {"GET", "/info/refs?service=git-upload-pack", nil, basic("fleetctl", "wrong"), 401},
		"wrong user":         {"GET", "/info/refs?service=git-upload-pack", nil, basic("other", creds.Password), 401},
		"no credentials":     {"GET", "/info/refs?service=git-upload-pack", nil, http.Header{"Authorization": nil}, 401},
		"push advertisement": {"GET", "/info/refs?service=git-receive-pack", nil, nil, 403},
		"dumb protocol":      {"GET", "/info/refs", nil, nil, 403},
		"a file":             {"GET", "/config", nil, nil, 404},
		"a file outside":     {"GET", "/../../etc/passwd", nil, nil, 404},
		"HEAD":               {"GET", "/HEAD", nil, nil, 404},
		"wrong method":       {"PUT", "/git-upload-pack", nil, nil, 404},
		"wrong content type": {"POST", "/git-upload-pack", strings.NewReader("0000"), nil, 415},
		"unknown encoding": {
			"POST", "/git-upload-pack", strings.NewReader("0000"),
			http.Header{"Content-Type": request1["Content-Type"], "Content-Encoding": {"br"}},
			415,
		},
		"not gzip":            {"POST", "/git-upload-pack", strings.NewReader("0000"), gzipped, 400},
		"gzip bomb":           {"POST", "/git-upload-pack", packed(strings.Repeat("0000", 12<<20)), gzipped, 413},
		"too large":           {"POST", "/git-upload-pack", strings.NewReader(strings.Repeat("0000", 3<<20)), request1, 413},
		"nonsense":            {"POST", "/git-upload-pack", strings.NewReader("nonsense"), request1, 500},
		"hostile protocol":    {"GET", "/info/refs?service=git-upload-pack", nil, http.Header{"Git-Protocol": {"version=2:$(reboot)"}}, 200},
		"empty gzipped fetch": {"POST", "/git-upload-pack", packed("0000"), gzipped, 200},
	} {
		t.Run(name, func(t *testing.T) {
			if code, body := request(t, s, c.method, c.path, c.body, c.header); code != c.want {
				t.Errorf("status %d, want %d: %.200s", code, c.want, body)
			}
		})
	}
}

// The repository's own configuration must not make the server run programs, and a stash is nobody else's business.
func TestHardened(t *testing.T) {
	dir := fleet(t)
	ran := filepath.Join(t.TempDir(), "ran")
	hook := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+ran+"\nexec \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "config", "uploadpack.packObjectsHook", hook)
	gittest.Git(t, dir, "config", "core.fsmonitor", hook)
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte("put aside"), 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "stash", "--quiet")
	if err := os.RemoveAll(ran); err != nil { // the stash itself may have asked the monitor
		t.Fatal(err)
	}
	_, url := start(t, dir)
	gittest.Git(t, t.TempDir(), "clone", "--quiet", url, "into")
	if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program of the repository's configuration ran: %v", err)
	}
	if out := gittest.Git(t, dir, "ls-remote", url); strings.Contains(out, "stash") {
		t.Errorf("the stash is shown: %s", out)
	}
}

func TestNoRepository(t *testing.T) {
	dir := t.TempDir()
	s, _ := start(t, dir)
	if code, body := request(t, s, "GET", "/info/refs?service=git-upload-pack", nil, nil); code != 500 || strings.Contains(body, dir) {
		t.Errorf("status %d: %s", code, body)
	}
}

// A client that goes away in the middle ends git as well.
func TestDisconnect(t *testing.T) {
	dir := fleet(t)
	big := make([]byte, 64<<20)
	for i := range big {
		big[i] = byte(i * i >> 7)
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	gittest.Git(t, dir, "-c", "core.compression=0", "add", "big")
	gittest.Git(t, dir, "commit", "--quiet", "--message", "big")
	ended := make(chan struct{}, 1)
	inner := gitserve.NewHandler(dir, creds, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer func() { ended <- struct{}{} }()
		inner.ServeHTTP(w, req)
	}))
	defer s.Close()
	head := strings.TrimSpace(gittest.Git(t, dir, "rev-parse", "HEAD"))
	ctx, cancel := context.WithCancel(t.Context())
	body := "0032want " + head + "\n00000009done\n"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+gitserve.RepoPath+"/git-upload-pack", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(creds.Username, creds.Password)
	req.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1<<10)); err != nil {
		t.Fatalf("status %d: %v", res.StatusCode, err)
	}
	cancel()
	_ = res.Body.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the request goes on without its client")
	}
}

func TestCheckGit(t *testing.T) {
	if err := gitserve.CheckGit(t.Context()); err != nil {
		t.Error(err)
	}
	for version, ok := range map[string]bool{
		"git version 2.39.5 (Apple Git-154)": true, "git version 2.17.1": false,
		"git version 3.0": true, "what": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\necho '"+version+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir)
		if err := gitserve.CheckGit(t.Context()); (err == nil) != ok || err != nil && diag.Hint(err) == "" {
			t.Errorf("%s: %v", version, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if err := gitserve.CheckGit(t.Context()); !errors.Is(err, exec.ErrNotFound) || diag.Hint(err) == "" {
		t.Errorf("no git: %v", err)
	}
}
