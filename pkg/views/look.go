package views

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fleetctl/fleetctl/pkg/config"
	"github.com/fleetctl/fleetctl/pkg/lifecycle"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/preflight"
	"github.com/fleetctl/fleetctl/pkg/status"
	"github.com/fleetctl/fleetctl/pkg/support"
	"github.com/fleetctl/fleetctl/pkg/ui"
	"github.com/fleetctl/fleetctl/pkg/version"
	"github.com/fleetctl/fleetctl/pkg/why"
)

// Status is what `fleetctl status` shows.
func Status(r *status.Report) View {
	return named(r, clusterNames(r), func(p *Page) error { return status.Tree(p.Out, r, style(p)) })
}

// StatusAll is what `fleetctl status --all` shows.
func StatusAll(all *status.All) View {
	names := make([]string, 0, len(all.ManagementClusters))
	for _, r := range all.ManagementClusters {
		names = append(names, r.Cluster.Name)
	}
	return named(all, names, func(p *Page) error { return status.AllView(p.Out, all, style(p)) })
}

// Depth is what `fleetctl status CLUSTER` shows.
func Depth(d *why.Depth) View {
	names := make([]string, 0, len(d.Objects))
	for _, o := range d.Objects {
		names = append(names, o.Kind+"/"+o.Name)
	}
	return named(d, names, func(p *Page) error { return why.DepthView(p.Out, d, style(p)) })
}

// clusterNames are the workload clusters by the names that `fleetctl status` takes: with the namespace where another one has the name, too.
func clusterNames(r *status.Report) []string {
	called := map[string]int{}
	for _, c := range r.Clusters {
		called[c.Name]++
	}
	names := make([]string, 0, len(r.Clusters))
	for _, c := range r.Clusters {
		name := c.Name
		if called[name] > 1 {
			name = c.Namespace + "/" + name
		}
		names = append(names, name)
	}
	return names
}

// Why is what `fleetctl why` shows.
func Why(r *why.Report) View {
	return view{r, func(p *Page) error { return why.View(p.Out, r, style(p)) }}
}

func style(p *Page) status.Style {
	return status.Style{
		Good: ui.Painter(p.Streams, ui.Good), Bad: ui.Painter(p.Streams, ui.Bad), Dim: ui.Painter(p.Streams, ui.Dim),
		Wide: p.Format == ui.Wide,
	}
}

// Doctor is what `fleetctl doctor` shows.
func Doctor(r *lifecycle.DoctorReport) View {
	return view{r, func(p *Page) error { return doctorView(p.Streams, p.Out, r) }}
}

// SupportBundle is what `fleetctl support-bundle` has gathered.
func SupportBundle(r *support.Result) View {
	return view{r, func(p *Page) error { return supportView(p.Out, p.Streams, r) }}
}

// Credentials is the output of `fleetctl credentials`. A credential that ends within the given time is reported as
// ending.
func Credentials(r *management.CredentialsReport, within time.Duration) View {
	return view{r, func(p *Page) error { return credentialsView(p, r, within) }}
}

func credentialsView(p *Page, r *management.CredentialsReport, within time.Duration) error {
	var all []held
	for _, c := range r.Clusters {
		for _, credential := range c.Credentials {
			all = append(all, held{c.Name, credential})
		}
	}
	if len(all) > 0 || r.Unread() == 0 {
		if err := credentialTable.print(p.Out, p.Format, all); err != nil || p.Format == ui.Name {
			return err
		}
	}
	for _, c := range r.Clusters {
		if c.Error != "" {
			ui.Fprintf(p.Out, "Management cluster %s could not be asked: %s\n", c.Name, c.Error)
			if c.Hint != "" {
				ui.Fprintf(p.Out, "  hint: %s\n", c.Hint)
			}
		}
	}
	if r.Ending > 0 {
		ui.Fprintf(p.Out, "\nEnding within %s, or ended: %d. "+renewal(all)+"\n", shortDuration(within), r.Ending)
	}
	return nil
}

// Settings is the output of `fleetctl config view`. With origin it says where each setting comes from.
func Settings(all []config.Setting, origin bool) View {
	return view{struct {
		FormatVersion string           `json:"formatVersion"`
		Settings      []config.Setting `json:"settings"`
	}{"1", all}, func(p *Page) error { return configView(p.Out, all, origin) }}
}

// Version is what `fleetctl version` shows.
func Version(info version.Info) View { return of(info, versionView) }

func doctorView(s ui.Streams, w io.Writer, r *lifecycle.DoctorReport) error {
	for _, check := range r.Checks {
		ui.Fprintf(w, "%s %s  %s\n", checkMark(s, check.Status), check.Name, check.Summary)
		if check.Hint != "" {
			ui.Fprintf(w, "    %s\n", check.Hint)
		}
	}
	_, err := ui.Fprintf(w, "\n%s, %d failed, %s\n", plain.Count(len(r.Checks), "check"), r.Failed, plain.Count(r.Warned, "warning"))
	return err
}

func checkMark(s ui.Streams, status preflight.Status) string {
	switch status {
	case preflight.StatusOK:
		return ui.Painter(s, ui.Good)("✓")
	case preflight.StatusWarn:
		return ui.Painter(s, ui.Warn)("!")
	case preflight.StatusFail:
		return ui.Painter(s, ui.Bad)("✗")
	case preflight.StatusSkip:
	}
	return ui.Painter(s, ui.Dim)("-")
}

func supportView(w io.Writer, s ui.Streams, r *support.Result) error {
	for _, u := range r.Unread {
		ui.Fprintf(s.Err, "missing in the bundle: %s\n", u)
	}
	_, err := ui.Fprintf(w, "%s: %s, %d KiB. Look through it before you give it to somebody.\n", r.File,
		plain.Count(len(r.Entries), "file"), (r.Bytes+1023)>>10)
	return err
}

// held is a credential with its management cluster.
type held struct {
	cluster string
	management.Credential
}

const dateFormat = "2006-01-02 15:04"

var credentialTable = table[held]{
	none: "The management clusters hold no credentials that fleetctl knows of.",
	name: func(h held) string { return h.Name },
	columns: []column[held]{
		{title: "MANAGEMENT", of: func(h held) string { return h.cluster }},
		{title: "PROVIDER", of: func(h held) string { return h.Provider }},
		{title: "KIND", of: func(h held) string { return h.Kind }},
		{title: "NAME", of: func(h held) string { return h.Name }},
		{title: "FROM", of: func(h held) string { return cmp.Or(h.Source, "-") }},
		{title: "SINCE", of: func(h held) string { return h.Since.Local().Format(dateFormat) }},
		{title: "UNTIL", of: untilText},
		{title: "NAMESPACES", of: func(h held) string { return h.Namespaces }, optional: true},
	},
}

// renewal says what to do about the credentials that end. It is a format without values.
func renewal(all []held) string {
	if slices.ContainsFunc(all, func(h held) bool { return h.Ends != "" && !h.Renewable }) {
		return "Change them at their source, and run `fleetctl init`."
	}
	return "Run `fleetctl init`, which renews them."
}

func untilText(h held) string {
	if h.Until == nil {
		return "-"
	}
	text := h.Until.Local().Format(dateFormat)
	switch {
	case h.Ends == management.Ended && h.Renewable:
		return text + " (ended; `fleetctl init` renews it)"
	case h.Ends == management.Ended:
		return text + " (ended)"
	case h.Ends == management.EndsSoon && h.Renewable:
		return text + " (soon; `fleetctl init` renews it)"
	case h.Ends == management.EndsSoon:
		return text + " (soon)"
	}
	return text
}

// shortDuration leaves out zero minutes and seconds, which Go writes.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func configView(w io.Writer, settings []config.Setting, origin bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range settings {
		if origin {
			ui.Fprintf(t, "%s\t%v\t%s\n", s.Key, s.Value, s.Origin)
			continue
		}
		ui.Fprintf(t, "%s\t%v\n", s.Key, s.Value)
	}
	return t.Flush()
}

func versionView(w io.Writer, info version.Info) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	ui.Fprintf(t, "fleetctl\t%s\n", info.Version)
	if info.Commit != "" {
		ui.Fprintf(t, "commit\t%s\n", info.Commit)
	}
	ui.Fprintf(t, "go\t%s %s\n", info.Go, info.Platform)
	names := make([]string, 0, len(info.Libraries))
	for name := range info.Libraries {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ui.Fprintf(t, "%s\t%s\n", name, info.Libraries[name])
	}
	return t.Flush()
}
