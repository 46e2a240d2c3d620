package status

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Style paints the parts of the tree; the zero value paints nothing.
type Style struct {
	Good, Bad, Dim func(string) string
	// Wide shows more of each part: whole revisions, API servers, nodes and conditions that are as they should be.
	Wide bool
}

// revision shortens a revision, unless everything is wanted.
func (s Style) revision(text string) string {
	if s.Wide {
		return text
	}
	return shortRevision(text)
}

// wide returns the fact with its title if everything is wanted.
func (s Style) wide(title, fact string) string {
	if !s.Wide || fact == "" {
		return ""
	}
	return title + " " + fact
}

func apply(paint func(string) string, text string) string {
	if paint == nil {
		return text
	}
	return paint(text)
}

// stateRunning is the state of a management cluster that answers, as its host names it.
const stateRunning = "running"

// node is one line of the tree.
type node struct {
	text     string
	children []node
}

// Tree writes the report for a person: one tree, then the problems.
func Tree(w io.Writer, r *Report, style Style) error {
	root := node{text: clusterLine(r, style)}
	if r.Git.Repo != "" {
		root.children = append(root.children, gitNode(r, style))
	}
	if r.Cluster.State == stateRunning { // otherwise the rest is unknown
		root.children = append(root.children, providersNode(r, style), fluxNode(r, style), clustersNode(r, style))
	}
	var b strings.Builder
	write(&b, root, "", "")
	problems(&b, r.Problems, style)
	_, err := io.WriteString(w, b.String())
	return err
}

func write(b *strings.Builder, n node, first, rest string) {
	b.WriteString(first + plain.Unbroken(n.text) + "\n")
	for i, c := range n.children {
		if i == len(n.children)-1 {
			write(b, c, rest+"└─ ", rest+"   ")
		} else {
			write(b, c, rest+"├─ ", rest+"│  ")
		}
	}
}

// widest bounds the padding of a column, so that one long name does not widen all lines.
const widest = 64

// problems writes the table of problems, one line for each cause. It names an object once, and has a column for conditions if there are
// any.
func problems(b *strings.Builder, all []Problem, style Style) {
	const object, condition = "WHAT", "CONDITION"
	var objects, conditions int
	for i, p := range all {
		if i == 0 || p.Object != all[i-1].Object {
			objects = max(objects, utf8.RuneCountInString(plain.Unbroken(p.Object))+1)
		}
		conditions = max(conditions, utf8.RuneCountInString(plain.Unbroken(p.Condition)))
	}
	if len(all) == 0 {
		return
	}
	objects, conditions = min(max(objects, len(object)), widest), min(conditions, widest)
	head := pad(object, objects)
	if conditions > 0 {
		conditions = max(conditions, len(condition))
		head += " " + pad(condition, conditions) + " "
	}
	b.WriteString("\n  " + apply(style.Dim, head+" WHY") + "\n")
	for i, p := range all {
		sign, name := apply(style.Bad, "✗"), plain.Unbroken(p.Object)+":"
		if i > 0 && p.Object == all[i-1].Object {
			sign, name = " ", ""
		}
		row := sign + " " + pad(name, objects)
		if conditions > 0 {
			row += " " + pad(plain.Unbroken(p.Condition), conditions) + " "
		}
		b.WriteString(row + " " + plain.Unbroken(p.Reason) + "\n")
		if p.Hint != "" {
			b.WriteString("  hint: " + plain.Unbroken(p.Hint) + "\n")
		}
	}
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func mark(ok bool, style Style) string {
	if ok {
		return apply(style.Good, "✓")
	}
	return apply(style.Bad, "✗")
}

func clusterLine(r *Report, style Style) string {
	line := fmt.Sprintf("%s management cluster %s", mark(r.Ready, style), r.Cluster.Name)
	facts := []string{r.Cluster.State}
	if r.Cluster.Host != "" {
		facts = []string{r.Cluster.Host, r.Cluster.State}
	}
	if r.Cluster.Kubernetes != "" {
		facts = append(facts, r.Cluster.Kubernetes)
	}
	if r.Cluster.PivotedTo != "" {
		facts = append(facts, "pivoted to "+r.Cluster.PivotedTo)
	}
	if r.Cluster.Ephemeral && r.Cluster.PivotedTo == "" {
		facts = append(facts, "ephemeral")
	}
	if r.Standby != nil {
		facts = append(facts, r.Standby.line(r.Time))
	}
	return line + apply(style.Dim, " ("+strings.Join(facts, ", ")+")")
}

func gitNode(r *Report, style Style) node {
	text := "fleet repo " + r.Git.Repo
	if r.Git.Revision != "" {
		text += apply(style.Dim, fmt.Sprintf(" %s@%s", r.Git.Branch, style.revision(r.Git.Revision)))
	}
	if r.Git.Served != nil {
		text = mark(*r.Git.Served, style) + " " + text
		if *r.Git.Served {
			text += ", served from this machine"
		} else {
			text += ", not served"
		}
	}
	return node{text: text}
}

// unknown is the line of a part that could not be read. The problems have the reason.
func unknown(part string, style Style) string { return mark(false, style) + " " + part + ": not known" }

func providersNode(r *Report, style Style) node {
	n := node{text: "providers"}
	if !r.knows(partProviders) {
		n.text = unknown("providers", style)
	}
	for _, p := range r.Providers {
		facts, ready := p.Version, p.Ready
		if text, ended := p.credentialsText(r.Time); text != "" {
			facts, ready = facts+", "+text, ready && !ended
		}
		n.children = append(n.children, node{text: line(ready, p.Type+" "+p.Name, facts, p.Reason, style)})
	}
	return n
}

func fluxNode(r *Report, style Style) node {
	n := node{text: strings.TrimSpace("Flux " + r.Flux.Version)}
	for _, d := range r.Flux.Controllers {
		if !d.Ready {
			n.children = append(n.children, node{text: line(false, d.Name, "", d.Reason, style)})
		}
	}
	if !r.knows(partFlux) {
		n.text = unknown("Flux", style)
	} else if !r.Flux.Installed {
		n.text = mark(false, style) + " Flux is not installed"
	}
	for _, o := range append(append([]Object{}, r.Flux.Sources...), r.Flux.Applied...) {
		facts := style.revision(o.Revision)
		if o.Suspended {
			facts += " suspended"
			if !o.SuspendedInGit && !o.byFleetctl {
				facts += ", not in Git"
			}
		}
		n.children = append(n.children, node{text: line(o.Ready && !o.Suspended, ref(o), facts, o.Reason, style)})
	}
	return n
}

func clustersNode(r *Report, style Style) node {
	if !r.knows(partClusters) {
		return node{text: unknown("workload clusters", style)}
	}
	if len(r.Clusters) == 0 {
		return node{text: "no workload clusters"}
	}
	n := node{text: "workload clusters"}
	if missed := r.OwnRecords.missed(); missed != "" && r.changedHands() {
		n.text += apply(style.Dim, " ("+missed+")")
	}
	for _, c := range r.Clusters {
		facts := []string{c.Phase, c.Version, fmt.Sprintf("control plane %d/%d", c.ControlPlane.Ready, c.ControlPlane.Desired)}
		if c.Workers.Desired > 0 {
			facts = append(facts, fmt.Sprintf("workers %d/%d", c.Workers.Ready, c.Workers.Desired))
		}
		facts = append(facts, style.wide("API server", c.Endpoint))
		if c.Paused {
			facts = append(facts, "paused")
		}
		if c.CopyOf != "" {
			facts = append(facts, "a copy: "+c.CopyOf+" has the cluster")
		}
		if c.Elsewhere {
			facts = append(facts, "owner "+c.Owner)
		}
		if c.OwnRecord != nil {
			facts = append(facts, c.OwnRecord.text())
		}
		reason := c.Reason
		if len(c.Troubles) > 1 && !c.Available { // the table has them
			reason = plain.Count(len(c.Troubles), "condition") + " below"
		}
		if c.TwoOwners { // what the cluster reports besides is in the table
			reason = "TWO OWNERS: " + c.otherOwner() + " and this one"
		}
		child := node{text: line(c.Ready && !c.TwoOwners, c.Namespace+"/"+c.Name, join(facts), reason, style)}
		if f := c.Flux; f != nil && c.Available {
			child.children = append(child.children, node{text: line(f.Ready, "Flux", join([]string{f.Mode, style.revision(f.Revision)}), "", style)})
		}
		for _, m := range c.Machines {
			child.children = append(
				child.children,
				node{text: line(m.Ready, "machine "+m.Name, join([]string{m.Phase, m.Version, style.wide("node", m.Node)}), m.Reason, style)},
			)
		}
		n.children = append(n.children, child)
	}
	return n
}

// line is "✓ name (facts)", or "✗ name (facts)" and the reason.
func line(ok bool, name, facts, reason string, style Style) string {
	text := mark(ok, style) + " " + name
	if facts = strings.TrimSpace(facts); facts != "" {
		text += apply(style.Dim, " ("+facts+")")
	}
	if !ok && reason != "" {
		text += ": " + reason
	}
	return text
}

func join(facts []string) string {
	var out []string
	for _, f := range facts {
		if f != "" {
			out = append(out, f)
		}
	}
	return strings.Join(out, ", ")
}

// shortRevision shortens the digest in main@sha1:0123abcd… or 0.1.0+0123abcd….
func shortRevision(revision string) string {
	const n = 8
	at := strings.LastIndexAny(revision, ":+") + 1
	if len(revision)-at <= n {
		return revision
	}
	return revision[:at+n]
}
