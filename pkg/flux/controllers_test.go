//go:build integration

package flux

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/testprograms"
)

// controllers whose API versions are those of go.mod, with the modules that hold their CRDs.
var controllers = map[string]string{
	"source-controller":    "github.com/fluxcd/source-controller",
	"kustomize-controller": "github.com/fluxcd/kustomize-controller",
	"helm-controller":      "github.com/fluxcd/helm-controller",
}

// installCRDs applies the CRDs that the controllers' modules bring along.
func installCRDs(ctx context.Context, t *testing.T, client *kube.Client) {
	t.Helper()
	var manifests bytes.Buffer
	for _, module := range controllers {
		version := strings.TrimSpace(run(t, "", "go", "list", "-m", "-f", "{{.Version}}", module+"/api"))
		var download struct{ Dir string }
		if err := json.Unmarshal([]byte(run(t, "", "go", "mod", "download", "-json", module+"@"+version)), &download); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(download.Dir, "config/crd/bases/*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no CRDs in %s (%v)", download.Dir, err)
		}
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			manifests.WriteString("---\n")
			manifests.Write(content)
		}
	}
	if _, err := kubetest.ApplyYAML(ctx, client, manifests.Bytes(), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + Namespace + "}\n"
	if _, err := kubetest.ApplyYAML(ctx, client, []byte(namespace), kube.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
}

// startControllers runs the controllers beside the API server until t ends. Their logs are shown if t fails.
func startControllers(t *testing.T, kubeconfig []byte) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(config, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	storage := freeAddress(t)
	for name := range controllers {
		args := []string{"--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--enable-leader-election=false", "--log-level=info"}
		if name == kustomizeController {
			args = append(args, "--requeue-dependency=1s")
		}
		if name == "source-controller" {
			args = append(args, "--storage-path="+t.TempDir(), "--storage-addr="+storage, "--storage-adv-addr="+storage)
		}
		cmd := exec.Command(filepath.Join(testprograms.Flux(t), name), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+config, "RUNTIME_NAMESPACE="+Namespace, "TMPDIR="+t.TempDir(), "HOME="+t.TempDir())
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		log := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatalf("start %s: %v (%s names the folder with the controllers)", name, err, testprograms.Variable)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("%s:\n%s", name, log)
			}
		})
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

const gitUser, gitPassword = "flux", "correct horse"

// gitRepo is a repository that a real Git server serves over HTTP to whoever has the password.
type gitRepo struct {
	t        *testing.T
	dir, url string
}

func newGitRepo(t *testing.T) *gitRepo {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "git", "init", "--quiet", "--initial-branch=main")
	run(t, dir, "git", "config", "user.name", "Test")
	run(t, dir, "git", "config", "user.email", "test@example.com")
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(run(t, "", "git", "--exec-path")), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != gitUser || password != gitPassword {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return &gitRepo{t: t, dir: dir, url: server.URL + "/.git"}
}

// commit writes files, or removes those without content, and returns the new commit.
func (r *gitRepo) commit(files map[string]string) string {
	r.t.Helper()
	for name, content := range files {
		path := filepath.Join(r.dir, name)
		if content == "" {
			if err := os.Remove(path); err != nil {
				r.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	run(r.t, r.dir, "git", "add", "--all")
	run(r.t, r.dir, "git", "commit", "--quiet", "--message", "Change")
	return strings.TrimSpace(run(r.t, r.dir, "git", "rev-parse", "HEAD"))
}

// run returns the standard output of a program.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}
