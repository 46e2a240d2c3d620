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

// Trouble is one thing that a condition says is not as it should be: one line of a table.
type Trouble struct {
	// Condition that says it, as VpcReady.
	Condition string
	// Reason is the condition's word for it, Message what it says beside that, on one line; either may be empty, and not both.
	Reason, Message string
	// Since is when the condition became what it is; zero where it does not say.
	Since time.Time
	// Waiting: it says itself that it waits for something else, and so is not what is wrong.
	Waiting bool
	// Unknown: nobody can tell.
	Unknown bool
}

// Text is the reason and the message.
func (t Trouble) Text() string {
	switch {
	case t.Message == "":
		return t.Reason
	case t.Reason == "" || strings.HasPrefix(t.Message, t.Reason) || slices.Contains(saysNothing, t.Reason):
		return t.Message
	}
	return t.Reason + ": " + t.Message
}

// saysNothing are reasons that add nothing to a message.
var saysNothing = []string{"NotReady", "NotAvailable", "NotProvisioned", "InternalError", "Error", "Failed", "Unknown", "Warning", "Info"}

// summaries are conditions that repeat what others of the same object say.
var summaries = []string{"Ready", "Available"}

// inverse are conditions that are False where all is well; True is trouble in those of stopped, and in the others a thing that is under way.
var (
	inverse = []string{"RollingOut", "ScalingUp", "ScalingDown", "Remediating", "Deleting", "Updating", "Reconciling", "MachinesDeleting", "ReplicaFailure"}
	stopped = []string{"Stalled", "Paused", "ReplicaFailure"}
)

// optional are conditions that say nothing of whether an object works.
var optional = []string{"ExternallyRemediated", "OwnerRemediated", "UpToDate", "MachinesUpToDate", "ControlPlaneMachinesUpToDate", "WorkerMachinesUpToDate"}

// longTrouble bounds the text of one line.
const longTrouble = 600

// ConditionTroubles says what conditions have against an object: one line a cause. What a summary only repeats is left out, what two conditions say
// in the same words is said once, a list within a message makes a line of each. First comes what is wrong, then what waits for something else.
func ConditionTroubles(conditions []metav1.Condition) []Trouble {
	return troublesOf(withoutSeverity(conditions))
}

// Troubles are those of an object: what its conditions say, in the form of any contract of Cluster API, and what its status calls a failure.
func Troubles(obj *unstructured.Unstructured) []Trouble {
	troubles := failures(obj)
	for _, t := range troublesOf(severeConditions(obj)) {
		if !slices.ContainsFunc(troubles, func(f Trouble) bool { return f.Message == t.Message && f.Message != "" }) {
			troubles = append(troubles, t)
		}
	}
	return troubles
}

// severe is a condition with what the older ones of Cluster API and those of Azure's operator have beside it.
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

// severeConditions are the conditions of status, and those of status.v1beta2, where some providers have the newer ones.
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

// failures are what a status says without a condition: the final failures of Cluster API's older contract, and the message of a bare metal host.
func failures(obj *unstructured.Unstructured) []Trouble {
	var out []Trouble
	for _, f := range []struct{ reason, message string }{{"failureReason", "failureMessage"}, {"errorReason", "errorMessage"}, {"errorType", "errorMessage"}} {
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

// rank puts what is wrong before what nobody can tell, and that before what waits.
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

// repeats tells whether a summary's line says what another one says.
func repeats(s, t Trouble) bool {
	return s.Condition == t.Condition || s.Message != "" && (strings.Contains(t.Message, s.Message) || t.Message != "" && strings.Contains(s.Message, t.Message))
}

// troubleOf is what one condition has against its object: nothing, or a line for each point of its message.
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
			t.Reason = "" // the summary's
			if slices.Contains(summaries, c.Type) {
				t.Condition, t.Message = p.condition, boundedLine(p.rest)
			}
			t.Waiting = base.Waiting || saysThatItWaits("", p.rest)
		}
		out = append(out, t)
	}
	return out
}

// What of a condition's message is taken apart: somebody else has written it.
const (
	mostMessage = 16 << 10
	mostPoints  = 100
)

// saysThatItWaits tells whether a condition is about something else that has not come yet.
func saysThatItWaits(reason, message string) bool {
	if strings.HasPrefix(reason, "Waiting") || slices.Contains([]string{"DependencyNotReady", "Progressing", "NotYetReported", "NoWorkers"}, reason) {
		return true
	}
	message = strings.ToLower(strings.TrimSpace(message))
	return strings.HasPrefix(message, "waiting for") || strings.HasPrefix(message, "wait for") ||
		strings.Contains(message, "condition ") && strings.HasSuffix(message, " not yet reported") // as NotYetReported, where a summary lists it
}

// point is one entry of the lists that Cluster API's messages are.
type point struct {
	text            string // all of it, on one line
	condition, rest string // "InfrastructureReady" and what follows it, where it begins so
}

// pointsOf takes a message apart: "* WorkersAvailable:\n  * MachineDeployment md-0: no machine" has one point, and "a\n* b: c\n* d" has three. Text
// without a list is one point.
func pointsOf(message string) []point {
	var out []point
	var above []string // headings that the line is below of
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
		if listed && strings.HasSuffix(text, ":") && hasDeeper(lines[i+1:], depth) {
			above = append(above, text)
			continue
		}
		if !listed && len(out) > 0 { // goes on with what the line above says
			last := &out[len(out)-1]
			*last = pointOf(last.text+" "+text, last.condition != "")
			continue
		}
		out = append(out, pointOf(strings.Join(append(slices.Clone(above), text), " "), listed))
	}
	return out
}

// hasDeeper tells whether the next line of text stands further in.
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

// boundedLine is text on one line; of what is too long the middle is left out.
func boundedLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > longTrouble {
		const head = longTrouble / 2
		return string(runes[:head]) + "…" + string(runes[len(runes)-(longTrouble-head-1):])
	}
	return text
}
