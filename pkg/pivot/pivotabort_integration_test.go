//go:build integration

package pivot

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/state"
)

const lostFleet = "0f6a5f0e-7d1c-4a9e-9b43-6f0f3c2f7a11"

// lostSource is a target that was about to take over from a management cluster that is lost.
type lostSource struct {
	client *kube.Client
	folder *snapshot.Folder
	keys   secret.Keys
	deps   management.Deps
	o      MoveOptions
}

func newLostSource(t *testing.T) *lostSource {
	t.Helper()
	t.Setenv("CI", "true")
	client, raw := kubetest.Start(t)
	dir, places := t.TempDir(), t.TempDir()
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		filepath.Join(dir, fleetrepo.IdentityFile): string(fleetrepo.IdentityContent(lostFleet)),
		filepath.Join(dir, v1alpha1.FileName): `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  git: {url: "https://git.example.com/acme/fleet.git"}
  snapshots: {to: "` + places + `"}
  managementClusters:
  - name: mgmt
    host: {type: embedded}
    providers: [{name: docker, version: v1.14.2}]
`,
		filepath.Join(dir, "target.kubeconfig"): string(raw),
		filepath.Join(places, "agekey"):         string(secret.Keys{key}.File()),
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := snapshot.NewFolder(places, "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	l := &lostSource{
		client: client, folder: folder, keys: secret.Keys{key},
		deps: management.Deps{
			Report: progress.Discard, Store: state.Store{Dir: t.TempDir()}, CacheDir: t.TempDir(),
			LookupEnv: func(string) (string, bool) { return "", false },
		},
		o: MoveOptions{
			Options: session.Options{Dir: dir, AgeKeyFile: filepath.Join(places, "agekey")}, ToKubeconfig: filepath.Join(dir, "target.kubeconfig"),
			Abort: true, SourceIsGone: true,
		},
	}
	if err := client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: handover.JournalKey.Namespace}}); err != nil {
		t.Fatal(err)
	}
	return l
}

// journal writes j as the target's journal.
func (l *lostSource) journal(t *testing.T, j handover.Journal) {
	t.Helper()
	uid, err := handover.ClusterUID(t.Context(), l.client)
	if err != nil {
		t.Fatal(err)
	}
	j.FormatVersion, j.ID, j.Source.UID, j.Target = "1", "of-a-pivot", "lost", handover.Party{Name: "platform", UID: uid}
	content, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: handover.JournalKey.Namespace, Name: handover.JournalKey.Name},
		Data:       map[string][]byte{"journal": content},
	}
	if err := l.client.WithWatch.Delete(t.Context(), s.DeepCopy()); err != nil && !kube.IsAbsent(err) {
		t.Fatal(err)
	}
	if err := l.client.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// history writes a snapshot of the source, and then a note that the management cluster to takes over.
func (l *lostSource) history(t *testing.T, to string) {
	t.Helper()
	at := time.Now().Add(-time.Hour)
	for n, s := range []*snapshot.Snapshot{{}, {HandedOver: to}} {
		s.Taken = at.Add(time.Duration(n) * time.Minute)
		s.ID, s.Fleet, s.ManagementCluster = snapshot.NewID(s.Taken), lostFleet, "mgmt"
		if s.HandedOver == "" {
			s.Clusters = []string{"shop/shop"}
		}
		if err := snapshot.Put(t.Context(), l.folder, s, l.keys); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *lostSource) notes(ctx context.Context, t *testing.T) int {
	t.Helper()
	ids, err := l.folder.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return len(ids)
}

// If the source is lost before its target has taken over, an abort frees the target, and a snapshot of the source can be restored.
func TestPivotWhoseSourceIsLost(t *testing.T) {
	l := newLostSource(t)
	ctx := t.Context()
	mine := handover.Journal{Role: handover.RoleTarget, Phase: handover.PhaseCopied, Fleet: lostFleet, Source: handover.Party{Name: "mgmt"}}

	for name, test := range map[string]struct {
		change func(j *handover.Journal)
		says   string
	}{
		"another fleet's":  {func(j *handover.Journal) { j.Fleet = "another" }, "and not from mgmt of this fleet"},
		"another source's": {func(j *handover.Journal) { j.Source.Name = "other" }, "and not from mgmt of this fleet"},
		"has taken over":   {func(j *handover.Journal) { j.Phase = handover.PhaseCommitted }, "this cannot be undone"},
		"has long ago":     {func(j *handover.Journal) { j.Phase = handover.PhaseReleased }, "this cannot be undone"},
		"is a source":      {func(j *handover.Journal) { j.Role = handover.RoleSource }, "is in the middle of"},
		"a transfer":       {func(j *handover.Journal) { j.Select = []string{"team-a/alpha"} }, "is in the middle of"},
	} {
		j := mine
		test.change(&j)
		l.journal(t, j)
		_, err := Pivot(ctx, l.deps, l.o)
		if err == nil || !strings.Contains(err.Error(), test.says) || diag.Hint(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, diag.Hint(err))
		}
		if now, err := handover.ReadJournal(ctx, l.client); err != nil || now == nil || now.Phase != j.Phase {
			t.Errorf("%s: the journal is %+v, %v", name, now, err)
		}
	}

	l.journal(t, mine)
	l.history(t, "platform")
	gives(t, l.client, map[string]string{"AWS_B64ENCODED_CREDENTIALS": "dG9wc2VjcmV0"}, "aws")
	gives(t, l.client, nil, "docker")
	heard := &spoken{Reporter: progress.Discard}
	l.deps.Report = heard
	result, err := Pivot(ctx, l.deps, l.o)
	if err != nil || result.Outcome != "undone" || len(result.Next) == 0 {
		t.Fatalf("%+v, %v (%s)", result, err, diag.Hint(err))
	}
	if strings.Count(heard.warnings, "still has credentials") != 1 || strings.Contains(heard.warnings, "dG9wc2VjcmV0") ||
		!strings.Contains(heard.warnings, "the provider aws on target still has credentials (AWS_B64ENCODED_CREDENTIALS)") {
		t.Errorf("it says %s", heard.warnings)
	}
	gives(t, l.client, map[string]string{"AWS_B64ENCODED_CREDENTIALS": "Cg=="}, "aws") // which is none
	heard.warnings = ""
	if now, err := handover.ReadJournal(ctx, l.client); err != nil || now != nil {
		t.Errorf("the journal is %+v, %v", now, err)
	}
	if n := l.notes(ctx, t); n != 1 {
		t.Errorf("the place of the snapshots has %d, want the snapshot alone", n)
	}
	if result, err = Pivot(ctx, l.deps, l.o); err != nil || result.Outcome != "nothing-to-do" {
		t.Errorf("again: %+v, %v", result, err)
	}

	// If the note cannot be removed, the journal stays, so the same command can continue.
	l.journal(t, mine)
	l.history(t, "platform")
	withKey := l.o.AgeKeyFile
	l.o.AgeKeyFile = ""
	if _, err = Pivot(ctx, l.deps, l.o); err == nil || !strings.Contains(diag.Hint(err), "run the same command again") {
		t.Errorf("without the key of the snapshots: %v (%s)", err, diag.Hint(err))
	}
	if now, err := handover.ReadJournal(ctx, l.client); err != nil || now == nil || now.Phase != handover.PhaseAborting {
		t.Errorf("the journal is %+v, %v", now, err)
	}
	l.o.AgeKeyFile = withKey
	if result, err = Pivot(ctx, l.deps, l.o); err != nil || result.Outcome != "undone" {
		t.Errorf("with the key: %+v, %v", result, err)
	}
	if strings.Contains(heard.warnings, "still has credentials") {
		t.Errorf("of a provider without a credential it says %s", heard.warnings)
	}
}

// gives records that an infrastructure provider has secret values.
func gives(t *testing.T, client *kube.Client, values map[string]string, name string) {
	t.Helper()
	err := credentials.Change(t.Context(), client, func(record *credentials.Record) {
		provider := releases.Provider{Name: name, Type: releases.Infrastructure, Version: "v1.0.0"}
		record.Give(provider.Label(), values, func(string) bool { return true }, nil, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
}
