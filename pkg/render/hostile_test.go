package render_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	hostileFlux = `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: base, namespace: flux-system}
spec:
  interval: 10m
  path: ./base
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`
	goodObject = "apiVersion: v1\nkind: Namespace\nmetadata: {name: good}\n"
)

// hostileRepo is a repo that kustomize would leave. In its files, URL is the address of a server that listens, HOST is the host in this
// address, and GIT is a reference that makes git run a command.
type hostileRepo struct {
	name  string
	files map[string]string
	rule  string // "": it builds, from files of the repo alone
	at    string // where the finding is
	says  string
}

func base(kustomization string, more ...string) map[string]string {
	files := map[string]string{"mgmt/flux.yaml": hostileFlux, "base/kustomization.yaml": kustomization}
	for i := 0; i < len(more); i += 2 {
		files["base/"+more[i]] = more[i+1]
	}
	return files
}

func builtin(kind, fields string) string {
	return "apiVersion: builtin\nkind: " + kind + "\nmetadata: {name: a}\n" + fields + "\n"
}

func block(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// Whatever a repo has in a kustomization: nothing is run, nothing is fetched, one finding says where and why, and the rest is rendered.
func TestHostile(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, goodObject)
	}))
	defer server.Close()
	ran := filepath.Join(t.TempDir(), "ran")
	if runtime.GOOS != "windows" { // what is run there is found by other rules, and not found either way
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n: >"+ran+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	replacer := strings.NewReplacer("GIT", "'file:///x?ref=--upload-pack=touch%20"+ran+"&timeout=1'", "URL", server.URL, "HOST",
		strings.TrimPrefix(server.URL, "http://"))
	for _, c := range slices.Concat(hostileFields, hostileSizes, hostileGenerators, hostilePaths) {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"fleet.yaml": fleetYAML, "providers/docker/v1/mgmt/else.yaml": strings.Replace(goodObject, "good", "else", 1)}
			for name, content := range c.files {
				if rest, ok := strings.CutPrefix(name, "mgmt/"); ok {
					name = "providers/docker/v1/mgmt/" + rest
				}
				files[name] = replacer.Replace(content)
			}
			asked.Store(0)
			res, err := renderer(t, repoWith(t, files), "").All(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := asked.Load(); n > 0 {
				t.Errorf("the server was asked %d times", n)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("git was run")
				_ = os.Remove(ran)
			}
			names := make([]string, 0, len(res.Objects))
			for _, o := range res.Objects {
				names = append(names, o.ID())
			}
			if !strings.Contains(strings.Join(names, "\n"), "Namespace else") {
				t.Errorf("the rest is not rendered: %q", names)
			}
			if c.rule == "" {
				if len(res.Findings) > 0 || len(names) < 3 {
					t.Errorf("got %q, findings %v", names, res.Findings)
				}
				return
			}
			if len(res.Findings) != 1 {
				t.Fatalf("got %d findings: %v", len(res.Findings), res.Findings)
			}
			f := res.Findings[0]
			if at := strings.TrimPrefix(f.String(), "providers/docker/v1/"); f.Rule != c.rule || !strings.HasPrefix(at, c.at) ||
				!strings.Contains(at+f.Hint, c.says) {
				t.Errorf("got %s %s (%s)", f.Rule, f, f.Hint)
			}
		})
	}
}
