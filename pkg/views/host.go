package views

import (
	"cmp"
	"fmt"
	"io"

	"github.com/fleetctl/fleetctl/pkg/bundling"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Hosts is the output of `fleetctl host list`: a table, and the messages of hosts in trouble, or that cannot be looked at.
func Hosts(r *management.HostList) View {
	return view{r, func(p *Page) error {
		if err := hostTable.print(p.Out, p.Format, r.Hosts); err != nil || p.Format == ui.Name {
			return err
		}
		return hostTroubles(p.Out, r.Hosts)
	}}
}

// HostDone is the output of `fleetctl host start`, `stop` and `delete`. changed and unchanged are the messages with the
// name of the host.
func HostDone(r *management.HostResult, changed, unchanged string) View {
	return view{r, func(p *Page) error {
		for _, left := range r.Leftovers {
			ui.Fprintf(p.Out, "Left over: %s\n", left)
		}
		text := unchanged
		if r.Changed {
			text = changed
		}
		_, err := ui.Fprintf(p.Out, text, r.Name)
		return err
	}}
}

// HostLogs is what `fleetctl host logs` can show.
func HostLogs(names []string) View {
	return view{hostLogList{FormatVersion: "1", Logs: names}, func(p *Page) error {
		for _, name := range names {
			if _, err := ui.Fprintf(p.Out, "%s\n", name); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Issuer is what `fleetctl host issuer export` has written.
func Issuer(r *management.IssuerExport) View {
	return view{r, func(p *Page) error {
		for _, file := range r.Files {
			ui.Fprintf(p.Out, "%s is to be published as %s/%s\n", file, r.Issuer, file)
		}
		return nil
	}}
}

// Bundle is what a bundle holds.
func Bundle(r *bundling.Result) View {
	return view{r, func(p *Page) error { return bundleTable.print(p.Out, p.Format, r.Entries) }}
}

var bundleTable = table[bundling.Entry]{
	none: "The bundle is empty.",
	name: func(e bundling.Entry) string { return e.Name },
	columns: []column[bundling.Entry]{
		{title: "KIND", of: func(e bundling.Entry) string { return string(e.Kind) }},
		{title: "NAME", of: func(e bundling.Entry) string { return e.Name }},
		{title: "SIZE", of: func(e bundling.Entry) string { return mebibytes(e.Size) }},
		{title: "DIGEST", of: func(e bundling.Entry) string { return e.Digest }},
		{title: "PLATFORM", of: func(e bundling.Entry) string { return e.Platform }, wide: true},
	},
}

// BundleVerified is what `fleetctl bundle verify` has found.
func BundleVerified(r *bundling.Result) View {
	return view{r, func(p *Page) error {
		_, err := ui.Fprintf(p.Out, "%s is complete and unchanged: %s.\n", r.Path, plain.Count(len(r.Entries), "entry"))
		return err
	}}
}

var hostTable = table[management.HostInfo]{
	none: "This machine has no management clusters. `fleetctl init` makes one.",
	name: func(h management.HostInfo) string { return h.Name },
	columns: []column[management.HostInfo]{
		{title: "NAME", of: func(h management.HostInfo) string { return h.Name }},
		{title: "HOST", of: func(h management.HostInfo) string { return h.Type }},
		{title: "STATE", of: func(h management.HostInfo) string {
			state := h.State
			if h.PivotedTo != "" {
				state += ", pivoted to " + h.PivotedTo
			}
			if h.Error != "" {
				state += " (" + h.Error + ")"
			}
			if h.Trouble != "" {
				state += ", in trouble"
			}
			return state
		}},
		{title: "FLEET", of: func(h management.HostInfo) string { return h.Fleet }},
		{title: "REPO", of: func(h management.HostInfo) string { return h.Repo }},
	},
}

// hostTroubles lists the message of each host in trouble.
func hostTroubles(w io.Writer, all []management.HostInfo) error {
	for _, h := range all {
		trouble := cmp.Or(h.Trouble, h.Error)
		if trouble == "" {
			continue
		}
		if _, err := ui.Fprintf(w, "%s: %s\n", h.Name, trouble); err != nil {
			return err
		}
	}
	return nil
}

// hostLogList lists the logs that can be read.
type hostLogList struct {
	FormatVersion string   `json:"formatVersion"`
	Logs          []string `json:"logs"`
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
