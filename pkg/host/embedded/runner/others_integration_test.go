//go:build integration

package runner

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatNothingStartsIsToldByName has one of each kind that waits for nodes in vain.
func TestWhatNothingStartsIsToldByName(t *testing.T) {
	w := newWorld(t)
	template := deployment("x").Spec.Template
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	once := *template.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "default"} }
	apps, batch, options := w.client.AppsV1(), w.client.BatchV1(), metav1.CreateOptions{}
	made := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	made(apps.StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template},
	}, options))
	made(apps.DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: meta("agent"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template},
	}, options))
	made(batch.Jobs("default").Create(t.Context(), &batchv1.Job{ObjectMeta: meta("migrate"), Spec: batchv1.JobSpec{Template: once}}, options))
	made(batch.CronJobs("default").Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: meta("nightly"),
		Spec:       batchv1.CronJobSpec{Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: once}}},
	}, options))
	made(w.client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{ObjectMeta: meta("shell"), Spec: once.Spec}, options))

	want := map[string]string{"db": "StatefulSet", "agent": "DaemonSet", "migrate": "Job", "nightly": "CronJob", "shell": "Pod"}
	for deadline := time.Now().Add(15 * time.Second); len(want) > 0; time.Sleep(20 * time.Millisecond) {
		events, err := w.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "type=Warning,reason=NotSupported"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			about := e.InvolvedObject
			if want[about.Name] == about.Kind && strings.HasPrefix(e.Message, about.Kind+" default/"+about.Name+": ") &&
				strings.Contains(e.Message, "--host kind") {
				delete(want, about.Name)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is said of %v; there are %+v", want, events.Items)
		}
	}
}
