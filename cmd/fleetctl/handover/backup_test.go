//go:build e2e

package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/bundle/bundletest"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/progress"
	"github.com/fleetctl/fleetctl/pkg/secret"
	snapshots "github.com/fleetctl/fleetctl/pkg/snapshot"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// backupOrder is what `fleetctl backup` is told, beside the management cluster.
type backupOrder struct{ Dir, To, Token, KeyFile string }

// backupAsCommand is the program under test that is all of `fleetctl backup`.
func backupAsCommand(ctx context.Context, source handover.Side) error {
	var o backupOrder
	if err := json.Unmarshal([]byte(os.Getenv(envCommand)), &o); err != nil {
		return err
	}
	home := os.Getenv("HOME")
	r, err := pivot.Backup(ctx, management.Deps{
		Report: progress.Discard, Store: state.Store{Dir: filepath.Join(home, "state")}, CacheDir: filepath.Join(home, "cache"),
		LookupEnv: func(string) (string, bool) { return "", false },
	}, pivot.BackupOptions{
		Target: &management.Target{Name: source.Name}, Client: source.Client, Dir: o.Dir, To: o.To,
		Git: change.Credentials{Token: o.Token}, AgeKeyFile: o.KeyFile,
	})
	if err == nil {
		fmt.Println(r.Snapshot)
	}
	return err
}

// places are the places of snapshots that a world has: folders, branches of a remote, and repositories of a registry.
type places struct {
	git       *gittest.HTTPS
	gitGate   *gate
	registry  *gate
	order     backupOrder
	keys      secret.Keys
	all       string // has the folders
	made      atomic.Int64
	beginning moment
}

const backupFleet = `apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: bed}
spec:
  git: {url: "URL", username: git, caFile: ca.pem}
  managementClusters: [{name: source, host: {type: embedded}, providers: [{name: docker, version: v1.14.2}]}]
`

func newPlaces(t *testing.T, w *world) *places {
	t.Helper()
	p := &places{git: gittest.NewHTTPS(t, gittest.Options{}), all: t.TempDir()}
	p.gitGate = newGitGate(t, p.git)
	p.registry = newRegistryGate(t, bundletest.RegistryHandler())
	w.gates = append(w.gates, p.gitGate, p.registry)
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	p.keys = secret.Keys{key}
	home := t.TempDir()
	p.order = backupOrder{Dir: filepath.Join(home, "fleet"), Token: p.git.Token, KeyFile: filepath.Join(home, "age.key")}
	for name, content := range map[string]string{
		"fleet/fleet.yaml": strings.ReplaceAll(backupFleet, "URL", p.gitGate.url), "fleet/ca.pem": string(p.gitGate.ca),
		"age.key": string(p.keys.File()),
	} {
		name = filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p.git.Seed(t, "main", map[string]string{"fleet.yaml": "{}\n"})
	claim := &ownership.Claim{Fleet: fleetID, Name: "bed", Cluster: "source", URL: p.gitGate.url, Branch: "main", Confirmed: true}
	if err := claim.Create(t.Context(), clientOf(t, w.source)); err != nil {
		t.Fatal(err)
	}
	p.beginning = w.save(t.Context(), t, "")
	return p
}

// place is one of them, which only one case uses.
type place struct {
	snapshots.Place
	kind  string
	order backupOrder
	dir   string // of a folder
}

// kindsOfPlaces are the kinds that --to of backup knows.
var kindsOfPlaces = []string{"folder", "branch", "registry"}

// newPlace returns a place that is full: the next backup removes the oldest snapshot. The newest one is from a machine whose clock is
// ahead.
func (p *places) newPlace(t *testing.T, kind string) *place {
	t.Helper()
	name := fmt.Sprintf("snapshots-%d", p.made.Add(1))
	made := &place{kind: kind, order: p.order}
	var shelf snapshots.Shelf
	var err error
	switch kind {
	case "folder":
		made.dir = filepath.Join(p.all, name)
		made.order.To = made.dir
		made.Place, err = snapshots.NewFolder(made.dir, "source")
	case "branch":
		made.order.To = "branch:" + name
		shelf, err = gitrepo.NewShelf(p.gitGate.url, name, gitrepo.Auth{Username: p.git.Username, Token: p.git.Token, CA: p.gitGate.ca})
	case "registry":
		at := strings.TrimPrefix(p.registry.url, "http://") + "/" + name
		made.order.To = "oci://" + at
		shelf, err = bundle.NewShelf(at)
	}
	if err == nil && shelf != nil {
		made.Place, err = snapshots.OnShelf(shelf, "source")
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := range snapshots.Keep {
		taken := time.Date(2026, 1, 1, n, 0, 0, 0, time.UTC)
		named := taken
		if n == snapshots.Keep-1 {
			named = time.Now().Add(10 * time.Hour)
		}
		old := &snapshots.Snapshot{ID: snapshots.NewID(named), Taken: taken, Fleet: fleetID, ManagementCluster: "source"}
		if err := snapshots.Put(t.Context(), made, old, p.keys); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// told is the program with what its command line says.
func (p program) told(t *testing.T, order backupOrder) program {
	t.Helper()
	content, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	command := p.command
	p.command = func(ctx context.Context, verb, source, target, home string) *exec.Cmd {
		cmd := command(ctx, verb, source, target, home)
		cmd.Env = append(cmd.Env, envCommand+"="+string(content))
		return cmd
	}
	return p
}

// backUpTo runs `fleetctl backup` on a machine that knows nothing.
func (b *bed) backUpTo(t *testing.T, w *world, at *place, r *run) outcome {
	t.Helper()
	p := b.program.told(t, at.order)
	defer w.openGates()
	if at.kind == "folder" {
		return w.traced(t.Context(), t, p, backupCommand, newMachine(t), at.dir, r)
	}
	return w.execute(t.Context(), t, p, backupCommand, newMachine(t), r)
}

// kept is what has to hold of a place at any moment: all snapshots in it can be restored, and no more than one is missing of those that
// were there. newest is the newest one.
func (at *place) kept(t *testing.T, keys secret.Keys, objects int) (newest *snapshots.Snapshot, faults []string) {
	t.Helper()
	ids, err := at.List(t.Context())
	if err != nil {
		return nil, []string{err.Error()}
	}
	if len(ids) < snapshots.Keep {
		faults = append(faults, fmt.Sprintf("lost: it has only %d snapshots", len(ids)))
	}
	for _, id := range ids {
		s, err := snapshots.Find(t.Context(), at, id, keys)
		if err != nil {
			faults = append(faults, fmt.Sprintf("half written: %v", err))
			continue
		}
		if len(s.Objects) == 0 && s.Taken.Before(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)) {
			continue // one of those that filled the place
		}
		newest = s
		if len(s.Objects) != objects {
			faults = append(faults, fmt.Sprintf("%s has %d of %d objects", id, len(s.Objects), objects))
		}
	}
	if newest != nil && newest.ID != ids[len(ids)-1] {
		faults = append(faults, fmt.Sprintf("a restore would take %s, and not the newest one, %s", ids[len(ids)-1], newest.ID))
	}
	return newest, faults
}

// left returns what is in a place beside its snapshots.
func (p *places) left(t *testing.T, at *place) (faults []string) {
	t.Helper()
	switch at.kind {
	case "folder":
		err := filepath.WalkDir(at.dir, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && !strings.HasSuffix(name, ".snapshot.age") {
				faults = append(faults, "left: "+name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	case "branch":
		for ref := range strings.FieldsSeq(gittest.Git(t, p.git.Dir, "for-each-ref", "--format=%(refname)")) {
			if ref != "refs/heads/main" && !strings.HasPrefix(ref, "refs/heads/snapshots-") {
				faults = append(faults, "left: "+ref)
			}
		}
	}
	return faults
}

// killBackups ends `fleetctl backup` before and after every write to each kind of place. At any moment, each snapshot in the place can be
// restored. The next backup leaves nothing behind but the newest snapshots. The source notices nothing of it.
func (b *bed) killBackups(t *testing.T, at map[*world]*places) {
	t.Helper()
	type backupCase struct {
		kind string
		kill kill
	}
	var cases []backupCase
	w := b.worlds[0]
	before := w.source.read(t.Context(), t)
	objects := 0
	for _, kind := range kindsOfPlaces {
		here := at[w].newPlace(t, kind)
		o := b.backUpTo(t, w, here, &run{})
		if o.code != 0 || o.count() == 0 {
			t.Fatalf("a backup to a %s: exit %d after %d writes\n%s", kind, o.code, o.count(), o.output)
		}
		newest, _ := here.kept(t, at[w].keys, 0)
		if newest == nil || len(newest.Objects) == 0 || newest.ID != lastLine(o.output) {
			t.Fatalf("a backup to a %s left %+v\n%s", kind, newest, o.output)
		}
		objects = len(newest.Objects)
		t.Logf("a backup of %d objects to a %s: %d writes, %s", objects, kind, o.count(), o.took)
		for _, k := range everyWrite(o.count()) {
			cases = append(cases, backupCase{kind, k})
		}
		restorable(t, b, w, newest, at[w].beginning)
	}
	b.hold(t, judge{world: w, status: true}.unchanged("the source", before, w.source.read(t.Context(), t)), "backups", outcome{run: &run{}})
	forEach(t, b, "every write of a backup", cases, func(t *testing.T, w *world, c backupCase) {
		p := at[w]
		here := p.newPlace(t, c.kind)
		o := b.backUpTo(t, w, here, &run{judge: c.kill.strike})
		if len(o.struck) == 0 {
			t.Errorf("a backup to a %s has no write %d: exit %d\n%s", c.kind, c.kill.at, o.code, o.output)
			return
		}
		b.countKill(t)
		story := fmt.Sprintf("a backup to a %s, %s", c.kind, c.kill)
		_, faults := here.kept(t, p.keys, objects)
		b.hold(t, faults, story, o)
		if o = b.backUpTo(t, w, here, &run{}); o.code != 0 {
			t.Errorf("%s, then again: exit %d\n%s", story, o.code, o.output)
			return
		}
		_, faults = here.kept(t, p.keys, objects)
		ids, err := here.List(t.Context())
		if err != nil || len(ids) != snapshots.Keep || !slices.Contains(ids, lastLine(o.output)) {
			faults = append(faults, fmt.Sprintf("it has %q, %v", ids, err))
		}
		b.hold(t, append(faults, p.left(t, here)...), story+", then again", o)
	})
}

// restorable restores a snapshot.
func restorable(t *testing.T, b *bed, w *world, s *snapshots.Snapshot, beginning moment) {
	t.Helper()
	content, err := json.Marshal(snapshotContent{
		Source: handover.Party{Name: s.ManagementCluster, UID: s.UID}, Available: s.Available, Epoch: s.Epoch, Objects: s.Objects,
	})
	if err != nil {
		t.Fatal(err)
	}
	machine := w.restore(t.Context(), t, beginning)
	if err := os.WriteFile(filepath.Join(machine, snapshotFile), content, 0o600); err != nil {
		t.Fatal(err)
	}
	o := w.execute(t.Context(), t, b.program, restore, machine, sourceGone())
	if o.code != 0 {
		t.Fatalf("a restore of what a backup wrote: exit %d\n%s", o.code, o.output)
	}
	b.hold(t, b.judge(w).restored(t.Context(), t), "a restore of what a backup wrote", o)
	w.restore(t.Context(), t, beginning)
	w.openGates()
}
