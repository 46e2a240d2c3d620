//go:build e2e

package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/repoaccess"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// printed prints warnings.
type printed struct{ progress.Reporter }

func (printed) Warn(text string) { fmt.Println("warning:", text) }

// pivotAsCommand is the program under test that hands over as `fleetctl pivot` does: it points the target's Flux at the fleet repo, and
// names the target there. Installing providers and Flux, and waiting for them, needs controllers.
func pivotAsCommand(ctx context.Context, o handover.Options) error {
	var order backupOrder
	if err := json.Unmarshal([]byte(os.Getenv(envCommand)), &order); err != nil {
		return err
	}
	content, err := os.ReadFile(order.KeyFile)
	if err != nil {
		return err
	}
	keys, err := secret.ParseKeys(content)
	if err != nil {
		return err
	}
	home := os.Getenv("HOME")
	s, err := session.Open(ctx, management.Deps{
		Report: printed{progress.Discard}, Store: state.Store{Dir: filepath.Join(home, "state")}, CacheDir: filepath.Join(home, "cache"),
		LookupEnv: func(string) (string, bool) { return "", false },
	}, session.Options{Dir: order.Dir, Git: change.Credentials{Token: order.Token}})
	if err != nil {
		return err
	}
	defer s.Close()
	endpoint, err := repoaccess.Remote(s)
	if err != nil {
		return err
	}
	repo, err := gitrepo.Open(order.Dir)
	if err != nil {
		return err
	}
	if err := repo.Recover(ctx); err != nil {
		return err
	}
	commit := &following.Pushed{
		Session: s, Repo: repo, Access: &repoaccess.Access{Session: s, Endpoint: endpoint, Keys: keys, Home: o.Source.Client},
	}
	if commit.Revision, err = repo.Head(); err != nil {
		return err
	}
	if err := standing.Claim(ctx, s, o.Target.Client, following.View{}); err != nil {
		return err
	}
	o.Fleet, o.Attach = s.Identity(), commit.TakeUp
	if _, err := handover.Run(ctx, o); err != nil {
		return err
	}
	err = converge.Name(ctx, o.Target.Client, commit, endpoint, converge.Naming{Name: "target", By: "fleetctl pivot"}, func(string) {})
	if nothing := steps.NothingToDo(""); errors.As(err, &nothing) {
		return nil
	}
	return err
}

const fleetID = "7c1d8f0e-8a4f-4d0e-9d0b-0a1d0c6b6f11"

// remote is the fleet repo of a world, as it is before a pivot, with a clone of it.
type remote struct {
	*places
	began string // the commit
	// management is the folder that Flux follows, and named the file that names the management cluster.
	management, named string
}

// newRemote makes one. The file that names the management cluster names the source.
func newRemote(t *testing.T, w *world, p *places) *remote {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, w.sourceProxy.kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	uid, err := handover.ClusterUID(t.Context(), clientOf(t, w.source))
	if err != nil {
		t.Fatal(err)
	}
	host := `{type: existing, existing: {kubeconfig: "` + kubeconfig + `", context: source}}`
	r := &remote{places: p, management: "providers/docker/v1/mgmt", named: "providers/docker/v1/management.id"}
	r.began = p.git.Seed(t, "main", map[string]string{
		"fleet.yaml": strings.NewReplacer("URL", p.gitGate.url, "{type: embedded}", host).Replace(backupFleet), "ca.pem": string(p.gitGate.ca),
		fleetrepo.IdentityFile: string(fleetrepo.IdentityContent(fleetID)),
		r.named:                "{uid: " + uid + ", at: 2026-11-26T10:00:00Z, by: ci on other}\n",
	})
	// As at a management cluster that fleetctl has made, Flux follows this repo.
	for path, spec := range map[string]string{
		"/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/flux-system":   `{"url":"` + p.gitGate.url + `"}`,
		"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/flux-system": `{"path":"./` + r.management + `"}`,
	} {
		w.source.must(t.Context(), t, http.MethodPatch, path, []byte(`{"spec":`+spec+`}`), nil)
	}
	p.beginning, w.sourceBefore = w.save(t.Context(), t, ""), w.source.read(t.Context(), t)
	return r
}

// again brings the fleet repo back to its beginning, and clones it where a machine has it.
func (r *remote) again(t *testing.T) {
	t.Helper()
	gittest.Git(t, r.git.Dir, "update-ref", "refs/heads/main", r.began)
	r.clone(t)
}

func (r *remote) clone(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(r.order.Dir); err != nil {
		t.Fatal(err)
	}
	auth := gitrepo.Auth{Username: r.git.Username, Token: r.git.Token, CA: r.gitGate.ca}
	if _, err := gitrepo.Clone(t.Context(), r.gitGate.url, auth, "main", r.order.Dir); err != nil {
		t.Fatal(err)
	}
}

// attaching does a deed to the n-th write with which a pivot gives the target's Flux the fleet repo and names the target there. seen counts
// these writes: they begin with the second Secret for Flux, which has the keys. The first one is a copy.
func attaching(at int, does deed, seen *int) func(write) deed {
	secrets := 0
	return func(w write) deed {
		if w.side == "target" && w.method == http.MethodPost && strings.HasSuffix(w.path, "/flux-system/secrets") {
			secrets++
		}
		ofFlux := w.side == "target" && secrets > 1 && (strings.Contains(w.path, "/flux-system/") ||
			strings.Contains(w.path, "/helmreleases/") || strings.HasSuffix(w.path, "/configmaps/fleet"))
		if !ofFlux && w.side != "Git server" {
			return pass
		}
		if *seen++; *seen == at {
			return does
		}
		return pass
	}
}

// killAttaching kills a pivot after each of these writes, and before the first and the last of them. All of them come after the commit: the
// same command, from the same machine or another one, comes to its end. A kill before one of the others leaves what a kill after the one
// before it does.
func (b *bed) killAttaching(t *testing.T, remotes map[*world]*remote) {
	t.Helper()
	writes := 0
	for _, w := range b.worlds {
		seen := 0
		o := b.pivot(t, w, remotes[w], newMachine(t), true, &run{judge: attaching(0, pass, &seen)})
		if o.code != 0 || seen < fewestAttaching {
			t.Fatalf("a pivot: exit %d, %d writes for Flux and Git\n%s", o.code, seen, o.output)
		}
		writes = seen
		w.attached = snapshot{}
		for i, obj := range w.target.read(t.Context(), t) {
			if i.namespace == "flux-system" && (i.name == "flux-system" || i.name == "sops-age") || i.kind == "ConfigMap" && i.name == "fleet" {
				w.attached[i] = obj
			}
		}
		b.hold(t, append(remotes[w].attached(t, w), b.judge(w).handedOver(t.Context(), t)...), "a pivot", o)
	}
	t.Logf("a pivot has %d writes for Flux and Git", writes)
	cases := []kill{{1, killBefore}, {writes, killBefore}}
	for at := 1; at <= writes; at++ {
		cases = append(cases, kill{at, killAfter})
	}
	forEach(t, b, "every write for Flux and Git of a pivot", cases, func(t *testing.T, w *world, k kill) {
		r, machine, seen := remotes[w], newMachine(t), 0
		o := b.pivot(t, w, r, machine, true, &run{judge: attaching(k.at, k.deed, &seen)})
		story := fmt.Sprintf("a pivot, %s for Flux and Git", k)
		if len(o.struck) == 0 {
			t.Errorf("%s: there is none: exit %d\n%s", story, o.code, o.output)
			return
		}
		b.countKill(t)
		b.hold(t, b.judge(w).meanwhile(t.Context(), t), story, o)
		if k.at%2 == 0 {
			machine, story = newMachine(t), story+", from another machine"
			r.clone(t)
		}
		if o = b.pivot(t, w, r, machine, false, &run{}); o.code != 0 {
			t.Errorf("%s, then again: exit %d\n%s", story, o.code, o.output)
			return
		}
		b.hold(t, append(r.attached(t, w), b.judge(w).handedOver(t.Context(), t)...), story+", then again", o)
		if o = b.pivot(t, w, r, machine, false, &run{}); o.code != 0 || o.count() != 0 {
			t.Errorf("%s, then again twice: exit %d after %d writes\n%s", story, o.code, o.count(), o.output)
		}
	})
}

// fewestAttaching is how many of these writes there are at least.
const fewestAttaching = 8

// attached is what has to hold once a pivot has said that it is done: the target's Flux follows the fleet repo, and one commit names the
// target there.
func (r *remote) attached(t *testing.T, w *world) (faults []string) {
	t.Helper()
	source := w.target.listOf(t.Context(), t, "source.toolkit.fluxcd.io", "GitRepository")
	applied := w.target.listOf(t.Context(), t, "kustomize.toolkit.fluxcd.io", "Kustomization")
	for _, obj := range slices.Concat(source, applied) {
		url, _, _ := unstructured.NestedString(obj.Object, "spec", "url")
		path, _, _ := unstructured.NestedString(obj.Object, "spec", "path")
		suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
		if obj.GetName() == "flux-system" && (suspended || url+path != r.gitGate.url && url+path != "./"+r.management) {
			faults = append(faults, fmt.Sprintf("%s flux-system follows %q, suspended: %t", obj.GetKind(), url+path, suspended))
		}
		if obj.GetName() == flux.FetchName {
			faults = append(faults, "left: the source that the target tried")
		}
	}
	uid, err := handover.ClusterUID(t.Context(), clientOf(t, w.target))
	if err != nil {
		t.Fatal(err)
	}
	if named := r.git.File(t, "main", r.named); !strings.Contains(named, uid) {
		faults = append(faults, "the fleet repo names another one: "+named)
	}
	if commits := gittest.Git(t, r.git.Dir, "rev-list", "--count", r.began+"..main"); strings.TrimSpace(commits) != "1" {
		faults = append(faults, "commits since: "+commits)
	}
	now := w.target.read(t.Context(), t)
	for i, obj := range w.attached {
		faults = append(faults, judge{world: w, status: true}.compare("at the target", withoutMarks(obj), withoutMarks(now[i]), i)...)
	}
	return faults
}

// pivot runs pivotAsCommand, from the beginning if begin is true.
func (b *bed) pivot(t *testing.T, w *world, r *remote, machine string, begin bool, how *run) outcome {
	t.Helper()
	if begin {
		w.restore(t.Context(), t, r.beginning)
		r.again(t)
	}
	defer w.openGates()
	return w.execute(t.Context(), t, b.program.told(t, r.order), pivotCommand, machine, how)
}

// openGates lets the test itself through.
func (w *world) openGates() {
	for _, g := range w.gates {
		g.run.Store(nil)
	}
}

// TestEveryWrite kills what TestKills does not: backups, which write to folders, branches and registries, and what a pivot writes to the
// target's Flux and to the fleet repo.
func TestEveryWrite(t *testing.T) {
	t.Setenv("CI", "true") // nobody has told git a name
	b := newBed(t, engine(t), *worlds, func(ctx context.Context, t testing.TB, s *seeder) { s.fleet(ctx, t) }, true)
	at, remotes := map[*world]*places{}, map[*world]*remote{}
	for _, w := range b.worlds {
		at[w] = newPlaces(t, w)
	}
	b.killBackups(t, at)
	if t.Failed() {
		return
	}
	for _, w := range b.worlds {
		remotes[w] = newRemote(t, w, at[w])
	}
	b.killAttaching(t, remotes)
}
