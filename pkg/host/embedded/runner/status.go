package runner

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// situation has all facts that a Deployment's status depends on.
type situation struct {
	now     time.Time
	err     error // why the newest template has no plan
	view    *view // of the instance, if there is one
	current bool  // the instance has the newest template
	begun   time.Time
	done    bool   // the rollout was complete before
	clash   string // names the port that keeps the process from running, and the program on it
}

func wantedReplicas(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

// statusOf computes the Deployment's status. One process stands for any number of replicas. wait is the time after which the status may
// change although nothing else does; 0 is never.
func statusOf(d *appsv1.Deployment, s situation) (status appsv1.DeploymentStatus, wait time.Duration) {
	wanted := wantedReplicas(d)
	status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, CollisionCount: d.Status.CollisionCount}
	if s.view != nil {
		status.Replicas = wanted
		if s.current {
			status.UpdatedReplicas = wanted
		}
		if s.view.ready {
			status.ReadyReplicas = wanted
			settled := s.view.readySince.Add(time.Duration(d.Spec.MinReadySeconds) * time.Second)
			if wait = settled.Sub(s.now); wait <= 0 {
				status.AvailableReplicas, wait = wanted, 0
			}
		}
	}
	if s.view != nil && !s.view.slowAt.IsZero() { // from then on the status quotes the log
		wait = max(s.view.slowAt.Sub(s.now), time.Millisecond)
	}
	status.UnavailableReplicas = wanted - status.AvailableReplicas
	status.Conditions = append(status.Conditions, available(d, s, status.UnavailableReplicas == 0))
	progress, left := progressing(d, s, status)
	status.Conditions = append(status.Conditions, progress)
	if left > 0 && (wait == 0 || left < wait) {
		wait = left
	}
	if _, refused := errors.AsType[*refusal](s.err); refused {
		status.Conditions = append(status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "NotSupported", Message: s.err.Error(),
		})
	}
	for i := range status.Conditions {
		keepTimes(&status.Conditions[i], d.Status.Conditions, s.now)
	}
	return status, wait
}

func available(d *appsv1.Deployment, s situation, is bool) appsv1.DeploymentCondition {
	if is {
		return appsv1.DeploymentCondition{
			Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
			Message: "Deployment has minimum availability.",
		}
	}
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: reasonOf(s),
		Message: cmp.Or(trouble(d, s), "the process is starting"),
	}
}

// reasonOf is the reason of the condition Available. It uses the kubelet's words where there is one.
func reasonOf(s situation) string {
	var refused *refusal
	var missing *missingError
	switch {
	case errors.As(s.err, &refused):
		return "NotSupported"
	case errors.As(s.err, &missing):
		return "WaitingForObjects"
	case s.err != nil:
		return "CannotStart"
	case s.view != nil && s.view.status.Phase == process.PhaseBackOff:
		return "CrashLoopBackOff"
	}
	return "MinimumReplicasUnavailable"
}

// trouble describes in words what is wrong with the Deployment. It is "" if the process is only starting.
func trouble(d *appsv1.Deployment, s situation) string {
	var parts []string
	if s.err != nil {
		parts = append(parts, s.err.Error())
	}
	if s.view != nil {
		if text := troubleOf(s.view); text != "" {
			if !s.current {
				text = "the previous version: " + text
			}
			parts = append(parts, text)
		}
	}
	if s.clash != "" {
		parts = append(parts, s.clash)
	}
	if len(parts) == 0 {
		return ""
	}
	name := "process"
	if len(d.Spec.Template.Spec.Containers) > 0 {
		name = d.Spec.Template.Spec.Containers[0].Name
	}
	return bounded(name + ": " + strings.Join(parts, "; "))
}

func troubleOf(v *view) string {
	switch st := v.status; {
	case st.Phase == process.PhaseBackOff && st.StartErr != nil:
		return "cannot be started: " + st.StartErr.Error()
	case st.Phase == process.PhaseBackOff && st.LastExit != nil:
		return exitText(v)
	case !v.ready && v.reason != "" && st.LastExit != nil:
		return fmt.Sprintf("%s (restart %d after %s)", v.reason, st.Restarts, st.LastExit.Reason())
	case !v.ready && v.lastLine != "":
		return strings.TrimPrefix(v.reason+"; its log ends with: "+v.lastLine, "; ")
	case !v.ready:
		return v.reason
	}
	return ""
}

// exitText describes how the process ended, with the last lines of its log.
func exitText(v *view) string {
	exit := v.status.LastExit
	text := "ended with " + exit.Reason()
	if v.reason != "" {
		text = v.reason + "; " + text
	}
	if v.status.Restarts > 0 {
		text += " after " + plain.Count(v.status.Restarts, "restart")
	}
	if len(exit.Lines) > 0 {
		text += ": " + strings.Join(exit.Lines, "\n")
	}
	return text
}

// maxMessage is the longest message of an event in bytes. bounded cuts out the middle, because the end of a log says the most.
const maxMessage = 1000

func bounded(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	const head = 200
	return strings.ToValidUTF8(text[:head]+"…"+text[len(text)-(maxMessage-head-3):], "")
}

// progressing is the condition Progressing of the newest template. Its rollout is complete when the new process is available, and has
// failed if that takes longer than progressDeadlineSeconds. left is the time until then.
func progressing(d *appsv1.Deployment, s situation, status appsv1.DeploymentStatus) (c appsv1.DeploymentCondition, left time.Duration) {
	c = appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue}
	wanted := wantedReplicas(d)
	if s.done || status.UpdatedReplicas == wanted && status.AvailableReplicas == wanted {
		c.Reason, c.Message = "NewReplicaSetAvailable", "The newest version has been available."
		return c, 0
	}
	deadline := 600 * time.Second
	if d.Spec.ProgressDeadlineSeconds != nil {
		deadline = time.Duration(*d.Spec.ProgressDeadlineSeconds) * time.Second
	}
	if left = s.begun.Add(deadline).Sub(s.now); left > 0 {
		c.Reason, c.Message = "ReplicaSetUpdated", "The newest version is not available yet."
		return c, left
	}
	c.Status, c.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	c.Message = bounded(strings.TrimSuffix(fmt.Sprintf("The newest version is not available after %s: %s", deadline, trouble(d, s)), ": "))
	return c, 0
}

// keepTimes keeps the times of the old condition of the same type, if the condition has not changed.
func keepTimes(c *appsv1.DeploymentCondition, old []appsv1.DeploymentCondition, now time.Time) {
	c.LastTransitionTime, c.LastUpdateTime = metav1.NewTime(now), metav1.NewTime(now)
	for _, o := range old {
		if o.Type != c.Type {
			continue
		}
		if o.Status == c.Status {
			c.LastTransitionTime = o.LastTransitionTime
			if o.Reason == c.Reason && o.Message == c.Message {
				c.LastUpdateTime = o.LastUpdateTime
			}
		}
	}
}
