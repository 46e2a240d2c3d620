package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/forge/forgetest"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
)

// gitServer is the Git server of a script, and what was in it before fleetctl came.
type gitServer struct {
	repo   *gittest.Repo
	ssh    *gittest.SSH     // nil for an https server
	forge  *forgetest.Forge // nil where nobody opens pull requests
	before string
}

func (g *gitServer) look(ts *testscript.TestScript) string {
	if g.repo == nil {
		ts.Fatalf("the script has no Git server: start it with git-https or git-ssh")
	}
	return gittest.Git(tb(ts), g.repo.Dir, "for-each-ref")
}

// gitServerKey is where a script keeps its gitServer.
type gitServerKey struct{}

func gitServerOf(ts *testscript.TestScript) *gitServer {
	g, ok := ts.Value(gitServerKey{}).(*gitServer)
	if !ok {
		ts.Fatalf("the script has no place for a Git server")
	}
	return g
}

// gitHTTPS starts a Git server behind TLS, with branches that nobody may push to: git-https [PROTECTED-BRANCH…]. It sets GIT_URL,
// GIT_TOKEN and GIT_READ_TOKEN, and writes the server's authority to ca.pem.
func gitHTTPS(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 0, "git-https [PROTECTED-BRANCH…]")
	s := gittest.NewHTTPS(tb(ts), gittest.Options{Protected: args})
	gitServerOf(ts).repo = s.Repo
	ts.Setenv("GIT_URL", s.URL)
	ts.Setenv("GIT_TOKEN", s.Token)
	ts.Setenv("GIT_READ_TOKEN", s.ReadToken)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), s.CA, 0o600))
}

// gitForge is gitHTTPS with the API of a forge on the same host: git-forge [PROTECTED-BRANCH…].
func gitForge(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 0, "git-forge [PROTECTED-BRANCH…]")
	g := gitServerOf(ts)
	s := gittest.NewHTTPS(tb(ts), gittest.Options{Protected: args, API: func(token string) http.Handler {
		g.forge = forgetest.New(token)
		return g.forge
	}})
	g.repo = s.Repo
	ts.Setenv("GIT_URL", s.URL)
	ts.Setenv("FLEETCTL_GIT_TOKEN", s.Token)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), s.CA, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("askpass"), []byte("#!/bin/sh\ncase $1 in Username*) echo git;; *) echo "+s.Token+";; esac\n"), 0o700))
	ts.Setenv("GIT_ASKPASS", ts.MkAbs("askpass"))
	ts.Setenv("GIT_SSL_CAINFO", ts.MkAbs("ca.pem"))
}

// pullRequests prints the pull requests of the forge, one a line: number, state, branch, base, how often it was changed, title. It fails
// unless there are so many: pull-requests COUNT
func pullRequests(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "pull-requests COUNT")
	all := gitServerOf(ts).forge.PullRequests()
	for _, p := range all {
		fmt.Fprintf(ts.Stdout(), "%d open=%t %s -> %s changed=%d %s\n", p.Number, p.Open, p.Head, p.Base, p.Updated, p.Title)
	}
	if args[0] != strconv.Itoa(len(all)) {
		ts.Fatalf("there are %d pull requests", len(all))
	}
}

// repositories fails unless the forge has so many repositories: repositories COUNT
func repositories(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "repositories COUNT")
	if all := gitServerOf(ts).forge.Repositories(); args[0] != strconv.Itoa(len(all)) {
		ts.Fatalf("there are %v", all)
	}
}

// releasesMade prints the releases of the forge: the tag, and the first line of the notes. It fails unless there are so many:
// releases-made COUNT
func releasesMade(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "releases-made COUNT")
	all := gitServerOf(ts).forge.Releases()
	for _, r := range all {
		first, _, _ := strings.Cut(r.Notes, "\n")
		fmt.Fprintf(ts.Stdout(), "%s %s\n", r.Tag, first)
	}
	if args[0] != strconv.Itoa(len(all)) {
		ts.Fatalf("there are %d releases", len(all))
	}
}

// gitSSH starts an SSH server with a Git repository, and a key that may push to it: git-ssh. It sets GIT_URL and writes the key to
// id, the server's host keys to known_hosts, and somebody else's for the same address to other_hosts.
func gitSSH(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 0, "git-ssh")
	s := gittest.NewSSH(tb(ts), gittest.Options{})
	gitServerOf(ts).repo, gitServerOf(ts).ssh = s.Repo, s
	key, err := gitrepo.GenerateDeployKey("me")
	ts.Check(err)
	s.AuthorizeKey(key.Public, false)
	ts.Setenv("GIT_URL", s.URL)
	ts.Check(os.WriteFile(ts.MkAbs("id"), key.Private, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("known_hosts"), []byte(s.KnownHosts), 0o600))
	other, err := gitrepo.GenerateDeployKey("")
	ts.Check(err)
	host, _, _ := strings.Cut(s.KnownHosts, " ")
	ts.Check(os.WriteFile(ts.MkAbs("other_hosts"), []byte(host+" "+other.Public), 0o600))
}

// gitMerge lets a branch of the Git server be where another one is, around the hooks, as a forge merges: git-merge FROM INTO
func gitMerge(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "git-merge FROM INTO")
	gittest.Git(tb(ts), gitServerOf(ts).repo.Dir, "update-ref", "refs/heads/"+args[1], "refs/heads/"+args[0])
}

// gitAuthorize lets the holder of a private key read the repository, as a deploy key does: git-authorize FILE
func gitAuthorize(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "git-authorize FILE")
	key, err := gitrepo.ParseDeployKey([]byte(ts.ReadFile(args[0])), "")
	ts.Check(err)
	gitServerOf(ts).ssh.AuthorizeKey(key.Public, true)
}

// gitSeed commits files to the Git server: git-seed BRANCH FILE…
func gitSeed(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "git-seed BRANCH FILE…")
	files := map[string]string{}
	for _, name := range args[1:] {
		files[filepath.ToSlash(name)] = ts.ReadFile(name)
	}
	g := gitServerOf(ts)
	g.look(ts)
	g.repo.Seed(tb(ts), args[0], files)
	g.before = g.look(ts)
}

// unchanged fails if the Git server has anything that the script did not put there.
func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 0, "unchanged")
	g := gitServerOf(ts)
	if now := g.look(ts); now != g.before {
		ts.Fatalf("the Git server has changed:\n%s\nwas\n%s", now, g.before)
	}
}

// silentServer takes connections and never answers: silent-server. It sets SILENT_URL.
func silentServer(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 0, "silent-server")
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the system takes them, and nobody reads
	ts.Check(err)
	ts.Defer(func() { _ = listener.Close() })
	ts.Setenv("SILENT_URL", "https://"+listener.Addr().String()+"/fleet.git")
}

// silentCluster is the API server of management clusters that this machine remembers, which takes calls and never answers: silent-cluster
// NAME…. Whether there were any is for called to tell.
func silentCluster(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "silent-cluster NAME…")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	calls := &silentCalls{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			calls.count.Add(1)
			defer func() { _ = conn.Close() }() // not before all is over
		}
	}()
	ts.Defer(func() { _ = listener.Close(); <-ended })
	*silentCallsOf(ts) = calls
	for _, name := range args {
		config := clientcmdapi.NewConfig()
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://" + listener.Addr().String()}
		config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "t"}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "me"}
		config.CurrentContext = name
		folder := filepath.Join(ts.Getenv("XDG_STATE_HOME"), "fleetctl", "clusters", name)
		ts.Check(os.MkdirAll(folder, 0o700))
		for _, file := range []string{"kubeconfig", "workload-kubeconfig", "given"} {
			ts.Check(clientcmd.WriteToFile(*config, filepath.Join(folder, file)))
		}
		record, err := json.Marshal(map[string]string{
			"formatVersion": "1", "name": name, "fleet": "acme", "repo": ts.MkAbs("."), "gitURL": "https://git.example.com/fleet.git",
			"hostType": "existing", "context": name, "kubeconfigSource": filepath.Join(folder, "given"),
		})
		ts.Check(err)
		ts.Check(os.WriteFile(filepath.Join(folder, "cluster.json"), record, 0o600))
	}
}

// called tells whether somebody has called the silent clusters: called.
func called(ts *testscript.TestScript, neg bool, _ []string) {
	calls := *silentCallsOf(ts)
	if calls == nil {
		ts.Fatalf("the script has no silent cluster: start it with silent-cluster")
	}
	switch n := calls.count.Load(); {
	case neg && n > 0:
		ts.Fatalf("the management cluster was called %d times", n)
	case !neg && n == 0:
		ts.Fatalf("the management cluster was not called")
	}
}

// silentCalls counts the calls of silent clusters.
type silentCalls struct{ count atomic.Int64 }

// silentCallsKey is where a script keeps them.
type silentCallsKey struct{}

func silentCallsOf(ts *testscript.TestScript) **silentCalls {
	calls, ok := ts.Value(silentCallsKey{}).(**silentCalls)
	if !ok {
		ts.Fatalf("the script has no place for silent clusters")
	}
	return calls
}

// fluxServer is a mirror with one small release of Flux: flux-server VERSION. It sets FLUX_URL.
func fluxServer(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "flux-server VERSION")
	ts.Setenv("FLUX_URL", fluxMirror(tb(ts), args[0]))
}

// fluxMirror is a mirror with one small release of Flux, until t ends.
func fluxMirror(t testing.TB, version string) (url string) {
	dir := os.DirFS(filepath.Join("..", "..", "pkg", "flux", "testdata", "base"))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/download/"+version+"/manifests.tar.gz" {
			http.NotFound(w, r)
			return
		}
		z := gzip.NewWriter(w)
		archive := tar.NewWriter(z)
		if archive.AddFS(dir) != nil || archive.Close() != nil || z.Close() != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// registryServer is a container registry: registry NAME:TAG…. It sets REGISTRY to its host and port. A name that begins with charts/ is
// pushed as a Helm chart, one that begins with changed/charts/ as the same with other content. A name that begins with multi/ is pushed as
// an image for several platforms, without that, and the others as images.
func registryServer(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "registry NAME:TAG…")
	ts.Setenv("REGISTRY", bundletest.Registry(tb(ts)))
	pushImages(ts, neg, args)
}

// pushImages puts images into the registry of registryServer, or others in their places: push NAME:TAG….
func pushImages(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 1, "push NAME:TAG…")
	host := ts.Getenv("REGISTRY")
	for _, name := range args {
		if name, ok := strings.CutPrefix(name, "multi/"); ok {
			bundletest.PushIndex(tb(ts), host+"/"+name)
			continue
		}
		name, changed := strings.CutPrefix(name, "changed/")
		if chart, ok := strings.CutPrefix(name, "charts/"); ok {
			chart, version, _ := strings.Cut(chart, ":")
			if changed {
				version = "v" + version // which is the same to Helm
			}
			bundletest.PushChart(tb(ts), host+"/"+name, chart, version)
			continue
		}
		bundletest.PushImage(tb(ts), host+"/"+name)
	}
}

// emptyCluster is what an API server answers about a cluster of no fleet: the kinds that fleetctl looks at there, and no object but the
// namespace by which it tells clusters apart, and the namespace of a workload cluster that was removed.
var emptyCluster = map[string]string{
	"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
	"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
		{"name": "namespaces", "namespaced": false, "kind": "Namespace", "verbs": ["get", "list"]},
		{"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": ["get", "list"]},
		{"name": "secrets", "namespaced": true, "kind": "Secret", "verbs": ["get", "list"]}]}`,
	"/api/v1/namespaces/kube-system": `{"kind": "Namespace", "apiVersion": "v1", "metadata":
		{"name": "kube-system", "uid": "5a1f0f3e-1b7d-4b43-9a53-6f2f2c1f7e11"}}`,
	"/api/v1/namespaces/left": `{"kind": "Namespace", "apiVersion": "v1", "metadata":
		{"name": "left", "labels": {"kustomize.toolkit.fluxcd.io/name": "clusters-dev"}}}`,
}

// apiServer answers what fleetctl asks an existing cluster before it installs anything, and no more: api-server CONTEXT ADMINISTRATOR.
// ADMINISTRATOR is true or false. It writes a kubeconfig with that context to the file kubeconfig.
func apiServer(ts *testscript.TestScript, neg bool, args []string) {
	arguments(ts, neg, args, 2, "api-server CONTEXT ADMINISTRATOR")
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/readyz":
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(authorization.SelfSubjectAccessReview{
				Status: authorization.SubjectAccessReviewStatus{Allowed: args[1] == "true"},
			})
		case emptyCluster[r.URL.Path] != "":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, emptyCluster[r.URL.Path])
		default:
			http.NotFound(w, r)
		}
	}))
	ts.Defer(s.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   s.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts[args[0]] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "me"}
	ts.Check(clientcmd.WriteToFile(*config, ts.MkAbs("kubeconfig")))
}
