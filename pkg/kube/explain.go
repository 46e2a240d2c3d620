package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/guises"
)

// maxReason bounds the length of a reason, because log tails and admission messages can be pages long.
const maxReason = 400

// Conditions returns the status conditions of obj, or nil. Their messages are without the credentials of URLs, which controllers repeat.
func Conditions(obj *unstructured.Unstructured) []metav1.Condition {
	raw, found, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil || !found {
		return nil
	}
	conditions := make([]metav1.Condition, 0, len(raw))
	for _, each := range raw {
		content, ok := each.(map[string]any)
		if !ok {
			continue
		}
		var c metav1.Condition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &c); err == nil {
			c.Message = guises.WithoutURLSecrets(c.Message)
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// Reason returns why an object with these conditions is not healthy. It looks at Stalled, Available and Ready, in this order. It returns ""
// if these conditions show no trouble.
func Reason(conditions []metav1.Condition) string {
	for _, summary := range []string{"Stalled", "Available", "Ready"} {
		for _, c := range conditions {
			bad := c.Status != metav1.ConditionTrue
			if summary == "Stalled" {
				bad = c.Status == metav1.ConditionTrue
			}
			if c.Type == summary && bad {
				return conditionText(c)
			}
		}
	}
	return ""
}

func conditionText(c metav1.Condition) string {
	text := strings.TrimSpace(c.Message)
	switch {
	case text == "" && c.Reason == "":
		text = fmt.Sprintf("condition %s is %s", c.Type, c.Status)
	case text == "":
		text = c.Reason
	case c.Reason != "" && !strings.HasPrefix(text, c.Reason):
		text = c.Reason + ": " + text
	}
	return shorten(text)
}

// shorten puts text on one line of at most maxReason characters. It cuts out the middle: the beginning names the failing component, and the
// end of a log says why a program ended. Credentials of URLs are left out.
func shorten(text string) string {
	const head = maxReason / 3
	text = guises.WithoutURLSecrets(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > maxReason {
		return string(runes[:head]) + "…" + string(runes[len(runes)-(maxReason-head-1):])
	}
	return text
}

// Explain returns one line that says why obj is not healthy. It uses obj's conditions, the state of a workload's pods, and recent warning
// events. It returns "" if it finds no reason. It ignores read errors, because its callers already have an error.
func (c *Client) Explain(ctx context.Context, obj *unstructured.Unstructured) string {
	if obj == nil {
		return "it does not exist"
	}
	if pods := c.explainPods(ctx, obj); pods != "" {
		return pods
	}
	reason := Reason(Conditions(obj))
	if event := c.lastWarning(ctx, obj.GetNamespace(), obj.GetKind(), obj.GetName()); event != "" && !strings.Contains(reason, event) {
		reason = strings.Join(slices.DeleteFunc([]string{reason, event}, func(s string) bool { return s == "" }), "; ")
	}
	return shorten(reason)
}

// explainPods returns what is wrong with a workload's pods, or "".
func (c *Client) explainPods(ctx context.Context, obj *unstructured.Unstructured) string {
	matchLabels, found, err := unstructured.NestedStringMap(obj.Object, "spec", "selector", "matchLabels")
	if err != nil || !found || obj.GetNamespace() == "" {
		return ""
	}
	pods := &corev1.PodList{}
	err = c.List(ctx, pods, client.InNamespace(obj.GetNamespace()),
		client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(matchLabels)})
	if err != nil {
		return ""
	}
	// Look at the newest pod first: older ones may belong to an earlier rollout.
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for i := range pods.Items {
		pod := &pods.Items[i]
		if trouble := podTrouble(pod); trouble != "" {
			return shorten("pod " + pod.Name + ": " + trouble)
		}
		if event := c.lastWarning(ctx, pod.Namespace, "Pod", pod.Name); event != "" && !podReady(pod) {
			return shorten("pod " + pod.Name + ": " + event)
		}
	}
	return c.explainReplicaSets(ctx, obj, matchLabels)
}

// explainReplicaSets returns why a Deployment has no pods, for example because of a quota or an admission webhook, or "".
func (c *Client) explainReplicaSets(ctx context.Context, obj *unstructured.Unstructured, matchLabels map[string]string) string {
	sets := &metav1.PartialObjectMetadataList{}
	sets.SetGroupVersionKind(DeploymentKind.GroupVersion().WithKind("ReplicaSetList"))
	if err := c.List(ctx, sets, client.InNamespace(obj.GetNamespace()), client.MatchingLabels(matchLabels)); err != nil {
		return ""
	}
	for _, set := range sets.Items {
		if event := c.lastWarning(ctx, set.Namespace, "ReplicaSet", set.Name); event != "" {
			return shorten(event)
		}
	}
	return ""
}

// podTrouble returns what keeps a pod from being ready. It returns "" if the pod is ready or only starting.
func podTrouble(pod *corev1.Pod) string {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for _, status := range statuses {
		if trouble := containerTrouble(status); trouble != "" {
			return "container " + status.Name + ": " + trouble
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return strings.TrimSpace("not scheduled: " + c.Message)
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return strings.TrimSpace("failed: " + pod.Status.Reason + " " + pod.Status.Message)
	}
	return ""
}

func containerTrouble(status corev1.ContainerStatus) string {
	if w := status.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
		text := w.Reason
		if last := status.LastTerminationState.Terminated; last != nil && w.Reason == "CrashLoopBackOff" {
			return text + ": " + terminationText(last)
		}
		if w.Message != "" {
			text += ": " + w.Message
		}
		return text
	}
	if t := status.State.Terminated; t != nil && t.ExitCode != 0 {
		return terminationText(t)
	}
	return ""
}

func terminationText(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Reason != "" && t.Reason != "Error" {
		text = t.Reason + ", " + text
	}
	// With FallbackToLogsOnError, the message is the end of the log. The last line says why the program ended.
	lines := strings.FieldsFunc(t.Message, func(r rune) bool { return r == '\n' })
	if len(lines) > 0 {
		text += ": " + strings.TrimSpace(lines[len(lines)-1])
	}
	return text
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// lastWarning returns the newest warning event about an object, or "".
func (c *Client) lastWarning(ctx context.Context, namespace, kind, name string) string {
	events := &corev1.EventList{}
	err := c.List(ctx, events, client.InNamespace(cmp.Or(namespace, metav1.NamespaceDefault)), client.MatchingFieldsSelector{
		Selector: fields.SelectorFromSet(fields.Set{
			"involvedObject.kind": kind, "involvedObject.name": name, "type": corev1.EventTypeWarning,
		}),
	})
	if err != nil || len(events.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(events.Items, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b).Time) })
	return shorten(last.Reason + ": " + last.Message)
}

func eventTime(e corev1.Event) *metav1.Time {
	switch {
	case e.Series != nil:
		return &metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return &e.LastTimestamp
	case !e.EventTime.IsZero():
		return &metav1.Time{Time: e.EventTime.Time}
	}
	return &e.CreationTimestamp
}
