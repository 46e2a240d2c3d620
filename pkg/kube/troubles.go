package kube

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Trouble is a fault that a condition reports.
type Trouble struct {
	// Condition is the type of the condition, such as VpcReady.
	Condition string
	// Reason and Message of the condition, the message on one line. At most one of them is empty.
	Reason, Message string
	// Since is when the condition got its status; zero if the condition does not say.
	Since time.Time
	// Waiting means that the condition only waits for another object, and so is not the cause.
	Waiting bool
	// Unknown means that the condition's status is Unknown.
	Unknown bool
}

// Text joins the reason and the message.
func (t Trouble) Text() string {
	switch {
	case t.Message == "":
		return t.Reason
	case t.Reason == "" || strings.HasPrefix(t.Message, t.Reason) || slices.Contains(saysNothing, t.Reason):
		return t.Message
	}
	return t.Reason + ": " + t.Message
}

// saysNothing are reasons that add nothing to the message.
var saysNothing = []string{"NotReady", "NotAvailable", "NotProvisioned", "InternalError", "Error", "Failed", "Unknown", "Warning", "Info"}

// summaries are conditions that repeat other conditions of the same object.
var summaries = []string{"Ready", "Available"}

// inverse are conditions that are False on a healthy object. If they are True, the conditions in stopped are troubles, and the others mean
// work in progress.
var (
	inverse = []string{
		"RollingOut", "ScalingUp", "ScalingDown", "Remediating", "Deleting", "Updating", "Reconciling",
		"MachinesDeleting", "ReplicaFailure",
	}
	stopped = []string{"Stalled", "Paused", "ReplicaFailure"}
)

// optional are conditions that do not tell whether an object works.
var optional = []string{
	"ExternallyRemediated", "OwnerRemediated", "UpToDate", "MachinesUpToDate", "ControlPlaneMachinesUpToDate",
	"WorkerMachinesUpToDate",
}

// longTrouble bounds the characters of one line.
const longTrouble = 600

// ConditionTroubles returns the troubles that conditions report, one for each cause. It leaves out troubles that a summary only repeats,
// and returns equal troubles once. A list in a message becomes one trouble for each entry. Faults come first, then unknown conditions, then
// conditions that wait for another object.
func ConditionTroubles(conditions []metav1.Condition) []Trouble {
	return troublesOf(withoutSeverity(conditions))
}

// Troubles returns an object's troubles: from failures in its status, and from its conditions, in the form of every contract version of
// Cluster API.
func Troubles(obj *unstructured.Unstructured) []Trouble {
	troubles := failures(obj)
	for _, t := range troublesOf(severeConditions(obj)) {
		if !slices.ContainsFunc(troubles, func(f Trouble) bool { return f.Message == t.Message && f.Message != "" }) {
			troubles = append(troubles, t)
		}
	}
	return troubles
}

// severe is a condition with a severity. Older conditions of Cluster API and conditions of Azure Service Operator have one.
type severe struct {
	metav1.Condition

	severity string
}

func withoutSeverity(conditions []metav1.Condition) []severe {
	out := make([]severe, 0, len(conditions))
	for _, c := range conditions {
		out = append(out, severe{Condition: c})
	}
	return out
}

// severeConditions returns the conditions in status and in status.v1beta2. Some providers have the newer form in status.v1beta2.
func severeConditions(obj *unstructured.Unstructured) []severe {
	var out []severe
	for _, path := range [][]string{{"status", "v1beta2", "conditions"}, {"status", "conditions"}} {
		raw, _, _ := unstructured.NestedSlice(obj.Object, path...)
		for _, each := range raw {
			content, ok := each.(map[string]any)
			if !ok {
				continue
			}
			var s severe
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &s.Condition); err != nil {
				continue
			}
			s.severity, _, _ = unstructured.NestedString(content, "severity")
			if !slices.ContainsFunc(out, func(o severe) bool { return o.Type == s.Type }) {
				out = append(out, s)
			}
		}
	}
	return out
}

// failures returns troubles in a status without a condition: terminal failures of Cluster API's older contract, and the error of a
// BareMetalHost.
func failures(obj *unstructured.Unstructured) []Trouble {
	var out []Trouble
	for _, f := range []struct{ reason, message string }{
		{"failureReason", "failureMessage"},
		{"errorReason", "errorMessage"},
		{"errorType", "errorMessage"},
	} {
		reason, _, _ := unstructured.NestedString(obj.Object, "status", f.reason)
		message, _, _ := unstructured.NestedString(obj.Object, "status", f.message)
		t := Trouble{Condition: f.message, Reason: reason, Message: boundedLine(message)}
		if t.Text() != "" && !slices.ContainsFunc(out, func(o Trouble) bool { return o.Message == t.Message }) {
			out = append(out, t)
		}
	}
	return out
}

func troublesOf(conditions []severe) []Trouble {
	var said, summed []Trouble
	for _, c := range conditions {
		if slices.Contains(summaries, c.Type) {
			summed = append(summed, troubleOf(c)...)
		} else {
			said = append(said, troubleOf(c)...)
		}
	}
	onlyWaits := !slices.ContainsFunc(said, func(t Trouble) bool { return !t.Waiting })
	all := said
	for _, s := range summed {
		covered := slices.ContainsFunc(said, func(t Trouble) bool { return repeats(s, t) })
		if !covered && (!isSummary(s) || len(said) == 0 || onlyWaits && !s.Waiting) {
			all = append(all, s)
		}
	}
	var out []Trouble
	for _, t := range all {
		if !slices.ContainsFunc(out, func(o Trouble) bool { return cmp.Or(o.Message, o.Reason) == cmp.Or(t.Message, t.Reason) }) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Trouble) int { return cmp.Compare(a.rank(), b.rank()) })
	return out
}

// rank sorts faults before unknown conditions, and unknown conditions before conditions that wait.
func (t Trouble) rank() int {
	switch {
	case t.Waiting:
		return 2
	case t.Unknown:
		return 1
	}
	return 0
}

func isSummary(t Trouble) bool { return slices.Contains(summaries, t.Condition) }

// repeats tells whether the trouble s of a summary only repeats the trouble t.
func repeats(s, t Trouble) bool {
	return s.Condition == t.Condition || s.Message != "" &&
		(strings.Contains(t.Message, s.Message) || t.Message != "" && strings.Contains(s.Message, t.Message))
}

// troubleOf returns the troubles of one condition: none, or one for each point of its message.
func troubleOf(c severe) []Trouble {
	if slices.Contains(optional, c.Type) {
		return nil
	}
	base := Trouble{Condition: c.Type, Reason: c.Reason, Since: c.LastTransitionTime.Time, Unknown: c.Status == metav1.ConditionUnknown}
	switch {
	case slices.Contains(stopped, c.Type):
		if c.Status != metav1.ConditionTrue {
			return nil
		}
	case slices.Contains(inverse, c.Type):
		if c.Status != metav1.ConditionTrue || strings.TrimSpace(c.Message) == "" {
			return nil
		}
		base.Waiting, base.Unknown = true, false
	case c.Status == metav1.ConditionTrue:
		return nil
	}
	base.Waiting = base.Waiting || c.severity == "Info" || saysThatItWaits(c.Reason, c.Message)
	points := pointsOf(c.Message[:min(len(c.Message), mostMessage)])
	points = points[:min(len(points), mostPoints)]
	if len(points) == 0 {
		if base.Reason == "" {
			base.Reason = "condition " + c.Type + " is " + string(c.Status)
		}
		return []Trouble{base}
	}
	out := make([]Trouble, 0, len(points))
	for _, p := range points {
		t := base
		t.Message = boundedLine(p.text)
		if p.condition != "" && (slices.Contains(summaries, c.Type) || len(points) > 1) {
			t.Reason = "" // it is the summary's reason
			if slices.Contains(summaries, c.Type) {
				t.Condition, t.Message = p.condition, boundedLine(p.rest)
			}
			t.Waiting = base.Waiting || saysThatItWaits("", p.rest)
		}
		out = append(out, t)
	}
	return out
}

// The limits of a condition's message, which is untrusted text.
const (
	mostMessage = 16 << 10
	mostPoints  = 100
)

// saysThatItWaits tells whether a condition waits for another object.
func saysThatItWaits(reason, message string) bool {
	if strings.HasPrefix(reason, "Waiting") ||
		slices.Contains([]string{"DependencyNotReady", "Progressing", "NotYetReported", "NoWorkers"}, reason) {
		return true
	}
	message = strings.ToLower(strings.TrimSpace(message))
	return strings.HasPrefix(message, "waiting for") || strings.HasPrefix(message, "wait for") ||
		strings.Contains(message, "condition ") && strings.HasSuffix(message, " not yet reported") // the text of NotYetReported in a summary
}

// point is one entry of a message that is a list, as Cluster API writes them.
type point struct {
	text            string // the whole entry on one line
	condition, rest string // "InfrastructureReady" and the text after it, if the entry begins with a condition
}

// pointsOf splits a message into its points. "* WorkersAvailable:\n  * MachineDeployment md-0: no machine" has one point, and "a\n* b:
// c\n* d" has three. Text without a list is one point.
func pointsOf(message string) []point {
	var out []point
	var above []string // headings above the line
	lines := strings.Split(strings.ReplaceAll(message, "\r", ""), "\n")
	for i, line := range lines {
		text := strings.TrimLeft(line, " \t")
		depth := (len(line) - len(text)) / 2
		listed := strings.HasPrefix(text, "* ")
		text = strings.TrimSpace(strings.TrimPrefix(text, "* "))
		if text == "" {
			continue
		}
		above = above[:min(depth, len(above))]
		heads := listed || len(out) == 0 // "Health check failed:\n  * Node x has been deleted" begins with a heading
		if heads && strings.HasSuffix(text, ":") && hasDeeper(lines[i+1:], depth) {
			above = append(above, text)
			continue
		}
		if !listed && len(out) > 0 { // the line continues the one above
			last := &out[len(out)-1]
			*last = pointOf(last.text+" "+text, last.condition != "")
			continue
		}
		out = append(out, pointOf(strings.Join(append(slices.Clone(above), text), " "), listed))
	}
	return out
}

// hasDeeper tells whether the next line of text is indented more.
func hasDeeper(lines []string, depth int) bool {
	for _, line := range lines {
		if text := strings.TrimLeft(line, " \t"); text != "" {
			return (len(line)-len(text))/2 > depth
		}
	}
	return false
}

func pointOf(text string, listed bool) point {
	p := point{text: text}
	if name, rest, ok := strings.Cut(text, ":"); ok && listed && name != "" && !strings.ContainsAny(name, " /.") {
		p.condition, p.rest = name, strings.TrimSpace(rest)
	}
	return p
}

// boundedLine puts text on one line, and cuts out the middle of a text that is too long.
func boundedLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longTrouble {
		const head = longTrouble / 2
		return string(runes[:head]) + "…" + string(runes[len(runes)-(longTrouble-head-1):])
	}
	return text
}
