//go:build integration

package pivot

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/standing/standingtest"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// A pivot that was killed before its first journal, and an abort that was killed after it had removed the journals, leave the kubeconfig of
// the target at the source, and a note beside the snapshots that the target has the work. The next abort removes both, also from a machine
// that knows nothing of the first one.
func TestAbortGoesOnWithoutAJournal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	e := standingtest.New(t)
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	keys, place := secret.Keys{key}, t.TempDir()
	ageKeys := filepath.Join(t.TempDir(), "agekey")
	if err := os.WriteFile(ageKeys, keys.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := e.Take(ctx, t, func(o *session.Options) { o.AgeKeyFile = ageKeys })
	if err != nil {
		t.Fatal(err)
	}
	s.Fleet.Spec.Snapshots.To, s.Opts.AgeKeyFile = place, ageKeys
	folder, err := snapshot.NewFolder(place, "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	there, target := kubetest.Start(t)
	way := &handedTarget{Name: "platform/platform", Kubeconfig: target}
	begin := func() {
		t.Helper()
		p := NewMove(converge.NewRun(s), "platform")
		if err := p.keepTarget(ctx, e.Client, way); err != nil {
			t.Fatal(err)
		}
		if err := noteHandedOver(ctx, folder, note(s, way.Name, ""), keys, true); err != nil {
			t.Fatal(err)
		}
	}
	abortWith := func(ctx context.Context, o MoveOptions) (*MoveResult, error) {
		o.Abort = true
		p := NewMove(converge.NewRun(s), "")
		p.source = e.Client
		return p.aside(ctx, o)
	}
	abort := func(ctx context.Context) (*MoveResult, error) { return abortWith(ctx, MoveOptions{}) }
	settled := func() {
		t.Helper()
		newest, err := snapshot.Find(ctx, folder, "", keys)
		if err != nil || newest.HandedOver != "" {
			t.Errorf("the newest in the place of the snapshots: %+v, %v", newest, err)
		}
		if _, err := e.Client.SecretValue(ctx, targetSecret, "target"); !kube.IsAbsent(err) {
			t.Errorf("the source still has the kubeconfig of the target: %v", err)
		}
		if kept, err := readKept(s.Cluster); err != nil || kept != nil {
			t.Errorf("this machine still has it: %+v, %v", kept, err)
		}
		if result, err := abort(ctx); err != nil || result.Outcome != "nothing-to-do" {
			t.Errorf("once more: %+v, %v", result, err)
		}
	}
	for story, from := range map[string]func(){
		"on the same machine": func() {}, "on another machine": func() { s.Cluster = state.Store{Dir: t.TempDir()}.Cluster("mgmt") },
		"with a damaged file": func() {
			if err := s.Cluster.Write(targetFile, []byte(`{"name":"platform/pl`)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(story, func(t *testing.T) {
			begin()
			from()
			result, err := abort(ctx)
			if err != nil || result.Outcome != "undone" || result.Report.Target != way.Name {
				t.Fatalf("%+v, %v", result, err)
			}
			settled()
		})
	}

	t.Run("after an abort that could not clear up the target", func(t *testing.T) {
		begin()
		keepJournal(ctx, t, there, strings.NewReplacer("FLEET", s.Identity(), "SOURCE", clusterUID(ctx, t, e.Client),
			"TARGET", clusterUID(ctx, t, there)).Replace(`{"formatVersion":"1","id":"a","role":"target","phase":"aborting","fleet":"FLEET",`+
			`"runner":"r","source":{"name":"mgmt","uid":"SOURCE"},"target":{"name":"platform/platform","uid":"TARGET"}}`))
		result, err := abort(ctx)
		if err != nil || result.Outcome != "undone" || result.Report.Target != way.Name {
			t.Fatalf("%+v, %v", result, err)
		}
		if j, err := handover.ReadJournal(ctx, there); err != nil || j != nil {
			t.Errorf("the journal of the target: %+v, %v", j, err)
		}
		settled()
	})

	// Somebody may have deleted the source's journal after the commit. Only the target can tell.
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refusing.Close()
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	journal := func(content string) func() []byte {
		return func() []byte {
			keepJournal(ctx, t, there, strings.ReplaceAll(content, "FLEET", s.Identity()))
			return target
		}
	}
	const taken = `{"formatVersion":"1","id":"a","role":"target","phase":"committed","fleet":"%s",` +
		`"source":{"name":"mgmt"},"target":{"name":"p"}}`
	for story, test := range map[string]struct {
		way  func() []byte
		gone bool // with the word of the user that the target is gone, it is undone
		says string
	}{
		"refuses":            {func() []byte { return serverOf(refusing.URL) }, true, "whether it has taken over"},
		"does not answer":    {func() []byte { return serverOf(away.URL) }, true, "whether it has taken over"},
		"is not known":       {func() []byte { return []byte("no kubeconfig") }, true, "whether it has taken over"},
		"has a damaged note": {journal("{"), true, "whether it has taken over"},
		"has taken over":     {journal(fmt.Sprintf(taken, "FLEET")), false, "which has none"},
		"has another fleet's": {
			journal(fmt.Sprintf(taken, "7c9e6679-7425-40de-944b-e07fc1f90ae7")), true, "",
		},
	} {
		t.Run("the target "+story, func(t *testing.T) {
			way.Kubeconfig = test.way()
			begin()
			result, err := abort(ctx)
			if test.says == "" {
				if err != nil || result.Outcome != "undone" {
					t.Fatalf("%+v, %v", result, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.says) || test.gone != strings.Contains(diag.Hint(err), "--without-target") {
				t.Fatalf("%+v, %v (%s)", result, err, diag.Hint(err))
			}
			if newest, err := snapshot.Find(ctx, folder, "", keys); err != nil || newest.HandedOver != way.Name {
				t.Errorf("the newest in the place of the snapshots: %+v, %v", newest, err)
			}
			if kept, err := readKept(s.Cluster); err != nil || kept == nil {
				t.Errorf("this machine has forgotten the target: %+v, %v", kept, err)
			}
			if result, err = abortWith(ctx, MoveOptions{WithoutTarget: true}); (err == nil) != test.gone {
				t.Errorf("without the target: %+v, %v", result, err)
			}
			if test.gone {
				settled()
			}
		})
	}
}

// Somebody has deleted the source's journal behind the commit, and an abort is given a kubeconfig of a wrong cluster: the way to the target
// stays, and so does the note that it has the work. The target itself refuses, also by another kubeconfig. An abort of what a third cluster
// has to undo says nothing about the target.
func TestAbortAtAWrongClusterForgetsNothing(t *testing.T) {
	ctx, e, s := takenFleet(t)
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s.Fleet.Spec.Snapshots.To = t.TempDir()
	s.Opts.AgeKeyFile = filepath.Join(t.TempDir(), "agekey")
	if err := os.WriteFile(s.Opts.AgeKeyFile, secret.Keys{key}.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	folder, err := s.Place()
	if err != nil {
		t.Fatal(err)
	}
	there, target := kubetest.Start(t)
	wrong, other := kubetest.Start(t)
	for _, client := range []*kube.Client{there, wrong} {
		kubetest.ClusterAPI(t, client, "clusters", "machines")
	}
	journal := func(client *kube.Client, phase string) {
		keepJournal(ctx, t, client, fmt.Sprintf(`{"formatVersion":"1","id":"a","role":"target","phase":%q,"fleet":%q,"epoch":1,`+
			`"source":{"name":%q,"uid":%q},"target":{"name":"p","uid":%q}}`,
			phase, s.Identity(), s.Mgmt.Name, clusterUID(ctx, t, e.Client), clusterUID(ctx, t, client)))
	}
	journal(there, "committed")
	way := &handedTarget{Name: "platform/platform", Kubeconfig: target, UID: clusterUID(ctx, t, there)}
	if err := NewMove(converge.NewRun(s), "platform").keepTarget(ctx, e.Client, way); err != nil {
		t.Fatal(err)
	}
	if err := noteHandedOver(ctx, folder, note(s, way.Name, ""), secret.Keys{key}, true); err != nil {
		t.Fatal(err)
	}
	abortAt := func(kubeconfig []byte) (*MoveResult, error) {
		p := NewMove(converge.NewRun(s), "given")
		p.source, p.toKubeconfig = e.Client, kubeconfig
		return p.aside(ctx, MoveOptions{Abort: true})
	}
	keeps := func(story string) {
		t.Helper()
		if newest, err := snapshot.Find(ctx, folder, "", secret.Keys{key}); err != nil || newest.HandedOver != way.Name {
			t.Errorf("%s: the newest in the place of the snapshots: %+v, %v", story, newest, err)
		}
		if raw, err := e.Client.SecretValue(ctx, targetSecret, "target"); err != nil || decodeKept(raw) == nil {
			t.Errorf("%s: the source has forgotten the target: %v", story, err)
		}
	}
	elsewhere := state.Store{Dir: t.TempDir()}.Cluster("mgmt")
	for story, cluster := range map[string]state.Cluster{"on the same machine": s.Cluster, "elsewhere": elsewhere} {
		s.Cluster = cluster
		if result, err := abortAt(other); err == nil || !strings.Contains(err.Error(), "is another cluster than platform/platform") {
			t.Errorf("%s: %+v, %v", story, result, err)
		}
		keeps(story)
		if result, err := abortAt(target); err == nil || !strings.Contains(err.Error(), "committed") {
			t.Errorf("%s, at the target: %+v, %v", story, result, err)
		}
		keeps(story)
	}
	journal(wrong, "aborting")
	if result, err := abortAt(other); err != nil || result.Outcome != "undone" {
		t.Errorf("at a third cluster: %+v, %v", result, err)
	}
	if left, err := handover.ReadJournal(ctx, wrong); err != nil || left.Active() {
		t.Errorf("the third cluster still has a journal: %+v, %v", left, err)
	}
	keeps("at a third cluster")
	if err := there.WithWatch.Delete(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name},
	}); err != nil {
		t.Fatal(err)
	}
	if result, err := abortAt(target); err != nil || result.Outcome != "undone" {
		t.Errorf("at the target, which has not taken over: %+v, %v", result, err)
	}
	if _, err := e.Client.SecretValue(ctx, targetSecret, "target"); !kube.IsAbsent(err) {
		t.Errorf("the source still has the kubeconfig of the target: %v", err)
	}
}

func clusterUID(ctx context.Context, t *testing.T, client *kube.Client) string {
	t.Helper()
	uid, err := handover.ClusterUID(ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	return uid
}

// keepJournal writes the content of a journal at a cluster.
func keepJournal(ctx context.Context, t *testing.T, client *kube.Client, content string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}
	if err := client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name},
		Data:       map[string][]byte{"journal": []byte(content)},
	}
	if err := client.WithWatch.Delete(ctx, s.DeepCopy()); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
	if err := client.Create(ctx, s); err != nil {
		t.Fatal(err)
	}
}

// serverOf is a kubeconfig of the server at url.
func serverOf(url string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],`+
		`"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}],"users":[{"name":"c","user":{"token":"t"}}]}`, url)
}
