//go:build integration

package repofiles_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/repofiles"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
)

// tokenFleet is a fleet repo at a real Git server that asks for a token, and its management cluster as far as an API server.
type tokenFleet struct {
	*standingtest.Cluster
	share, automation, reader bool
}

const tokenWorkload = "providers/docker/v1/clusters/dev/north/"

// options write the fleet repo as it is declared to be, and are those of a run with these tokens.
func (f *tokenFleet) options(t *testing.T, push, own string) session.Options {
	t.Helper()
	o := f.Cluster.Options(t, "admin")
	fleet := strings.Replace(string(f.Read(t, v1alpha1.FileName)), "spec:\n", "spec:\n  environments: [{name: dev}]\n", 1)
	if f.share {
		fleet = strings.Replace(fleet, "caFile: ca.pem", "caFile: ca.pem, sharePushToken: true", 1)
	}
	if f.automation {
		fleet = strings.Replace(fleet, "spec:\n",
			"spec:\n  flux: {components: [source-controller, kustomize-controller, helm-controller, notification-controller, "+
				"image-reflector-controller, image-automation-controller]}\n", 1)
	}
	files := map[string]string{
		v1alpha1.FileName:      fleet,
		fleetrepo.IdentityFile: string(fleetrepo.IdentityContent("0b0c6c2c-7d8e-4f25-9a44-6e3b53f1c2aa")),
	}
	if f.reader {
		files[tokenWorkload+"cluster.yaml"] =
			"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: north, namespace: north}\n" +
				"spec: {interval: 10m, chart: {spec: {chart: ./charts/in-memory}}, values: {}}\n"
		files[tokenWorkload+layout.FluxFile] =
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: north-sync, namespace: north}\n" +
				"spec: {path: ./providers/docker/v1/clusters/dev/common/sync}\n"
	}
	for name, content := range files {
		path := filepath.Join(f.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o.Git.Token, o.FluxToken = push, own
	return o
}

// doctor is what the check says of these tokens.
func (f *tokenFleet) doctor(ctx context.Context, t *testing.T, push, own string) preflight.Report {
	t.Helper()
	report, err := lifecycle.Doctor(ctx, f.Deps, f.options(t, push, own))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Checks {
		for _, token := range []string{push, own, f.Git.Token, f.Git.ReadToken} {
			if token != "" && strings.Contains(r.Summary+r.Hint, token) {
				t.Errorf("%s quotes a token: %s (%s)", r.Name, r.Summary, r.Hint)
			}
		}
	}
	for _, r := range report.Checks {
		if r.Name == "git token for flux" {
			return r
		}
	}
	t.Fatalf("no such check: %+v", report.Checks)
	return preflight.Report{}
}

// session is one of a run with these tokens.
func (f *tokenFleet) session(ctx context.Context, t *testing.T, push, own string) *session.Session {
	t.Helper()
	s, err := session.Open(ctx, f.Deps, f.options(t, push, own))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// content is what a run with these tokens that has reached the cluster wants in the fleet repo.
func (f *tokenFleet) content(ctx context.Context, t *testing.T, push, own string) *repofiles.Content {
	t.Helper()
	s := f.session(ctx, t, push, own)
	endpoint, err := repoaccess.Remote(s)
	if err != nil {
		t.Fatal(err)
	}
	return &repofiles.Content{Session: s, Endpoint: endpoint, Client: f.Client}
}

// run does of init what is about credentials: it writes those of the workload clusters into the fleet repo, and gives the management
// cluster its own.
func (f *tokenFleet) run(ctx context.Context, t *testing.T, push, own string) {
	t.Helper()
	content := f.content(ctx, t, push, own)
	changes, err := repofiles.SecretFiles(content, ctx, f.Dir)
	if err != nil {
		t.Fatal(err)
	}
	writeChanges(t, f.Dir, changes)
	made, err := content.Access().SourceSecret(ctx, f.Client)
	if err != nil {
		t.Fatal(err)
	}
	if err := flux.NewSystem(f.Client).ApplySecret(ctx, made); err != nil {
		t.Fatal(err)
	}
	if err := flux.NewSystem(f.Client).AddKeys(ctx, fleetsecrets.WithKeys(content.Access().Keys)); err != nil {
		t.Fatal(err)
	}
}

// held are the tokens that the management cluster and the workload clusters have.
func (f *tokenFleet) held(ctx context.Context, t *testing.T) (cluster, workload string) {
	t.Helper()
	s := f.session(ctx, t, "", "")
	keys, err := fleetsecrets.ClusterKeys(ctx, f.Client)
	if err != nil {
		t.Fatal(err)
	}
	there, err := repoaccess.ClusterToken(ctx, s, f.Client)
	if err != nil {
		t.Fatal(err)
	}
	if there != nil {
		cluster = there.Password
	}
	file, err := repoaccess.ReadCredentialsFile(f.Dir, s.Layout().Credentials("dev"), keys)
	if err != nil {
		t.Fatal(err)
	}
	if there, err = repoaccess.TokenInFile(s, file); err != nil {
		t.Fatal(err)
	}
	if there != nil {
		workload = there.Password
	}
	return cluster, workload
}

func newTokenFleet(ctx context.Context, t *testing.T) *tokenFleet {
	t.Helper()
	f := &tokenFleet{Cluster: standingtest.New(t)}
	if err := f.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: flux.Namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := f.session(ctx, t, "", "").Claim().Create(ctx, f.Client); err != nil {
		t.Fatal(err)
	}
	return f
}

// A token that Flux was given for itself stays until another one is given, and the one that pushes never takes its place. Workload clusters
// get that one only where fleet.yaml agrees. What doctor says is what is so.
func TestFluxKeepsItsOwnToken(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	f := newTokenFleet(ctx, t)
	const expired = "exp1red-token"
	push, reads := f.Git.Token, f.Git.ReadToken
	for _, step := range []struct {
		name                      string
		push, own                 string
		share, automation, reader bool
		doctor                    preflight.Status
		says                      string
		cluster, workload         string // after init
	}{
		{
			"the one that pushes alone", push, "", false, false, false, preflight.StatusWarn,
			"the management cluster gets the token that pushes", push, "",
		},
		{
			"a workload cluster would read", push, "", false, false, true, preflight.StatusFail,
			"workload cluster north would hold the token that pushes", push, "",
		},
		{"as is agreed", push, "", true, false, true, preflight.StatusWarn, "spec.git.sharePushToken agrees to that", push, push},
		{"no longer agreed", push, "", false, false, true, preflight.StatusFail, "hold a token that init was given for pushing", push, push},
		{
			"no longer agreed, and none that reads it", push, "", false, false, false, preflight.StatusFail,
			"hold a token that init was given for pushing", push, push,
		},
		{"the same twice", push, push, false, false, true, preflight.StatusFail, "hold a token that init was given for pushing", push, push},
		{"its own", push, reads, false, false, true, preflight.StatusOK, "is given a token that only reads", reads, reads},
		{"it stays", push, "", false, false, true, preflight.StatusOK, "holds a token that only reads", reads, reads},
		{"it stays, whatever is agreed", push, "", true, false, true, preflight.StatusOK, "holds a token that only reads", reads, reads},
		{"one that expires", push, expired, false, false, true, preflight.StatusFail, "authentication failed", expired, expired},
		{"it has expired", push, "", false, false, true, preflight.StatusFail, "try the token for Flux: ", expired, expired},
		{"renewed", push, reads, false, false, true, preflight.StatusOK, "is given a token that only reads", reads, reads},
		{
			"image automation pushes", push, "", false, true, true, preflight.StatusOK,
			"the management cluster holds the one that pushes, for image automation", push, reads,
		},
		{"image automation ends", push, "", false, false, true, preflight.StatusOK, "holds a token that only reads", reads, reads},
		{"for Flux alone, and it may push", "", push, false, false, true, preflight.StatusWarn, "the token for Flux may push too", push, push},
		{"renewed again", push, reads, false, false, true, preflight.StatusOK, "is given a token that only reads", reads, reads},
	} {
		f.share, f.automation, f.reader = step.share, step.automation, step.reader
		if !step.reader {
			if err := os.RemoveAll(filepath.Join(f.Dir, filepath.FromSlash(tokenWorkload))); err != nil {
				t.Fatal(err)
			}
		}
		if r := f.doctor(ctx, t, step.push, step.own); r.Status != step.doctor || !strings.Contains(r.Summary, step.says) {
			t.Errorf("%s: doctor says %s: %s", step.name, r.Status, r.Summary)
		}
		f.run(ctx, t, step.push, step.own)
		if cluster, workload := f.held(ctx, t); cluster != step.cluster || workload != step.workload {
			t.Errorf("%s: the management cluster holds %q, workload clusters %q; want %q and %q", step.name, cluster, workload,
				step.cluster, step.workload)
		}
	}
	f.share, f.automation, f.reader = false, false, true

	// What Flux holds is looked at without any token here, too.
	if r := f.doctor(ctx, t, "", ""); r.Status != preflight.StatusOK || !strings.Contains(r.Summary, "holds a token that only reads") {
		t.Errorf("without a token here: %s: %s", r.Status, r.Summary)
	}
	t.Run("a lost cluster gets it from the repo", func(t *testing.T) {
		lost := &unstructured.Unstructured{}
		lost.SetAPIVersion("v1")
		lost.SetKind("Secret")
		lost.SetNamespace(flux.Namespace)
		lost.SetName(flux.Name)
		if err := f.Client.Delete(ctx, []*unstructured.Unstructured{lost}, kube.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.run(ctx, t, push, "")
		if cluster, _ := f.held(ctx, t); cluster != reads {
			t.Errorf("it holds %q", cluster)
		}
	})
	t.Run("a lost file gets it from the cluster", func(t *testing.T) {
		if err := os.Remove(filepath.Join(f.Dir, filepath.FromSlash(f.session(ctx, t, "", "").Layout().Credentials("dev")))); err != nil {
			t.Fatal(err)
		}
		f.run(ctx, t, push, "")
		if _, workload := f.held(ctx, t); workload != reads {
			t.Errorf("workload clusters hold %q", workload)
		}
	})
	t.Run("authorities are renewed beside it", func(t *testing.T) {
		f.Git.CA = append(f.Git.CA, gittest.NewHTTPS(t, gittest.Options{}).CA...)
		f.run(ctx, t, push, "")
		there, err := f.Client.SecretValue(ctx, kube.Key{Namespace: flux.Namespace, Name: flux.Name}, "ca.crt")
		if cluster, _ := f.held(ctx, t); err != nil || string(there) != string(f.Git.CA) || cluster != reads {
			t.Errorf("it holds %q and the authorities %s, %v", cluster, there, err)
		}
	})
	t.Run("the cluster that takes over gets it", func(t *testing.T) {
		target, _ := kubetest.Start(t)
		made, err := f.content(ctx, t, push, "").Access().SourceSecret(ctx, target)
		if err != nil {
			t.Fatal(err)
		}
		if _, password := flux.PasswordIn(made); password != reads {
			t.Errorf("it gets %q", password)
		}
	})
	t.Run("no other server is sent it", func(t *testing.T) {
		f.Git = gittest.NewHTTPS(t, gittest.Options{})
		r := f.doctor(ctx, t, f.Git.Token, "")
		if r.Status != preflight.StatusFail || !strings.Contains(r.Summary, "was given for https://") {
			t.Errorf("doctor says %s: %s", r.Status, r.Summary)
		}
		f.run(ctx, t, f.Git.Token, "")
		if cluster, workload := f.held(ctx, t); cluster != f.Git.Token || workload != reads {
			t.Errorf("the management cluster holds %q, workload clusters %q", cluster, workload)
		}
	})
}

// What cannot be a token is sent to nobody, and the one that Flux holds stays where init is refused.
func TestUnreadableTokenIsRefusedEarly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f := newTokenFleet(ctx, t)
	_, err := lifecycle.Init(ctx, f.Deps, f.options(t, f.Git.Token, "wr0ng"))
	if err == nil || !strings.Contains(err.Error(), "git token for flux: try the token for Flux: ") || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("got %v", err)
	}
	if cluster, _ := f.held(ctx, t); cluster != "" {
		t.Errorf("it holds %q", cluster)
	}
	if head := f.Git.Head(t, "main"); head != "" {
		t.Errorf("the fleet repo has %s", head)
	}
}
