package why

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/guises"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/status"
)

// Depth is one cluster with all its objects.
type Depth struct {
	// Management is the management cluster that was asked. Commands in the report's texts are about it.
	Management string `json:"-"`

	FormatVersion string    `json:"formatVersion"`
	Time          time.Time `json:"time"`
	Ready         bool      `json:"ready"`
	// Cluster is NAMESPACE/NAME.
	Cluster string `json:"cluster"`
	Phase   string `json:"phase,omitempty"`
	Version string `json:"version,omitempty"`
	Paused  bool   `json:"paused,omitempty"`
	// Owner is the management cluster that has taken the cluster over; "" if it is the one that was asked.
	Owner string `json:"owner,omitempty"`
	// Objects are the Cluster and its parts, of all providers. An owner comes before the objects that it owns.
	Objects []Object `json:"objects"`
	// Flux has the Flux objects that make the cluster, and those that apply its apps.
	Flux []Link `json:"flux"`
	// Events are the last events of these objects.
	Events []Event `json:"events"`
	// Unknown are the kinds that could not be read.
	Unknown []string `json:"unknown"`
}

// Object is a part of a cluster.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Depth is the number of owners between the object and the Cluster.
	Depth      int         `json:"depth"`
	State      State       `json:"state"`
	Conditions []Condition `json:"conditions"`
	Troubles   []Trouble   `json:"troubles"`
}

// Condition is a condition of an object.
type Condition struct {
	status.Condition
	Since *time.Time `json:"since,omitempty"`
}

// Event is an event of an object.
type Event struct {
	Time    time.Time `json:"time"`
	Type    string    `json:"type"`
	Object  string    `json:"object"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count,omitempty"`
}

// lastEvents is the number of shown events.
const lastEvents = 12

// CollectDepth looks at one cluster in depth.
func CollectDepth(ctx context.Context, from Sources) (*Depth, error) {
	l, err := take(ctx, from)
	if err != nil {
		return nil, err
	}
	if l.root == nil && len(l.unknown) == 0 {
		return nil, diag.NotReady("`fleetctl why "+from.Cluster+"` tells how far it has come",
			"the management cluster %s has not made cluster %s yet", from.Management, from.Cluster)
	}
	d := &Depth{
		FormatVersion: "1", Time: time.Now().UTC().Truncate(time.Second), Cluster: l.key.String(), Objects: []Object{},
		Flux: []Link{}, Events: []Event{},
		Unknown: append([]string{}, l.unknown...), Management: from.Management,
	}
	if l.cluster != nil {
		d.Phase, d.Version, d.Paused = l.cluster.Phase, l.cluster.Version, l.cluster.Paused
		d.Ready = l.cluster.Available && len(l.ownerTroubles()) == 0
		if l.elsewhere {
			d.Owner = l.cluster.Owner.ManagementCluster
		}
	}
	if l.root != nil {
		l.root.Walk(func(p *capi.Part, depth int) { d.Objects = append(d.Objects, l.object(p, depth)) })
	}
	c := &chain{look: l}
	c.build()
	for _, link := range c.links {
		if slices.Contains([]Stage{StageSource, StageKustomization, StageRelease, StageWorkloadFlux}, link.Stage) {
			d.Flux = append(d.Flux, link)
			d.Ready = d.Ready && !link.broken()
		}
	}
	d.Ready = d.Ready && len(d.Unknown) == 0
	d.Events = append(d.Events, l.lastEvents(d.Objects)...)
	return d, nil
}

func (l *look) object(p *capi.Part, depth int) Object {
	link := Link{Troubles: l.partTroubles(p)}
	link.judge()
	o := Object{
		Kind: p.GetKind(), Namespace: p.GetNamespace(), Name: p.GetName(), Depth: depth, State: link.State, Conditions: []Condition{},
		Troubles: link.Troubles,
	}
	for _, c := range kube.Conditions(p.Unstructured) {
		o.Conditions = append(o.Conditions, Condition{
			Condition: status.Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message},
			Since:     since(c.LastTransitionTime.Time),
		})
	}
	return o
}

// lastEvents returns the newest events of the cluster's objects, the newest one last.
func (l *look) lastEvents(objects []Object) []Event {
	var out []Event
	for i := range slices.Backward(l.events) {
		e := &l.events[i]
		of := e.InvolvedObject
		if len(out) == lastEvents || !slices.ContainsFunc(objects, func(o Object) bool { return o.Kind == of.Kind && o.Name == of.Name }) {
			continue
		}
		out = append(out, Event{
			Time: kube.EventTime(e).UTC(), Type: e.Type, Object: of.Kind + " " + of.Name, Reason: e.Reason,
			Message: strings.Join(strings.Fields(guises.WithoutURLSecrets(e.Message)), " "), Count: e.Count,
		})
	}
	slices.Reverse(out)
	return out
}

// DepthView writes d for a person: the objects as a tree, the troubles as a table, and the last events.
func DepthView(w io.Writer, d *Depth, style status.Style) error {
	p := &page{style: style}
	state := StateOK
	if !d.Ready {
		state = StateWrong
	}
	facts := slices.DeleteFunc([]string{text(d.Phase), text(d.Version)}, func(s string) bool { return s == "" })
	if d.Paused {
		facts = append(facts, "paused")
	}
	if d.Owner != "" {
		facts = append(facts, "owner "+text(d.Owner))
	}
	p.line(p.mark(state) + " cluster " + text(d.Cluster) + p.dim(" ("+strings.Join(facts, ", ")+")"))
	for _, f := range d.Flux {
		p.line("  " + p.mark(f.State) + " " + named(f))
	}
	for _, o := range d.Objects {
		if strings.HasSuffix(o.Kind, "Template") && len(o.Troubles) == 0 {
			continue // the object has no conditions
		}
		p.line("  " + strings.Repeat("  ", o.Depth) + p.mark(o.State) + " " + text(o.Kind+" "+o.Name))
	}
	if style.Wide {
		p.conditions(d)
	}
	p.troubles(d)
	p.events(d.Events)
	for _, u := range d.Unknown {
		p.line(p.mark(StateUnknown) + " not known: " + text(u))
	}
	if !d.Ready {
		p.line("hint: `fleetctl why " + text(d.Cluster) + "` looks for the first cause")
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

// troubles writes the table of troubles, one line for each cause.
func (p *page) troubles(d *Depth) {
	var rows []row
	add := func(object string, all []Trouble) {
		for _, t := range all {
			rows = append(rows, row{text(object), text(t.Condition), d.ago(t.Since), text(t.Reason)})
		}
	}
	for _, f := range d.Flux {
		add(f.Object, f.Troubles)
	}
	for _, o := range d.Objects {
		add(o.Kind+" "+o.Name, o.Troubles)
	}
	p.table(row{"WHAT", "CONDITION", "SINCE", "WHY"}, rows)
}

// conditions writes the table of all conditions, also of those that are as they should be.
func (p *page) conditions(d *Depth) {
	var rows []row
	for _, o := range d.Objects {
		for _, c := range o.Conditions {
			state := text(c.Status)
			if c.Reason != "" {
				state += " (" + text(c.Reason) + ")"
			}
			rows = append(rows, row{text(o.Kind + " " + o.Name), text(c.Type), d.ago(c.Since), state})
		}
	}
	p.table(row{"OBJECT", "CONDITION", "SINCE", "STATUS"}, rows)
}

// ago tells how long before the report a time was; "" if there is no time.
func (d *Depth) ago(since *time.Time) string {
	if since == nil {
		return ""
	}
	return plain.Duration(d.Time.Sub(*since))
}

// row is a line of a table of conditions.
type row struct{ object, condition, since, reason string }

func (p *page) table(titles row, rows []row) {
	if len(rows) == 0 {
		return
	}
	rows = append([]row{titles}, rows...)
	var widths [3]int
	for _, r := range rows {
		for i, cell := range []string{r.object, r.condition, r.since} {
			widths[i] = min(max(widths[i], utf8.RuneCountInString(cell)), widest)
		}
	}
	p.line("")
	for i, r := range rows {
		line := pad(r.object, widths[0]) + "  " + pad(r.condition, widths[1]) + "  " + pad(r.since, widths[2]) + "  " + r.reason
		if i == 0 {
			line = p.dim(line)
		}
		p.line(line)
	}
}

func (p *page) events(all []Event) {
	if len(all) == 0 {
		return
	}
	p.line("")
	p.line(p.dim("last events"))
	for _, e := range all {
		line := e.Time.Local().Format(time.TimeOnly) + "  " + text(e.Object) + "  " + text(e.Reason) + ": " + text(e.Message)
		if e.Count > 1 {
			line += p.dim(" (" + "×" + plain.Thousands(int(e.Count)) + ")")
		}
		p.line(line)
	}
}
