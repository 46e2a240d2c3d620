//go:build e2e && renovate

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
)

// renovateFleet has an older version of everything that fleet.yaml can hold a version of.
const renovateFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: acme
spec:
  git:
    url: %s
    caFile: ca.pem
    forge: gitea
  flux:
    version: v2.9.4
  environments:
  - name: dev
  managementClusters:
  - name: mgmt
    kubernetesVersion: v1.35.1
    certManager:
      version: v1.19.1
    providers:
    - name: cluster-api
      type: core
      version: v1.14.1
    - name: kubeadm
      type: bootstrap
      version: v1.14.1 # held with the core
    - name: kubeadm
      type: control-plane
      version: v1.14.1
    - {name: docker, version: v1.14.1}
    - name: aws # with what people write
      url: https://example.com/infrastructure-components.yaml
      version: "v2.12.0"
`

// renovateReleases are the releases and tags of each project on GitHub. Nobody wants those that are candidates.
var renovateReleases = map[string][]string{
	"fluxcd/flux2":                             {"v2.9.4", "v2.9.5", "v2.10.0-rc.1"},
	"cert-manager/cert-manager":                {"v1.19.1", "v1.20.0", "v1.21.0-alpha.0"},
	"kubernetes-sigs/cluster-api":              {"v1.14.1", "v1.14.2", "v1.15.0-beta.0"},
	"kubernetes-sigs/cluster-api-provider-aws": {"v2.12.0", "v2.13.0", "v2.14.0-rc.0"},
	"actions/checkout":                         {"v4", "v5"},
	"actions/setup-go":                         {"v5", "v6"},
	"kubernetes/kubernetes":                    {"v1.35.1", "v1.35.2", "v1.36.0-rc.0"},
}

// TestRenovate lets a real Renovate read the configuration that `fleetctl ci add` writes, in a fleet repo on Gitea: it proposes each newer
// version, and Kubernetes only after somebody has asked for it. GitHub is a server of the test, because a test cannot wait for releases.
func TestRenovate(t *testing.T) {
	g := startGitea(t)
	registry := bundletest.Registry(t)
	for _, version := range []string{"6.9.0", "6.9.2"} {
		bundletest.PushChart(t, registry+"/charts/podinfo:"+version, "podinfo", version)
	}
	for _, tag := range []string{"1.0.0", "1.1.0"} {
		bundletest.PushImage(t, registry+"/team/agent:"+tag)
	}
	charts := httptest.NewTLSServer(http.HandlerFunc(chartRepository))
	t.Cleanup(charts.Close)
	f := renovateRepo(t, g, registry, charts.URL)
	run := renovate(t, g, registry)

	here := "renovate/" + strings.ReplaceAll(registry, ":", "-")
	const kubernetesBranch = "renovate/kubernetes-kubernetes-1.x"
	want := map[string][]string{
		"renovate/fluxcd-flux2-2.x":                             {"fleet.yaml:     version: v2.9.5"},
		"renovate/cert-manager-cert-manager-1.x":                {"fleet.yaml:       version: v1.20.0"},
		"renovate/kubernetes-sigs-cluster-api-provider-aws-2.x": {"fleet.yaml:       version: \"v2.13.0\""},
		"renovate/actions-checkout-5.x":                         {".github/workflows/fleet.yaml:     - uses: actions/checkout@v5"},
		"renovate/actions-setup-go-6.x":                         {".github/workflows/fleet.yaml:     - uses: actions/setup-go@v6"},
		here + "-charts-podinfo-6.x":                            {"features/podinfo/namespaced/source.yaml:     tag: \"6.9.2\""},
		"renovate/metrics-1.x":                                  {"features/metrics/namespaced/release.yaml:       version: \"1.1.0\""},
		here + "-team-agent-1.x": {
			"addons/cni/agent/manifests.yaml:         image: " + registry + "/team/agent:1.1.0",
		},
		"renovate/cluster-api": {
			"fleet.yaml:       version: v1.14.2", "fleet.yaml:       version: v1.14.2 # held with the core",
			"fleet.yaml:       version: v1.14.2", "fleet.yaml:     - {name: docker, version: v1.14.2}",
		},
	}
	f.step("it proposes each newer version, each in its place", func(t *testing.T) {
		run(t)
		proposals(t, g, want)
	})
	f.step("Kubernetes waits until somebody asks for it on the dashboard", func(t *testing.T) {
		dashboard := renovateDashboard(t, g)
		const box = "- [ ] <!-- approve-branch=" + kubernetesBranch + " -->"
		if !strings.Contains(dashboard.Body, box) {
			t.Fatalf("the dashboard does not offer %s:\n%s", kubernetesBranch, dashboard.Body)
		}
		asked := strings.Replace(dashboard.Body, box, strings.Replace(box, "[ ]", "[x]", 1), 1)
		g.does(t, http.MethodPatch, fmt.Sprintf("/repos/%s/issues/%d", forgeRepo, dashboard.Number), map[string]any{"body": asked})
		run(t)
		want[kubernetesBranch] = []string{
			"fleet.yaml:     kubernetesVersion: v1.35.2", clusterPath("demo") + ":     kubernetesVersion: v1.35.2",
		}
		proposals(t, g, want)
	})
	f.step("what is merged is not proposed again", func(t *testing.T) {
		for _, pr := range g.pullRequests(t, forgeRepo) {
			if pr.Head.Ref == "renovate/cluster-api" {
				g.merge(t, forgeRepo, pr.Number, "merge")
			}
		}
		delete(want, "renovate/cluster-api")
		run(t)
		proposals(t, g, want)
	})
}

// renovateRepo is a clone of a fleet repo on Gitea that has everything for which the configuration has a pattern: fleet.yaml, a cluster,
// features with charts, and a network add-on with an image. Its owner may do everything, as Renovate's account may.
func renovateRepo(t *testing.T, g *gitea, registry, charts string) *fleet {
	t.Helper()
	f, url := newRepoOnGitea(t, g)
	f.commit("start", map[string]string{
		"fleet.yaml": fmt.Sprintf(renovateFleet, url),
		"ca.pem":     string(g.ca),
		"addons/cni/agent/manifests.yaml": `apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
  namespace: kube-system
spec:
  selector:
    matchLabels: {app: agent}
  template:
    metadata:
      labels: {app: agent}
    spec:
      containers:
      - name: agent
        image: ` + registry + `/team/agent:1.0.0
`,
	})
	f.ok("ci", "add", "--commit")
	f.ok("feature", "add", "podinfo", "--chart", "oci://"+registry+"/charts/podinfo", "--version", "6.9.0", "--commit")
	f.ok("feature", "add", "metrics", "--chart", charts+"/metrics", "--version", "1.0.0", "--commit")
	f.ok("cluster", "add", "demo", "--flavour", "in-memory", "--environment", "dev", "--kubernetes-version", "v1.35.1", "--commit")
	g.push(t, f.dir, g.admin)
	return f
}

// renovate returns a function that runs Renovate once on the repo, as a job of one's own does.
func renovate(t *testing.T, g *gitea, registry string) func(*testing.T) {
	t.Helper()
	node, program, found := strings.Cut(os.Getenv("FLEETCTL_E2E_RENOVATE"), " ")
	if !found {
		t.Fatal("FLEETCTL_E2E_RENOVATE is not set: run this test with `make test-renovate`")
	}
	gitHub := httptest.NewServer(http.HandlerFunc(releasesOfGitHub))
	t.Cleanup(gitHub.Close)
	dir := t.TempDir()
	// What the operator of Renovate says, beside what is in the repo: where the servers of this test are, and no limit to the number of
	// pull requests in an hour.
	config, err := json.Marshal(map[string]any{
		"packageRules": []any{map[string]any{
			"matchDatasources": []string{"github-releases", "github-tags"}, "registryUrls": []string{gitHub.URL},
		}},
		"hostRules": []any{
			map[string]any{"matchHost": gitHub.URL, "hostType": "github", "token": "of-nobody"},
			map[string]any{"matchHost": "https://" + registry, "insecureRegistry": true},
		},
		"fetchChangeLogs": "off",
		"force":           map[string]any{"prHourlyLimit": 0},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"config.json": config, "ca.pem": g.ca} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(t *testing.T) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, program)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "LOG_LEVEL=debug",
			"RENOVATE_BASE_DIR="+dir, "RENOVATE_CONFIG_FILE="+filepath.Join(dir, "config.json"), "RENOVATE_ONBOARDING=false",
			"RENOVATE_PLATFORM=gitea", "RENOVATE_ENDPOINT="+g.url, "RENOVATE_TOKEN="+g.admin, "RENOVATE_REPOSITORIES="+forgeRepo,
			"GITHUB_COM_TOKEN=of-nobody",
			"NODE_EXTRA_CA_CERTS="+filepath.Join(dir, "ca.pem"), "GIT_SSL_CAINFO="+filepath.Join(dir, "ca.pem"))
		out, err := cmd.CombinedOutput()
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("Renovate says:\n%s", out)
			}
		})
		if err != nil {
			t.Fatalf("Renovate: %v", err)
		}
	}
}

// releasesOfGitHub answers as GitHub's GraphQL API does what Renovate asks for the releases of a project, and for its tags.
func releasesOfGitHub(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Query     string
		Variables struct{ Owner, Name string }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/api/graphql" {
		http.Error(w, `{"message": "not a query"}`, http.StatusNotFound)
		return
	}
	nodes := []any{}
	for i, version := range renovateReleases[asked.Variables.Owner+"/"+asked.Variables.Name] {
		at := time.Date(2026, 1, i+1, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
		node := map[string]any{
			"version": version, "name": version, "id": i + 1, "url": "https://example.com/" + version, "description": "",
			"isDraft": false, "isPrerelease": strings.Contains(version, "-"), "releaseTimestamp": at,
		}
		if strings.Contains(asked.Query, "refs/tags/") {
			node = map[string]any{
				"version": version, "target": map[string]any{"type": "Commit", "oid": strings.Repeat("0", 40), "releaseTimestamp": at},
			}
		}
		nodes = append(nodes, node)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"repository": map[string]any{
		"isRepoPrivate": false,
		"payload":       map[string]any{"nodes": nodes, "pageInfo": map[string]any{"hasNextPage": false, "endCursor": nil}},
	}}}) // Renovate may have gone
}

// chartRepository serves the index of a Helm repository, which is all that Renovate reads of it.
func chartRepository(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `apiVersion: v1
entries:
  metrics:
  - {name: metrics, version: 1.1.0, urls: [metrics-1.1.0.tgz]}
  - {name: metrics, version: 1.0.0, urls: [metrics-1.0.0.tgz]}
`) // Renovate may have gone
}

// renovateIssue has the fields of Renovate's dashboard that the test reads.
type renovateIssue struct {
	Number      int
	Title, Body string
}

// renovateDashboard is the issue in which Renovate lists what it has found.
func renovateDashboard(t *testing.T, g *gitea) renovateIssue {
	t.Helper()
	issues := decode[[]renovateIssue](t, g.does(t, http.MethodGet, "/repos/"+forgeRepo+"/issues?state=open&type=issues", nil))
	i := slices.IndexFunc(issues, func(issue renovateIssue) bool { return issue.Title == "Dependency Dashboard" })
	if i < 0 {
		t.Fatalf("there is no dashboard among %d issues", len(issues))
	}
	return issues[i]
}

// proposals compares the open pull requests with those that are wanted: the lines that each adds, by branch.
func proposals(t *testing.T, g *gitea, want map[string][]string) {
	t.Helper()
	got := map[string][]string{}
	for _, pr := range g.pullRequests(t, forgeRepo) {
		if pr.State == "open" {
			got[pr.Head.Ref] = added(t, g, pr.Number)
		}
	}
	for _, branch := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[branch]; !ok {
			t.Errorf("not wanted: %s with %q", branch, got[branch])
		}
	}
	for branch, lines := range want {
		if !slices.Equal(got[branch], lines) {
			t.Errorf("%s: the lines are %q, want %q", branch, got[branch], lines)
		}
	}
}

// added returns each line that a pull request adds, behind the name of its file.
func added(t *testing.T, g *gitea, number int) []string {
	t.Helper()
	var file string
	var lines []string
	for line := range strings.Lines(g.does(t, http.MethodGet, fmt.Sprintf("/repos/%s/pulls/%d.diff", forgeRepo, number), nil)) {
		line = strings.TrimSuffix(line, "\n")
		if name, found := strings.CutPrefix(line, "+++ b/"); found {
			file = name
		} else if text, found := strings.CutPrefix(line, "+"); found {
			lines = append(lines, file+": "+text)
		}
	}
	return lines
}
