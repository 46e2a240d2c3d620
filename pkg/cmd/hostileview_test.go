package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/promotion"
	"github.com/fleetctl/fleetctl/pkg/status"
	"github.com/fleetctl/fleetctl/pkg/support"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/why"
)

// hostileText is what a repo, a cluster or a forge may have for a name, a message or a URL.
const hostileText = "a\n::error file=x::owned\r\n##[command]b\x1b[2J\x1b]0;title\x07\u009b31m\u202e\u2066c\u2028d\x00\x7f ::add-mask::e\n  ::set-env name=PATH::f"

// fill puts text into every string of a value that can be set, and two items into each list and map.
func fill(v reflect.Value, text string, depth int) {
	if depth > 8 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(depth%2 == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(3)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text, depth+1)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), text, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, text, depth+1)
		fill(value, text, depth+1)
		v.SetMapIndex(key, value)
	}
}

// printed is what a view shows of a value with one text in all of its strings. prepare says what is not a text of others.
func printed[T any](t *testing.T, format ui.Format, text string, prepare func(*T), view func(w io.Writer, v *T) error) string {
	t.Helper()
	var value T
	fill(reflect.ValueOf(&value).Elem(), text, 0)
	if prepare != nil {
		prepare(&value)
	}
	var out bytes.Buffer
	streams := ui.Streams{Out: &out, Err: io.Discard}.Guarded()
	if err := ui.Print(streams, format, &value, func(w io.Writer) error { return view(w, &value) }); err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	return out.String()
}

// wantHarmless prints a value that is hostile wherever it can be, in every format: nothing that a terminal or a runner of CI acts on comes out,
// and no text makes lines of its own.
func wantHarmless[T any](t *testing.T, name string, prepare func(*T), view func(w io.Writer, v *T) error) {
	t.Run(name, func(t *testing.T) {
		for _, format := range []ui.Format{ui.Human, ui.JSON, ui.YAML} {
			got := printed(t, format, hostileText, prepare, view)
			for _, r := range got {
				if unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u202e' || r == '\u2066' || r == '\u2028' {
					t.Errorf("%s: %U in %.300q", format, r, got)
					break
				}
			}
			for line := range strings.Lines(got) {
				if text := strings.TrimSpace(line); strings.HasPrefix(text, "::") || strings.Contains(text, "##[") {
					t.Errorf("%s: the line %q is a command", format, text)
				}
			}
			if lines, want := strings.Count(got, "\n"), strings.Count(printed(t, format, "harmless", prepare, view), "\n"); format != ui.YAML && lines != want {
				t.Errorf("%s: %d lines, %d of what is harmless:\n%s", format, lines, want, got)
			}
			var back any
			if format == ui.JSON && json.Unmarshal([]byte(got), &back) != nil {
				t.Errorf("no JSON: %s", got)
			}
		}
	})
}

// viewOf is how a list is shown, with every column and as names.
func viewOf[T any](t table[T]) func(io.Writer, *[]T) error {
	return func(w io.Writer, all *[]T) error {
		return errors.Join(t.print(w, ui.Wide, *all), t.print(w, ui.Name, *all))
	}
}

// TestViewsOfHostileTexts: conditions, events, names, versions and URLs are written by whoever may write them.
func TestViewsOfHostileTexts(t *testing.T) {
	f := newFactory(ui.Streams{Out: io.Discard, Err: io.Discard}.Guarded())
	wantHarmless(t, "status", func(r *status.Report) { r.Cluster.State, r.Unknown = "running", nil }, func(w io.Writer, r *status.Report) error {
		return status.Tree(w, r, status.Style{})
	})
	wantHarmless(t, "status of a cluster that does not answer", nil, func(w io.Writer, r *status.Report) error { return status.Tree(w, r, status.Style{}) })
	wantHarmless(t, "status of one cluster", nil, func(w io.Writer, d *why.Depth) error { return why.DepthView(w, d, status.Style{}) })
	wantHarmless(t, "why", nil, func(w io.Writer, r *why.Report) error { return why.View(w, r, status.Style{}) })
	wantHarmless(t, "support bundle", nil, func(w io.Writer, r *support.Result) error { return supportView(w, f.streams, r) })
	wantHarmless(t, "doctor", nil, func(w io.Writer, r *lifecycle.DoctorReport) error { return doctorView(f.streams, w, r) })
	wantHarmless(t, "init", nil, initView)
	wantHarmless(t, "plan of init", nil, planView)
	wantHarmless(t, "scaffold", nil, scaffoldView)
	wantHarmless(t, "bootstrap", nil, bootstrapView)
	wantHarmless(t, "teardown", nil, teardownView)
	wantHarmless(t, "promote", func(r *promotion.Result) { r.Change.Diff, r.ReleaseNotes = "", "" }, func(w io.Writer, r *promotion.Result) error { return promoteView(w, f.streams, r, true) })
	wantHarmless(t, "promotions", nil, promotionsView)
	wantHarmless(t, "change", func(r *change.Result) { r.Diff = "" }, func(w io.Writer, r *change.Result) error { return changeView(w, f.streams, r, true) })
	wantHarmless(t, "cluster", nil, clusterView)
	wantHarmless(t, "channels", nil, viewOf(channelTable))
	wantHarmless(t, "charts", nil, viewOf(chartTable))
	wantHarmless(t, "networks", nil, viewOf(networkTable))
	wantHarmless(t, "environments", nil, viewOf(environmentTable))
	wantHarmless(t, "features", nil, viewOf(featureTable))
	wantHarmless(t, "hosts", nil, viewOf(hostTable))
	wantHarmless(t, "management clusters", nil, viewOf(managementTable))
	wantHarmless(t, "pools", nil, viewOf(poolTable))
	wantHarmless(t, "providers", nil, viewOf(providerTable))
	wantHarmless(t, "tenants", nil, viewOf(tenantTable))
	wantHarmless(t, "plan of an upgrade", nil, upgradePlanView)
	wantHarmless(t, "plan of a pivot", nil, pivotView)
	wantHarmless(t, "pivot", func(r *lifecycle.PivotResult) { r.Plan = nil }, pivotView)
	wantHarmless(t, "abort of a pivot", func(r *lifecycle.PivotResult) { r.Plan, r.Outcome = nil, "undone" }, pivotView)
}
