package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/secret"
)

func newKeys(t *testing.T) secret.Keys {
	t.Helper()
	key, err := secret.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return secret.Keys{key}
}

func taken(at time.Time) *Snapshot {
	return &Snapshot{
		ID: NewID(at), Taken: at, By: "somebody", Fleet: "1b4e28ba-2fa1-11d2-883f-0016d3cca427", FleetName: "acme",
		ManagementCluster: "mgmt", UID: "u1", Epoch: 3,
		Providers: []string{"core provider cluster-api v1.14.2"}, Clusters: []string{"one/one"}, Available: []string{"one/one"},
		Counts: map[string]int{"Cluster": 1},
		Objects: []capi.Portable{{Object: json.RawMessage(
			`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"generation":9007199254740993}}`), Shared: true}},
	}
}

func TestTimeOf(t *testing.T) {
	at := time.Date(2026, 10, 1, 14, 0, 0, 1, time.FixedZone("", 2*60*60))
	if got := TimeOf(NewID(at)); !got.Equal(at.Truncate(time.Second)) {
		t.Errorf("%s, not %s", got, at)
	}
	for _, id := range []string{"", "latest", "20261001T120000"} {
		if got := TimeOf(id); !got.IsZero() {
			t.Errorf("%q: %s", id, got)
		}
	}
}

func TestComesBackAsItWas(t *testing.T) {
	keys, ctx := newKeys(t), t.Context()
	place, err := NewFolder(t.TempDir(), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Find(ctx, place, "", keys); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), place.String()) {
		t.Errorf("an empty place: %v", err)
	}
	begin := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	var all []*Snapshot
	for n := range Keep + 3 {
		s := taken(begin.Add(time.Duration(n) * time.Hour))
		if err := Put(ctx, place, s, keys); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	newest := all[len(all)-1]
	got, err := Find(ctx, place, "", keys)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(newest, got); diff != "" {
		t.Error(diff)
	}
	if got, err := Find(ctx, place, all[5].ID, keys); err != nil || got.ID != all[5].ID {
		t.Errorf("by its ID: %v, %v", got, err)
	}
	ids, err := place.List(ctx)
	if err != nil || len(ids) != Keep || ids[0] != all[3].ID {
		t.Errorf("%d are kept: %v, %v", len(ids), ids, err)
	}
	if _, err := Find(ctx, place, all[0].ID, keys); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is gone: %v", err)
	}
	if _, err := Find(ctx, place, "", newKeys(t)); !errors.Is(err, secret.ErrNoKey) {
		t.Errorf("with another key: %v", err)
	}
	info, err := os.Stat(filepath.Join(place.dir(), newest.ID+ending))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// The next snapshot removes what a run that was killed left in the folder, and nothing else.
func TestSweepsWhatAKilledRunLeft(t *testing.T) {
	place, err := NewFolder(t.TempDir(), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(place.dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".20261001T120000Z-abcdef.snapshot.age.ABCDEFGHIJ.fleetctl-tmp", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(place.dir(), name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Put(t.Context(), place, taken(time.Now()), newKeys(t)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(place.dir())
	if err != nil || len(entries) != 2 || entries[1].Name() != "notes.txt" {
		t.Errorf("it has %v, %v", entries, err)
	}
}

// Who can write to the place, and has no private key, brings nothing in: not a snapshot of their own, not an old one under a new name, not
// a file elsewhere.
func TestHostilePlace(t *testing.T) {
	keys, ctx := newKeys(t), t.Context()
	place, err := NewFolder(t.TempDir(), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	old := taken(time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC))
	if err := Put(ctx, place, old, keys); err != nil {
		t.Fatal(err)
	}
	sealed, err := place.Load(ctx, old.ID)
	if err != nil {
		t.Fatal(err)
	}
	renamed := NewID(old.Taken.Add(time.Hour))
	if err := place.Save(ctx, renamed, sealed); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(ctx, place, "", keys); err == nil || !strings.Contains(err.Error(), "it says that it is the snapshot "+old.ID) {
		t.Errorf("an old one under a new name: %v", err)
	}
	for _, id := range []string{"../../etc/passwd", "", "20261001T120000Z-ABCDEF", "20261001T120000Z-abcdef/..", renamed + "\n"} {
		if _, err := place.Load(ctx, id); err == nil {
			t.Errorf("%q was read", id)
		}
		if err := place.Remove(ctx, id); err == nil {
			t.Errorf("%q was removed", id)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	link := NewID(old.Taken.Add(2 * time.Hour))
	if err := os.Symlink(outside, filepath.Join(place.dir(), link+ending)); err != nil {
		t.Fatal(err)
	}
	if _, err := place.Load(ctx, link); err == nil {
		t.Error("a link out of the place was followed")
	}
	for _, name := range []string{"..", ".", "a/b", ".hidden", ""} {
		if _, err := NewFolder(t.TempDir(), name); err == nil {
			t.Errorf("a management cluster called %q", name)
		}
	}
}

func TestDamaged(t *testing.T) {
	keys := newKeys(t)
	sealed, err := keys.Seal([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(sealed, keys); err == nil || !strings.Contains(err.Error(), "read the snapshot") {
		t.Errorf("what is not packed: %v", err)
	}
	s := taken(time.Now())
	s.ID = "../x"
	if sealed, err = s.Seal(keys); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(sealed, keys); err == nil || !strings.Contains(err.Error(), `it is called "../x"`) {
		t.Errorf("a strange name: %v", err)
	}
}

// A place without snapshots may be the wrong one, or not mounted. Where others are there, they are named.
func TestNoSuchSnapshot(t *testing.T) {
	keys := newKeys(t)
	place, err := NewFolder(t.TempDir(), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "20260101T000000Z-aaaaaa"} {
		_, err := Find(t.Context(), place, id, keys)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), place.String()+" has no snapshot of this management cluster") {
			t.Errorf("%q: %v", id, err)
		}
		if hint := diag.Hint(err); !strings.Contains(hint, "mounted") || !strings.Contains(hint, "`fleetctl backup --to PLACE`") {
			t.Errorf("%q: hint %q", id, hint)
		}
	}
	there := taken(time.Now())
	if err := Put(t.Context(), place, there, keys); err != nil {
		t.Fatal(err)
	}
	_, err = Find(t.Context(), place, "20260101T000000Z-aaaaaa", keys)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "does not have it") || !strings.Contains(diag.Hint(err), there.ID) {
		t.Errorf("%v (%s)", err, diag.Hint(err))
	}
}

// lossy is a place that lists snapshots which it then does not give.
type lossy struct {
	*Folder
	err error
}

func (l lossy) Load(context.Context, string) ([]byte, error) { return nil, l.err }

// A snapshot that is listed, and that the place does not give, keeps the earlier ones from being restored, too. The hint says what to do.
func TestListedButNotThere(t *testing.T) {
	keys, ctx := newKeys(t), t.Context()
	folder, err := NewFolder(t.TempDir(), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	only, last := taken(begin), taken(begin.Add(time.Hour))
	for _, s := range []*Snapshot{only, last} {
		if err := Put(ctx, folder, s, keys); err != nil {
			t.Fatal(err)
		}
		for _, why := range []error{fs.ErrNotExist, errors.New("the answer is cut off"), diag.Wrap("", errors.New("no"), "log in")} {
			_, err := Find(ctx, lossy{folder, why}, "", keys)
			hint := diag.Hint(err)
			again := strings.Contains(hint, "run the same command again") || strings.Contains(hint, "log in")
			if err == nil || !strings.Contains(err.Error(), s.ID) || !again {
				t.Errorf("%v: %v (%s)", why, err, hint)
			}
			before := strings.Contains(hint, "the snapshot before it is "+only.ID)
			if before != (s == last) || strings.Contains(hint, "there are:") {
				t.Errorf("%v, with %s the newest: the hint is %q", why, s.ID, hint)
			}
		}
	}
}

// A place whose folder of the management cluster is a link out of it keeps nothing: what is behind the link could not be read again. A
// place that is a link itself, and a link that stays in the place, are no reason to refuse.
func TestFolderBehindALink(t *testing.T) {
	keys, ctx := newKeys(t), t.Context()
	root, other := t.TempDir(), t.TempDir()
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	place := func(root, cluster string) *Folder {
		t.Helper()
		f, err := NewFolder(root, cluster)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	id := NewID(time.Now())
	stranger := filepath.Join(other, id+ending)
	if err := os.WriteFile(stranger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link(other, filepath.Join(root, "mgmt"))
	out := place(root, "mgmt")
	_, listErr := out.List(ctx)
	for verb, err := range map[string]error{"keep": Put(ctx, out, taken(time.Now()), keys), "list": listErr, "remove": out.Remove(ctx, id)} {
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(diag.Hint(err), "is a link to") {
			t.Errorf("%s behind a link: %v (%s)", verb, err, diag.Hint(err))
		}
	}
	if entries, err := os.ReadDir(other); err != nil || len(entries) != 1 {
		t.Errorf("behind the link is %v, %v", entries, err)
	}
	if err := os.Mkdir(filepath.Join(root, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	link("real", filepath.Join(root, "inside"))
	whole := filepath.Join(t.TempDir(), "place")
	link(root, whole)
	for _, f := range []*Folder{place(root, "inside"), place(whole, "new")} {
		if err := Put(ctx, f, taken(time.Now()), keys); err != nil {
			t.Errorf("%s: %v", f.dir(), err)
		}
		if _, err := Find(ctx, f, "", keys); err != nil {
			t.Errorf("%s: %v", f.dir(), err)
		}
	}
}

// A damaged snapshot keeps the earlier ones from being restored, since it may be a note: the hint says how to go on. With a missing key
// nothing is to be moved away.
func TestUnreadable(t *testing.T) {
	keys, ctx := newKeys(t), t.Context()
	place, err := NewFolder(t.TempDir(), "mgmt")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)
	first, last := taken(begin), taken(begin.Add(time.Hour))
	for _, s := range []*Snapshot{first, last} {
		if err := Put(ctx, place, s, keys); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Find(ctx, place, "", newKeys(t)); !IsUnreadable(err) || !errors.Is(err, secret.ErrNoKey) ||
		!strings.Contains(diag.Hint(err), "--age-key-file") || strings.Contains(diag.Hint(err), "move") {
		t.Errorf("without the key: %v (%s)", err, diag.Hint(err))
	}
	sealed, err := place.Load(ctx, last.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 20, len(sealed) / 2, len(sealed) - 1} {
		path := filepath.Join(place.dir(), last.ID+ending)
		if err := os.WriteFile(path, sealed[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Find(ctx, place, "", keys)
		if !IsUnreadable(err) || !strings.Contains(diag.Hint(err), "move "+last.ID+" out of "+place.String()) ||
			!strings.Contains(diag.Hint(err), "before it is "+first.ID) {
			t.Errorf("%d bytes of it: %v (%s)", size, err, diag.Hint(err))
		}
	}
	if err := place.Save(ctx, first.ID, []byte("half")); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(ctx, place, first.ID, keys); !IsUnreadable(err) || strings.Contains(diag.Hint(err), "move") {
		t.Errorf("with none before it: %v (%s)", err, diag.Hint(err))
	}
	if _, err := Find(ctx, place, "20260101T000000Z-aaaaaa", keys); IsUnreadable(err) {
		t.Errorf("one that is not there: %v", err)
	}
}
