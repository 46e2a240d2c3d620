//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/forge"
)

// The repository of the fleet on Gitea.
const (
	forgeOwner = "platform"
	forgeRepo  = forgeOwner + "/fleet"
)

// What a fleet repo has after init, as far as these commands look at it.
const (
	forgeFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata:
  name: acme
spec:
  git:
    url: %s
    caFile: ca.pem
    forge: gitea
  channels:
  - name: main
    branch: main
  - name: release
    tag: v*
  environments:
  - name: dev # nobody cries
  - name: production
    channel: release
  managementClusters:
  - name: mgmt
    kubernetesVersion: ` + kubernetesVersion + `
    providers:
    - name: docker
`
	forgeSource = `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: flux-system
  namespace: flux-system
spec:
  interval: 1m0s
  ref:
    branch: main
  secretRef:
    name: flux-system
  url: %s
`
)

// change is what an editing command prints with -o json, as far as the test looks at it.
type change struct {
	Changed, Pushed bool
	Branch, Commit  string
	PullRequest     struct {
		Number  int
		URL     string
		Created bool
	}
}

// proposes runs a command with --pr.
func (f *fleet) proposes(args ...string) change {
	f.t.Helper()
	return decode[change](f.t, f.ok(append(args, "--pr", "-o", "json")...).stdout)
}

// newRepoOnGitea is a clone of an empty repository on Gitea, and the URL of the repository.
func newRepoOnGitea(t *testing.T, g *gitea) (f *fleet, url string) {
	t.Helper()
	f = makeFleet(t, onEmbedded, "fleet")
	f.t = t
	g.does(t, http.MethodPost, "/orgs", map[string]any{"username": forgeOwner})
	g.does(t, http.MethodPost, "/orgs/"+forgeOwner+"/repos", map[string]any{"name": "fleet", "private": true, "default_branch": "main"})
	url = g.url + "/" + forgeRepo + ".git"
	f.git("init", "-q", "--initial-branch", "main")
	f.git("remote", "add", "origin", url)
	return f, url
}

// newFleetOnGitea is a clone of a fleet repo whose branch main takes pull requests alone, and the token of one who may open them.
func newFleetOnGitea(t *testing.T, g *gitea) (f *fleet, token string) {
	t.Helper()
	f, url := newRepoOnGitea(t, g)
	for name, right := range map[string]string{"ada": "write", "guest": "read"} {
		g.user(t, name)
		g.does(t, http.MethodPut, "/repos/"+forgeRepo+"/collaborators/"+name, map[string]any{"permission": right})
	}
	token = g.token(t, "ada", "write:repository")
	f.commit("start", map[string]string{
		"fleet.yaml": fmt.Sprintf(forgeFleet, url),
		"ca.pem":     string(g.ca),
		"providers/docker/v1/mgmt/flux-system/gotk-sync.yaml": fmt.Sprintf(forgeSource, url),
	})
	g.push(t, f.dir, token)
	eventually(t, "Gitea has the branch main", time.Minute, func() string {
		if got := g.branches(t, forgeRepo); !slices.Equal(got, []string{"main"}) {
			return fmt.Sprintf("it has %q", got)
		}
		return ""
	})
	g.does(t, http.MethodPost, "/repos/"+forgeRepo+"/branch_protections", map[string]any{"rule_name": "main", "enable_push": false})
	return f, token
}

// TestPullRequestsOnGitea works on a fleet as a team does whose branch main takes pull requests alone.
func TestPullRequestsOnGitea(t *testing.T) {
	g := startGitea(t)
	f, ada := newFleetOnGitea(t, g)
	add := []string{"cluster", "add", "demo", "--flavour", "in-memory", "--environment", "dev"}
	const branch = "fleetctl/add-cluster-demo-to-dev"

	f.step("what is refused leaves nothing behind", func(t *testing.T) {
		refuses := func(token string, words []string, args ...string) {
			t.Helper()
			f.token = token
			f.fails(1, words, args...)
			branches, files := g.branches(t, forgeRepo), f.git("status", "--porcelain")
			if !slices.Equal(branches, []string{"main"}) || files != "" {
				t.Errorf("it left branches %q, files %q", branches, files)
			}
		}
		proposes := append(slices.Clone(add), "--pr")
		refuses(ada, []string{"refuses pushes to the branch main", "protected branch"}, append(slices.Clone(add), "--push")...)
		refuses(g.token(t, "ada", "read:repository"), []string{"no right to push", "hint: give credentials with write access"}, proposes...)
		refuses(g.token(t, "guest", "write:repository"), []string{"refuses pushes", "permission denied for writing"}, proposes...)
		refuses(strings.Repeat("0", 40), []string{"authentication failed", "hint: check the user name and that the token"}, proposes...)
		refuses("", []string{"a token is needed", "hint: give it with --git-token-file or FLEETCTL_GIT_TOKEN"}, proposes...)
		f.git("remote", "set-url", "origin", g.url+"/"+forgeOwner+"/nonsuch.git")
		refuses(ada, []string{"repository not found", "hint: check the URL"}, proposes...)
		f.git("remote", "set-url", "origin", g.url+"/"+forgeRepo+".git")
		g.does(t, http.MethodPatch, "/repos/"+forgeRepo, map[string]any{"has_pull_requests": false})
		refuses(ada, []string{"look for pull requests on 127.0.0.1", "hint: check the URL"}, proposes...)
		g.does(t, http.MethodPatch, "/repos/"+forgeRepo, map[string]any{"has_pull_requests": true})
	})

	f.step("a repository is made, private, where it does not exist", func(t *testing.T) {
		remote, err := url.Parse(g.url + "/ada/regional.git")
		if err != nil {
			t.Fatal(err)
		}
		may := g.token(t, "ada", "write:user", "write:repository", "write:organization")
		o := forge.Options{Type: v1alpha1.ForgeGitea, Remote: remote, Token: may, CA: g.ca}
		for _, wants := range []bool{true, false} {
			if made, err := forge.EnsureRepository(t.Context(), o); err != nil || made != wants {
				t.Errorf("made: %t, %v", made, err)
			}
		}
		about := decode[struct{ Private, Empty bool }](t, g.does(t, http.MethodGet, "/repos/ada/regional", nil))
		if !about.Private || !about.Empty {
			t.Errorf("it is %+v", about)
		}
		remote.Path = "/" + forgeOwner + "/regional.git" // ada may not make repositories of the organization
		if _, err := forge.EnsureRepository(t.Context(), o); err == nil || !strings.Contains(diag.Hint(err), "right to make repositories") {
			t.Errorf("for the organization: %v (%s)", err, diag.Hint(err))
		}
	})

	f.token = ada
	f.step("a cluster is proposed", func(t *testing.T) {
		got := f.proposes(add...)
		if want := g.url + "/" + forgeRepo + "/pulls/1"; !got.Changed || !got.Pushed || got.Branch != branch || !got.PullRequest.Created ||
			got.PullRequest.URL != want {
			t.Errorf("%+v", got)
		}
		p := g.onlyPullRequest(t, forgeRepo)
		if p.Number != 1 || p.State != "open" || p.Title != "Add cluster demo to dev" || p.User.Login != "ada" ||
			p.Base.Ref != "main" || p.Head.Ref != branch || p.Head.SHA != got.Commit {
			t.Errorf("%+v", p)
		}
		if want := "The chart charts/in-memory comes with it: it is yours to change.\n\nMade by fleetctl."; p.Body != want {
			t.Errorf("the text is %q, not %q", p.Body, want)
		}
		files := g.does(t, http.MethodGet, "/repos/"+forgeRepo+"/pulls/1/files?limit=50", nil)
		for _, name := range []string{"providers/docker/v1/clusters/dev/demo/cluster.yaml", "charts/in-memory/Chart.yaml"} {
			if !strings.Contains(files, `"filename":"`+name+`"`) {
				t.Errorf("%s is not in it:\n%s", name, files)
			}
		}
		if here := f.git("status", "--porcelain") + f.git("ls-files", "providers/docker/v1/clusters"); here != "" {
			t.Errorf("the working tree has\n%s", here)
		}
	})
	f.step("the same again is the same pull request", func(t *testing.T) {
		was := g.onlyPullRequest(t, forgeRepo)
		if got := f.proposes(add...); got.Pushed || got.PullRequest.Created || got.PullRequest.Number != 1 {
			t.Errorf("%+v", got)
		}
		if now := g.onlyPullRequest(t, forgeRepo); now.Head.SHA != was.Head.SHA {
			t.Errorf("its branch went from %s to %s", was.Head.SHA, now.Head.SHA)
		}
		f.fails(0, []string{"Add cluster demo to dev: pull request " + g.url + "/" + forgeRepo + "/pulls/1 is up to date."},
			append(slices.Clone(add), "--pr")...)
	})
	f.step("said otherwise, it is a commit on top", func(t *testing.T) {
		was := g.onlyPullRequest(t, forgeRepo)
		if got := f.proposes(append(slices.Clone(add), "--set", "pools[0].replicas=2")...); !got.Pushed || got.PullRequest.Created {
			t.Errorf("%+v", got)
		}
		now := g.onlyPullRequest(t, forgeRepo)
		if now.Head.SHA == was.Head.SHA || f.git("rev-parse", now.Head.SHA+"^") != was.Head.SHA {
			t.Errorf("its branch went from %s to %s", was.Head.SHA, now.Head.SHA)
		}
	})
	f.step("once it is merged, the next change is made from there", func(t *testing.T) {
		g.merge(t, forgeRepo, 1, "merge")
		got := f.proposes("pool", "scale", "demo", "md-0", "--replicas", "3")
		if got.PullRequest.Number != 2 || !got.PullRequest.Created {
			t.Errorf("%+v", got)
		}
		if diff := f.git("diff", "--numstat", "HEAD", got.Commit); diff != "1\t1\tproviders/docker/v1/clusters/dev/demo/cluster.yaml" {
			t.Errorf("it changes\n%s", diff)
		}
		g.merge(t, forgeRepo, 2, "squash")
		f.fails(0, []string{"Nothing to do"}, "pool", "scale", "demo", "md-0", "--replicas", "3", "--pr")
		if all := g.pullRequests(t, forgeRepo); len(all) != 2 {
			t.Errorf("there are %+v", all)
		}
	})
	f.step("promote tags, and proposes one line", func(t *testing.T) {
		f.ok("promote", "--skip-health", "--pr")
		tags := decode[[]struct{ Name, Message string }](t, g.does(t, http.MethodGet, "/repos/"+forgeRepo+"/tags", nil))
		if len(tags) != 1 || tags[0].Name != "v0.1.0" || !strings.Contains(tags[0].Message, "- Scale pool md-0 of cluster demo to replicas 3") {
			t.Errorf("the tags are %+v", tags)
		}
		p := g.pullRequests(t, forgeRepo)[0]
		if p.Number != 3 || p.Title != "Promote v0.1.0 to channel release" || !strings.Contains(p.Body, "(--skip-health)") {
			t.Errorf("%+v", p)
		}
		g.merge(t, forgeRepo, 3, "rebase")
	})
}
