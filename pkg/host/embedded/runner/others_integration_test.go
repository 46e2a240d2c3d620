//go:build integration

package runner

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
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
		events, err := w.client.CoreV1().Events("default").List(t.Context(),
			metav1.ListOptions{FieldSelector: "type=Warning,reason=NotSupported"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events.Items {
			about := e.InvolvedObject
			if want[about.Name] == about.Kind && strings.HasPrefix(e.Message, about.Kind+" default/"+about.Name+" is not started: ") &&
				strings.Contains(e.Message, "--host kind") {
				delete(want, about.Name)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing is said of %v; there are %+v", want, events.Items)
		}
	}
}

// TestTokensAreRenewedUnderTheProcess has tokens that are due after a second, and a process that goes on with new ones.
func TestTokensAreRenewedUnderTheProcess(t *testing.T) {
	w := newWorld(t)
	w.stop()
	w.opts.TokenRenewal = time.Second
	w.start()
	w.service("manager")
	d := deployment("manager")
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: "cloud"}}},
	}}}}
	d.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/cloud"}}
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CLOUD_TOKEN", Value: "/var/run/cloud/token"}}
	w.create(d)
	w.ready("manager")
	address, process := w.resolve("manager.default.svc", "443"), w.identity("manager")
	about := w.about(address)
	files := []string{filepath.Join(filepath.Dir(about.env("KUBECONFIG")), "token"), about.env("CLOUD_TOKEN")}
	first := map[string]string{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first[file] = string(raw)
	}
	for deadline := time.Now().Add(15 * time.Second); len(first) > 0; time.Sleep(50 * time.Millisecond) {
		for file, was := range first {
			if now, err := os.ReadFile(file); err == nil && len(now) > 0 && string(now) != was {
				delete(first, file)
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("never renewed: %v", slices.Collect(maps.Keys(first)))
		}
	}
	if now := w.identity("manager"); now != process {
		t.Errorf("the process was started anew: %v, before %v", now, process)
	}
	if calls := w.about(address).Calls; !strings.Contains(calls[0], `"system:serviceaccount:default:manager" cannot list`) {
		t.Errorf("with the new token it is not who it was: %q", calls)
	}
}
