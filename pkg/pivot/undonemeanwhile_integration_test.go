//go:build integration

package pivot

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/converge"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// beforeWrite returns a client of the administrator in the kubeconfig file. do runs before the first write to the Secret of that name.
func beforeWrite(t *testing.T, kubeconfig, name string, do func()) *kube.Client {
	t.Helper()
	client, err := kube.New(serverOf(wayThrough(t, kubeconfig, name, do)), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// wayThrough returns the address of beforeWrite's way to the API server.
func wayThrough(t *testing.T, kubeconfig, name string, do func()) string {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: "admin"}).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		created := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/namespaces/"+targetSecret.Namespace+"/secrets")
		if created || r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/"+name) {
			once.Do(do)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// An abort on another machine ends while a pivot tries at the target what Flux would do, or while it keeps the way to the target. The pivot
// says so, and nothing stays that says that the target takes over. It takes nothing away that another pivot needs, which has begun
// meanwhile, nor what an abort needs that was cut off.
func TestAbortBeforeTheCommitLeavesNothingBehind(t *testing.T) {
	ctx, e, s := takenFleet(t)
	commit := noting(t, e, s)
	keys := commit.Access.Keys
	forget := func(name string) {
		err := e.Client.WithWatch.Delete(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: handover.JournalKey.Namespace, Name: name,
		}})
		if err != nil && !kube.IsAbsent(err) {
			t.Error(err)
		}
	}
	journal := func(phase, target string) func() {
		return func() {
			keepJournal(ctx, t, e.Client, `{"formatVersion":"1","id":"a","role":"source","phase":"`+phase+`","target":{"uid":"`+target+`"}}`)
		}
	}
	gone := func() { forget(handover.JournalKey.Name) }
	other := &handedTarget{Name: "other", Kubeconfig: []byte("its kubeconfig"), UID: "u-other"}
	for name, test := range map[string]struct {
		before, between func()
		refused         bool
		kept            string // the target that the source still knows at the end
		noted           string // the target that is noted beside the snapshots at the end
	}{
		"no abort":                         {journal("copied", "u-next"), func() {}, false, "next", "next"},
		"an abort has ended":               {gone, func() {}, true, "", ""},
		"an abort ends between the writes": {journal("copied", "u-next"), gone, true, "", ""},
		"an abort is under way":            {journal("aborting", "u-next"), func() {}, true, "next", "next"},
		"an abort begins":                  {journal("copied", "u-next"), journal("aborting", "u-next"), true, "next", "next"},
		"another machine has committed":    {journal("committed", "u-next"), func() {}, true, "next", "next"},
		"another machine has come to the end": {
			func() {}, journal("released", "u-next"), true, "next", "next",
		},
		"another pivot has begun": {func() {
			journal("fenced", "u-other")()
			if err := NewMove(converge.NewRun(s), "").keepTarget(ctx, e.Client, other); err != nil {
				t.Error(err)
			}
		}, func() {}, true, "other", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.Fleet.Spec.Snapshots.To = t.TempDir()
			place, err := s.Place()
			if err != nil {
				t.Fatal(err)
			}
			taken := time.Now().Add(-time.Hour)
			before := &snapshot.Snapshot{ID: snapshot.NewID(taken), Taken: taken, Fleet: s.Identity(), ManagementCluster: s.DeclaredAs()}
			if err := snapshot.Put(ctx, place, before, keys); err != nil {
				t.Fatal(err)
			}
			way := &handedTarget{Name: "next", Kubeconfig: []byte("its kubeconfig"), UID: "u-next"}
			journal("planned", "u-next")()
			p := NewMove(converge.NewRun(s), "")
			if err := p.keepTarget(ctx, e.Client, way); err != nil {
				t.Fatal(err)
			}
			if err := markHandedOver(ctx, commit, way.Name, false); err != nil {
				t.Fatal(err)
			}
			if test.noted == "" { // the abort has removed what was there
				if err := p.takeBack(ctx, e.Client, way, commit); err != nil {
					t.Fatal(err)
				}
			}
			test.before()
			source := beforeWrite(t, e.Kubeconfig, targetSecret.Name, test.between)
			err = p.handOptions(source, &Target{handedTarget: way, client: e.Client}, commit, func(string) {}).Check(ctx, e.Client)
			overtaken := strings.HasPrefix(name, "another machine")
			if (err != nil) != test.refused || errors.Is(err, handover.ErrOvertaken) != overtaken ||
				err != nil && !overtaken && !strings.Contains(err.Error(), "was undone meanwhile") {
				t.Errorf("got %v", err)
			}
			newest, err := snapshot.Find(ctx, place, "", keys)
			if err != nil || newest.HandedOver != test.noted {
				t.Errorf("the newest in the place of the snapshots is handed over to %q, %v", newest.HandedOver, err)
			}
			raw, err := e.Client.SecretValue(ctx, targetSecret, "target")
			if kept := decodeKept(raw); (kept != nil) != (test.kept != "") || kept != nil && kept.Name != test.kept {
				t.Errorf("the source has the target %+v, %v", kept, err)
			}
			if local, err := readKept(s.Cluster); err != nil || (local != nil) != (test.kept == "next") {
				t.Errorf("this machine has the target %+v, %v", local, err)
			}
		})
	}
}

// The same for a standby: an abort on another machine has made it a standby at rest again. The note that it takes over goes again, also
// that of an activation with a snapshot, which notes it once more: an abort may have removed the note before the first journal was there.
func TestAbortBeforeAnActivationCommitsLeavesNoNote(t *testing.T) {
	ctx, e, s := takenFleet(t)
	commit := noting(t, e, s)
	keys := commit.Access.Keys
	s.Opts.AgeKeyFile = filepath.Join(t.TempDir(), "agekey")
	if err := os.WriteFile(s.Opts.AgeKeyFile, keys.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	s.StandbyOf, s.Waiting = "lost", "u1"
	for name, test := range map[string]struct {
		journal string
		refused bool
		noted   string
	}{
		"no abort":           {`"role":"target","phase":"copied","activates":true`, false, s.Mgmt.Name},
		"an abort has ended": {`"role":"standby","phase":"released","standby":{"of":"lost"}`, true, ""},
	} {
		s.Fleet.Spec.Snapshots.To = t.TempDir()
		place, err := s.Place()
		if err != nil {
			t.Fatal(err)
		}
		taken := time.Now().Add(-time.Hour)
		last := &snapshot.Snapshot{ID: snapshot.NewID(taken), Taken: taken, Fleet: s.Identity(), ManagementCluster: s.DeclaredAs()}
		if err := snapshot.Put(ctx, place, last, keys); err != nil {
			t.Fatal(err)
		}
		keepJournal(ctx, t, e.Client, `{"formatVersion":"1","id":"a",`+test.journal+`}`)
		a := &activation{Restoration: NewRestoration(converge.NewRun(s))}
		a.Snap = last
		err = a.checkAndNote(commit, &resolve.Manifests{})(ctx, e.Client)
		if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "was undone meanwhile") {
			t.Errorf("%s: got %v", name, err)
		}
		if newest, err := snapshot.Find(ctx, place, "", keys); err != nil || newest.HandedOver != test.noted {
			t.Errorf("%s: the newest in the place of the snapshots is handed over to %q, %v", name, newest.HandedOver, err)
		}
	}
}
