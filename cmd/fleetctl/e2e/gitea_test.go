//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// giteaConfig lets Gitea listen on a socket and keep all that it has below its own folder: nothing of it is in the way of anybody else. Its
// arguments are the address that people use, the folder of the program and the socket.
const giteaConfig = `I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
RUN_MODE = prod

[server]
PROTOCOL = http+unix
ROOT_URL = %s/
STATIC_ROOT_PATH = %s
HTTP_ADDR = %s
DISABLE_SSH = true
OFFLINE_MODE = true

[database]
DB_TYPE = sqlite3

[security]
INSTALL_LOCK = true

[service]
DISABLE_REGISTRATION = true

[repository]
DEFAULT_PRIVATE = private

[indexer]
ISSUE_INDEXER_TYPE = db

[cron]
ENABLED = false

[log]
MODE = console
LEVEL = Warn
`

// giteaPassword is everybody's: on a server that nobody else reaches.
const giteaPassword = "correct horse battery"

// gitea is a real one behind TLS, as behind a company's proxy. It ends with the test.
type gitea struct {
	program string
	dir     string
	url     string
	ca      []byte
	client  *http.Client
	admin   string // the token of one who may do everything, for what the test does itself
}

func startGitea(t *testing.T) *gitea {
	t.Helper()
	program, err := filepath.EvalSymlinks(filepath.Join(programsDir(t), "gitea"))
	if err != nil {
		t.Fatalf("there is no Gitea to run: make gitea: %v", err)
	}
	g := &gitea{program: program, dir: t.TempDir()}
	socket := filepath.Join(g.dir, "http")
	front := httptest.NewTLSServer(proxyTo(socket))
	t.Cleanup(front.Close)
	g.url, g.client = front.URL, front.Client()
	g.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	config := filepath.Join(g.dir, "custom", "conf", "app.ini")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, fmt.Appendf(nil, giteaConfig, g.url, filepath.Dir(program), socket), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run(t, "migrate")
	g.run(t, "admin", "user", "create", "--admin", "--username", "root", "--email", "root@example.com", "--password", giteaPassword,
		"--must-change-password=false")
	g.serve(t)
	g.admin = g.token(t, "root", "all")
	return g
}

// proxyTo passes requests on to a server on a socket.
func proxyTo(socket string) http.Handler {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "gitea"})
			r.Out.Host = r.In.Host
			r.SetXForwarded()
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
}

func (g *gitea) command(args ...string) *exec.Cmd {
	cmd := exec.Command(g.program, args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GITEA_WORK_DIR="+g.dir, "GITEA_CUSTOM="+filepath.Join(g.dir, "custom"), "HOME="+g.dir)
	return cmd
}

// run runs one of Gitea's commands.
func (g *gitea) run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := g.command(args...).CombinedOutput(); err != nil {
		t.Fatalf("gitea %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// serve starts the server and waits until it answers.
func (g *gitea) serve(t *testing.T) {
	t.Helper()
	log, err := os.Create(filepath.Join(g.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := g.command("web")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // a signal ends it
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		said, _ := os.ReadFile(log.Name())
		if t.Failed() {
			t.Logf("Gitea says:\n%s", said)
		}
	})
	eventually(t, "Gitea answers", 2*time.Minute, func() string {
		response, err := g.client.Get(g.url + "/api/v1/version")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return response.Status
		}
		return ""
	})
}

// user makes an account.
func (g *gitea) user(t *testing.T, name string) {
	t.Helper()
	g.does(t, http.MethodPost, "/admin/users", map[string]any{
		"username": name, "email": name + "@example.com", "password": giteaPassword, "must_change_password": false,
	})
}

// token makes one for an account, which may do what its scopes say: Gitea's own words.
func (g *gitea) token(t *testing.T, name string, scopes ...string) string {
	t.Helper()
	path := "/users/" + name + "/tokens"
	status, answer := g.ask(t, http.MethodPost, path, map[string]any{"name": strings.Join(scopes, " "), "scopes": scopes},
		func(r *http.Request) {
			r.SetBasicAuth(name, giteaPassword)
		})
	if status != http.StatusCreated {
		t.Fatalf("Gitea: POST %s: %d %s", path, status, answer)
	}
	return decode[struct{ SHA1 string }](t, string(answer)).SHA1
}

// ask asks Gitea's API as somebody, and returns the status and what it answers.
func (g *gitea) ask(t *testing.T, method, path string, body any, as func(*http.Request)) (int, []byte) {
	t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, g.url+"/api/v1"+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	as(request)
	response, err := g.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer
}

// api asks as the administrator.
func (g *gitea) api(t *testing.T, method, path string, body any) (int, []byte) {
	t.Helper()
	return g.ask(t, method, path, body, func(r *http.Request) { r.Header.Set("Authorization", "token "+g.admin) })
}

// does calls api, and fails the test if the call fails.
func (g *gitea) does(t *testing.T, method, path string, body any) string {
	t.Helper()
	status, answer := g.api(t, method, path, body)
	if status >= http.StatusMultipleChoices {
		t.Fatalf("Gitea: %s %s: %d %s", method, path, status, answer)
	}
	return string(answer)
}

// push pushes the branch main of a clone, as git does with a token.
func (g *gitea) push(t *testing.T, dir, token string) {
	t.Helper()
	ca := filepath.Join(g.dir, "ca.pem")
	if err := os.WriteFile(ca, g.ca, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "-C", dir, "-c", "http.extraHeader=Authorization: token "+token, "push", "-q",
		"--set-upstream", "origin", "main")
	cmd.Env = append(os.Environ(), "GIT_SSL_CAINFO="+ca)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("push to Gitea: %v\n%s", err, out)
	}
}

// giteaPullRequest has the fields of a pull request in Gitea's API that the tests read.
type giteaPullRequest struct {
	Number             int
	Title, Body, State string
	URL                string `json:"html_url"`
	Merged, Mergeable  bool
	User               struct{ Login string }
	Head, Base         struct{ Ref, SHA string }
	ChangedFiles       int `json:"changed_files"`
}

// pullRequests returns all pull requests of a repository, the newest first.
func (g *gitea) pullRequests(t *testing.T, repo string) []giteaPullRequest {
	t.Helper()
	return decode[[]giteaPullRequest](t, g.does(t, http.MethodGet, "/repos/"+repo+"/pulls?state=all", nil))
}

// onlyPullRequest is the one that a repository has.
func (g *gitea) onlyPullRequest(t *testing.T, repo string) giteaPullRequest {
	t.Helper()
	all := g.pullRequests(t, repo)
	if len(all) != 1 {
		t.Fatalf("there are %d pull requests: %+v", len(all), all)
	}
	return all[0]
}

// branches are the names of a repository's branches.
func (g *gitea) branches(t *testing.T, repo string) []string {
	t.Helper()
	var names []string
	for _, b := range decode[[]struct{ Name string }](t, g.does(t, http.MethodGet, "/repos/"+repo+"/branches", nil)) {
		names = append(names, b.Name)
	}
	return names
}

// merge does what the button does, in one of the ways that it offers, once Gitea knows that there is no conflict.
func (g *gitea) merge(t *testing.T, repo string, number int, way string) {
	t.Helper()
	path := fmt.Sprintf("/repos/%s/pulls/%d/merge", repo, number)
	eventually(t, fmt.Sprintf("pull request %d is merged", number), time.Minute, func() string {
		if status, answer := g.api(t, http.MethodPost, path, map[string]any{"Do": way}); status != http.StatusOK {
			return fmt.Sprintf("%d %s", status, answer)
		}
		return ""
	})
}
