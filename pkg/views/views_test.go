package views

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/adopt"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/config"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/masters"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/promotion"
	"github.com/fleetctl/fleetctl/pkg/reclaim"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/review"
	"github.com/fleetctl/fleetctl/pkg/status"
	"github.com/fleetctl/fleetctl/pkg/transfer"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/upgrade"
	"github.com/fleetctl/fleetctl/pkg/version"
	"github.com/fleetctl/fleetctl/pkg/why"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC // golden files say when
	os.Exit(m.Run())
}

// shown is a view of a filled result. text is the value of each string in the result; "" stands for the name of its field.
type shown struct {
	// name is the name of the function in this package that makes the view. After a space, it may name a special case.
	name string
	view func(text string) View
	// lists are shown with more columns and as names, too.
	isList bool
}

// showing fills a result, has prepare say what cannot be any text, and gives its view.
func showing[T any](name string, viewOf func(r *T) View, prepare ...func(r *T)) shown {
	return shown{name: name, view: func(text string) View {
		var result T
		fill(reflect.ValueOf(&result).Elem(), text, "", 0)
		for _, p := range prepare {
			p(&result)
		}
		return viewOf(&result)
	}}
}

// asList is a view that also has the formats of lists.
func (s shown) asList() shown {
	s.isList = true
	return s
}

// listing is showing for a list.
func listing[T any](name string, viewOf func(all []T) View) shown {
	return showing(name, func(all *[]T) View { return viewOf(*all) }).asList()
}

// now is when the golden files were looked at.
var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// allShown has each view once at least, and again for each of its cases.
var allShown = []shown{
	listing("Channels", Channels), listing("Charts", Charts), listing("Networks", Networks), listing("Environments", Environments),
	listing("Features", Features), listing("ManagementClusters", ManagementClusters), listing("Providers", Providers),
	listing("Standbys", Standbys), listing("Tenants", Tenants), listing("Apps", Apps), listing("Notifications", Notifications),
	listing("Identities", Identities),
	listing("Clusters", func(all []fleetrepo.Cluster) View { return Clusters(all[:1], all, diag.Findings{}) }),
	listing("Pools", func(all []fleetrepo.Cluster) View { return Pools(all, all, diag.Findings{}, false) }),
	showing("Cluster", Cluster),

	showing("Change", Change, func(r *change.Result) {
		r.Diff, r.Changed, r.DryRun, r.Pushed, r.PullRequest = "", true, false, false, nil
	}),
	showing("Change dry run", Change, func(r *change.Result) { r.Diff, r.Changed, r.DryRun = "", true, true }),
	showing("Change pull request", Change, func(r *change.Result) { r.Diff, r.Changed, r.DryRun = "", true, false }),
	showing("Change nothing", Change, func(r *change.Result) { r.Diff, r.Changed, r.LeftAlone = "", false, nil }),
	showing("Promotion", Promotion, func(r *promotion.Result) {
		r.Change.Diff, r.ReleaseNotes, r.Change.DryRun, r.Change.Changed, r.Tagged = "", "", false, true, true
	}),
	showing("Promotions", Promotions).asList(),
	showing("Paused", func(all *[]management.Switched) View {
		return Paused(true, *all, "fleetctl cluster pause demo --commit", "fleetctl cluster resume demo --now")
	}),
	showing("Paused resumed", func(all *[]management.Switched) View {
		return Paused(false, *all, "fleetctl cluster resume demo --commit", "fleetctl cluster resume demo --now")
	}),

	showing("Diff", func(r *review.Report) View { return Diff(r, false) }, withoutDiffs),
	showing("Diff in words", func(r *review.Report) View { return Diff(r, true) }, withoutDiffs),
	showing("Rendered", Rendered, func(r *render.Result) {
		for _, o := range r.Objects {
			o.JSON = []byte(`{"kind":"ConfigMap"}`)
		}
	}),
	showing("Validation", Validation),
	showing("Rules", func(all *[]diag.Rule) View { return Rules(*all) }),
	showing("Adopted", Adopted, func(r *adopt.Report) { r.Fleet, r.Written = "kind: Fleet\n", false }),
	showing("Adopted written", Adopted, func(r *adopt.Report) { r.Fleet, r.Written = "kind: Fleet\n", true }),

	showing("Scaffold", Scaffold, func(r *lifecycle.ScaffoldResult) { r.Changed = true }),
	showing("Scaffold nothing", Scaffold, func(r *lifecycle.ScaffoldResult) { r.Changed = false }),
	showing("InitPlan", InitPlan),
	showing("InitPlan flux", InitPlan, func(p *lifecycle.Plan) {
		last := &p.Upgrades[len(p.Upgrades)-1]
		last.Name, last.Type = "flux", ""
	}),
	showing("Init", Init),
	showing("Bootstrap", Bootstrap, func(r *lifecycle.BootstrapResult) { r.Error = "" }),
	showing("Bootstrap kept", Bootstrap, func(r *lifecycle.BootstrapResult) { r.Error, r.PivotedTo = "", "" }),
	showing("Teardown", Teardown),
	showing("Teardown nothing", Teardown, func(r *lifecycle.TeardownResult) {
		r.Changed, r.Leftovers, r.Orphaned, r.NotAsked, r.Plan = false, nil, nil, nil, nil
	}),
	showing("Teardown dry run", Teardown, func(r *lifecycle.TeardownResult) { r.Changed, r.Leftovers, r.NotAsked = false, nil, nil }),
	showing("Teardown done", Teardown, func(r *lifecycle.TeardownResult) { r.Changed = true }),
	showing("TeardownPlan", TeardownPlan),
	showing("UpgradePlan", UpgradePlan, func(r *upgrade.Plan) { r.ToApply, r.ToDeclare = true, true }),

	showing("Pivot plan", Pivot),
	showing("Pivot", Pivot, func(r *pivot.MoveResult) { r.Plan = nil }),
	showing("Pivot undone", Pivot, func(r *pivot.MoveResult) { r.Plan, r.Outcome = nil, "undone" }),
	showing("Backup", Backup),
	showing("Restore", Restore, func(r *pivot.RestoreResult) { r.Outcome = "restored" }),
	showing("Restore fenced", Restore, func(r *pivot.RestoreResult) { r.Outcome, r.Snapshot, r.Arrival, r.Report = "fenced", nil, nil, nil }),
	showing("Restore arrived", Restore, func(r *pivot.RestoreResult) { r.Outcome, r.Snapshot, r.Report = "planned", nil, nil }),
	showing("Restore around", Restore, func(r *pivot.RestoreResult) { r.Outcome, r.Snapshot = "restored", nil }),
	showing("Restore plan", Restore),
	showing("Restore undone", Restore, func(r *pivot.RestoreResult) { r.Outcome = "undone" }),
	showing("Detach", Detach),
	showing("Detach plan", Detach, func(r *leaving.DetachResult) { r.Outcome = "planned" }),
	showing("Detach undone", Detach, func(r *leaving.DetachResult) { r.Outcome = "undone" }),
	showing("Drain", Drain, func(r *leaving.DrainResult) { r.Items[0].Stays = "" }),
	showing("Drain plan", Drain, func(r *leaving.DrainResult) {
		r.Items[0].Stays, r.Outcome, r.Suspended, r.Next = "", "planned", nil, nil
	}),
	showing("Drain nothing", Drain),
	showing("Drain cancelled", Drain, func(r *leaving.DrainResult) { r.Outcome = "cancelled" }),
	showing("Connect", Connect),
	showing("Master", Master, func(r *masters.Result) { r.Error, r.Changes, r.ParentLeft = "", nil, nil }),
	showing("Master leaves some of its parent", Master, func(r *masters.Result) { r.Error, r.Changes = "", nil }),
	showing("Master keeps its parent", Master, func(r *masters.Result) {
		r.Error, r.Changes, r.ParentGone, r.ParentLeft = "", nil, false,
			nil
	}),
	showing("Transfer", Transfer, func(r *transfer.Result) { r.Outcome = "transferred" }),
	showing("Transfer plan", Transfer, func(r *transfer.Result) { r.Outcome = "planned" }),
	showing("Transfer undone", Transfer, func(r *transfer.Result) { r.Outcome, r.Change = "undone", nil }),
	showing("Transfer waiting", Transfer, func(r *transfer.Result) { r.Outcome = "handed-over" }),
	showing("Drill", Drill, func(r *pivot.DrillResult) { r.Standby = "" }),
	showing("Drill on a standby", Drill),
	showing("Drill that cannot open it", Drill, func(r *pivot.DrillResult) {
		r.Snapshot, r.Restored, r.Elsewhere, r.Works, r.Standby = nil, nil, nil, false, ""
	}),
	showing("Drill works", Drill, func(r *pivot.DrillResult) { r.Works, r.Findings, r.Standby = true, nil, "" }),
	showing("Activation", Activation, func(r *pivot.ActivateResult) { r.Outcome = "activated" }),
	showing("Activation before", Activation, func(r *pivot.ActivateResult) { r.Outcome, r.Report = "activated", nil }),
	showing("Activation planned", Activation, func(r *pivot.ActivateResult) { r.Outcome, r.Plan = "planned", nil }),
	showing("Activation undone", Activation, func(r *pivot.ActivateResult) { r.Outcome = "undone" }),

	showing("Hosts", Hosts).asList(),
	showing("HostDone", func(r *management.HostResult) View { return HostDone(r, "%s is changed.\n", "%s is as before.\n") }),
	showing("HostLogs", func(names *[]string) View { return HostLogs(*names) }),
	showing("Issuer", Issuer),
	showing("Bundle", Bundle).asList(),
	showing("BundleVerified", BundleVerified),

	showing("Status", Status, func(r *status.Report) { r.Cluster.State, r.Unknown, r.Standby = "running", nil, nil }).asList(),
	showing("Status of a standby", Status, func(r *status.Report) { r.Cluster.State, r.Unknown, r.Clusters = "running", nil, nil }),
	showing("Status of another owner", Status, func(r *status.Report) {
		r.Cluster.State, r.Unknown, r.Standby = "running", nil, nil
		r.Clusters[0].Elsewhere, r.Clusters[0].TwoOwners = true, true
		r.Clusters[1].Elsewhere, r.Clusters[1].Paused = true, true
	}),
	showing("Status no answer", Status, func(r *status.Report) { r.Standby = nil }),
	showing("StatusAll", StatusAll, func(a *status.All) { a.ManagementClusters[0].Standby = nil }).asList(),
	showing("Depth", Depth).asList(),
	showing("Why", Why, func(r *why.Report) { r.Ready = false }),
	showing("Doctor", Doctor),
	showing("SupportBundle", SupportBundle),
	showing("Credentials", func(r *management.CredentialsReport) View { return Credentials(r, 24*time.Hour) }).asList(),
	showing("Orphans", func(r *orphans.Report) View { return Orphans(r, now) }).asList(),
	showing("OrphansDeletion", func(d *orphans.Deletion) View { return OrphansDeletion(d, now) }),
	showing("DeletedOrphans", DeletedOrphans),
	showing("DeletedOrphans dry run", DeletedOrphans, func(r *reclaim.Deleted) { r.DryRun, r.Left = true, nil }),
	showing("DeletedOrphans all", DeletedOrphans, func(r *reclaim.Deleted) { r.DryRun, r.Left = false, nil }),
	showing("DeletedOrphans everywhere", DeletedOrphans, func(r *reclaim.Deleted) { r.DryRun, r.Left, r.Regions = false, nil, nil }),
	showing("DeletedOrphans nothing", DeletedOrphans,
		func(r *reclaim.Deleted) { r.DryRun, r.Left, r.Planned, r.Deleted = false, nil, nil, nil }),
	showing("Orphans none", func(r *orphans.Report) View { return Orphans(r, now) }, func(r *orphans.Report) {
		*r = orphans.Report{FormatVersion: "1", Complete: true}
	}),
	showing("Settings", func(all *[]config.Setting) View { return Settings(*all, true) }),
	showing("Version", func(info *version.Info) View { return Version(*info) }),
}

func withoutDiffs(r *review.Report) {
	for i := range r.Objects {
		r.Objects[i].Diff = ""
	}
}

// TestGolden holds what every view prints, for people and for programs, to the files of testdata.
func TestGolden(t *testing.T) {
	for _, s := range allShown {
		t.Run(s.name, func(t *testing.T) {
			formats := []ui.Format{ui.Human, ui.JSON}
			if s.isList {
				formats = append(formats, ui.Wide, ui.Name)
			}
			var got strings.Builder
			for _, format := range formats {
				out, notes := printed(t, format, s.view(""))
				fmt.Fprintf(&got, "-- %s --\n%s", format, out)
				if notes != "" {
					fmt.Fprintf(&got, "-- %s, standard error --\n%s", format, notes)
				}
			}
			file := filepath.Join("testdata", strings.ReplaceAll(s.name, " ", "-")+".golden")
			if *update {
				if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got.String()), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("%s is not what is printed now (-update writes it):\n%s", file, got.String())
			}
		})
	}
}

// TestEveryViewIsShown requires a test for each function of this package that makes a view, and a test for each golden file.
func TestEveryViewIsShown(t *testing.T) {
	cases := map[string]bool{}
	tested := map[string]bool{}
	for _, s := range allShown {
		name, _, _ := strings.Cut(s.name, " ")
		tested[name] = true
		cases[strings.ReplaceAll(s.name, " ", "-")+".golden"] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Recv != nil || f.Type.Results == nil {
				continue
			}
			if result, ok := f.Type.Results.List[0].Type.(*ast.Ident); ok && result.Name == "View" && !tested[f.Name.Name] {
				t.Errorf("%s: allShown has no %s", file, f.Name.Name)
			}
		}
	}
	golden, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range golden {
		if !cases[filepath.Base(file)] {
			t.Errorf("%s is of no view", file)
		}
	}
}

// TestCommandsPrintViews: what a command prints of a result is in this package, and not in the command.
func TestCommandsPrintViews(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "cmd", "*.go"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%v: %q", err, files)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"ui.Print(", "tabwriter."} {
			if bytes.Contains(content, []byte(call)) {
				t.Errorf("%s calls %s: make a view of it here, with a golden test, and print it with f.show", file, call)
			}
		}
	}
}

// printed is what a view shows, on standard output and on standard error.
func printed(t *testing.T, format ui.Format, v View) (string, string) {
	t.Helper()
	var out, notes bytes.Buffer
	if err := Print(ui.Streams{Out: &out, Err: &notes}, format, true, v); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return out.String(), notes.String()
}

// inName finds the words of a field's name.
var inName = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// fill puts text, or the name of the field, into every string of a value, and two items into each list.
func fill(v reflect.Value, text, field string, depth int) {
	if depth > 8 || !v.CanSet() {
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{}`))
		return
	}
	switch v.Kind() { //nolint:exhaustive // results have no others
	case reflect.String:
		if text != "" {
			v.SetString(text)
			return
		}
		v.SetString(strings.ToLower(inName.ReplaceAllString(field, "$1-$2")))
	case reflect.Bool:
		v.SetBool(depth%2 == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, field, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), text, f.Name, depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), text, strings.TrimSuffix(field, "s"), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, text, strings.TrimSuffix(field, "s"), depth+1)
		fill(value, text, field, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Interface:
		if v.Type().NumMethod() == 0 {
			v.Set(reflect.ValueOf("value"))
		}
	}
}

func TestCountsText(t *testing.T) {
	for want, counts := range map[string]map[string]int{
		"0 objects": {}, "1 object (Cluster 1)": {"Cluster": 1}, "3 objects (Cluster 1, Machine 2)": {"Machine": 2, "Cluster": 1},
	} {
		if got := countsText(counts); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
