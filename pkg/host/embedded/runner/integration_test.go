//go:build integration

package runner

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

func TestManagerWithCertificateThatComesLater(t *testing.T) {
	w := newWorld(t)
	d := deployment("manager")
	d.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{
		Name:         "cert",
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cert"}},
	}}
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{
		{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
		{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "CERTS", Value: "/tmp/k8s-webhook-server/serving-certs/tls.crt"},
		{Name: "EXPANDED", Value: "in $(POD_NAMESPACE) $(NOT_SET) $$(POD_IP)"},
	}
	w.create(d)
	got := w.wait("manager", "waiting for its Secret", func(d *appsv1.Deployment) bool {
		return condition(d, appsv1.DeploymentAvailable).Reason == "WaitingForObjects"
	})
	if c := condition(got, appsv1.DeploymentAvailable); c.Status != corev1.ConditionFalse ||
		!strings.Contains(c.Message, "Secret default/cert") {
		t.Errorf("waiting: %+v", c)
	}
	w.secret("cert", map[string]string{"tls.crt": "first"})
	begun := time.Now()
	w.ready("manager")
	t.Logf("ready %s after the Secret", time.Since(begun))
	ip := w.service("manager")
	var address string
	for deadline := time.Now().Add(5 * time.Second); address == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		address, _ = w.runner.Resolve(t.Context(), ip, "443")
	}
	if by := w.resolve("manager.default.svc", "443"); by != address {
		t.Errorf("by name %s, by address %s", by, address)
	}
	if host, _, _ := net.SplitHostPort(address); host != "127.0.0.1" {
		t.Errorf("address %s", address)
	}
	a := w.about(address)
	if a.Cert != "first" {
		t.Errorf("certificate: %q", a.Cert)
	}
	if a.env("POD_NAMESPACE") != "default" || a.env("POD_IP") != "127.0.0.1" || a.env("EXPANDED") != "in default $(NOT_SET) $(POD_IP)" {
		t.Errorf("environment: %v", a.Env)
	}
	if raw, err := os.ReadFile(a.env("CERTS")); string(raw) != "first" {
		t.Errorf("path in the environment: %s: %v", a.env("CERTS"), err)
	}
	for _, e := range a.Env {
		if name, _, _ := strings.Cut(e, "="); slices.Contains([]string{"USER", "SHELL", "KUBEBUILDER_ASSETS", "PWD", "LOGNAME"}, name) {
			t.Errorf("our own environment leaks: %s", e)
		}
	}
	w.secret("cert", map[string]string{"tls.crt": "second"})
	before := w.identity("manager")
	for deadline := time.Now().Add(5 * time.Second); w.about(address).Cert != "second"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the volume is never refreshed")
		}
	}
	if w.identity("manager") != before {
		t.Error("a changed Secret has restarted the process")
	}
}

func TestTokenHasItsAccountsRights(t *testing.T) {
	w := newWorld(t)
	_, err := w.client.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			Verbs: []string{"list"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.client.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "manager", Namespace: "default"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.service("manager")
	w.create(deployment("manager"))
	w.ready("manager")
	calls := w.about(w.resolve("manager.default.svc.cluster.local", "443")).Calls
	if calls[0] != "<nil>" || !strings.Contains(calls[1], `"system:serviceaccount:default:manager" cannot list resource "secrets"`) {
		t.Errorf("calls: %q", calls)
	}
}

func TestCrashedManagerComesBack(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	w.create(deployment("manager"))
	w.ready("manager")
	address := w.resolve("manager.default.svc", "443")
	before := w.identity("manager")
	if resp, err := http.Get("http://" + address + "/crash"); err == nil {
		_ = resp.Body.Close()
	}
	w.wait("manager", "unavailable", func(d *appsv1.Deployment) bool {
		return d.Status.AvailableReplicas == 0 && d.Status.UnavailableReplicas == 1
	})
	w.ready("manager")
	if now := w.identity("manager"); now == before || before.Alive() {
		t.Errorf("before %v, now %v", before, now)
	}
	if again := w.resolve("manager.default.svc", "443"); again != address {
		t.Errorf("the port has changed from %s to %s", address, again)
	}
}

// TestEditedWhileStarting edits at once, and again when the process of the edit before is there: one process is left, of the last one.
func TestEditedWhileStarting(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	w.create(deployment("manager", "--unready", "--peer-addr=first"))
	seen := map[process.Identity]string{}
	for i := range 6 {
		version := fmt.Sprintf("--peer-addr=%d", i)
		w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{version} })
		if i%2 == 1 {
			w.sees(seen, version)
		}
	}
	w.ready("manager")
	if got := w.about(w.resolve("manager.default.svc", "443")).Peer; got != "5" {
		t.Errorf("runs version %s", got)
	}
	w.wantProcesses(seen, w.identity("manager"))
	maps.Copy(seen, w.processes())
	if len(seen) < 3 {
		t.Errorf("only %d processes were ever seen: the test shows little", len(seen))
	}
	w.stop()
	w.wantProcesses(seen)
}

func TestReplicasAndDeletion(t *testing.T) {
	w := newWorld(t)
	d := deployment("manager")
	three := int32(3)
	d.Spec.Replicas = &three
	w.create(d)
	w.ready("manager")
	running := w.identity("manager")
	w.edit("manager", func(d *appsv1.Deployment) { zero := int32(0); d.Spec.Replicas = &zero })
	w.wait("manager", "scaled down", func(d *appsv1.Deployment) bool { return d.Status.Replicas == 0 && !running.Alive() })
	w.edit("manager", func(d *appsv1.Deployment) { one := int32(1); d.Spec.Replicas = &one })
	w.ready("manager")
	running = w.identity("manager")
	if err := w.client.AppsV1().Deployments("default").Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); running.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the process outlives its Deployment")
		}
	}
}

func TestNothingIsTakenForItsNamesake(t *testing.T) {
	w := newWorld(t)
	cached := deployment("manager")
	cached.Spec.Template.Spec.Volumes = []corev1.Volume{{
		Name:         "data",
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}},
	}}
	cached.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	for _, gone := range []string{"while the runner runs", "while no runner runs"} {
		w.create(cached.DeepCopy())
		w.ready("manager")
		file := filepath.Join(w.dir, runDir, "default", "manager", "volumes", "data", "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"restart": gone} })
		w.ready("manager")
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a rollout has lost data: %v", err)
		}
		before := w.identity("manager")
		if gone == "while no runner runs" {
			w.stop()
		}
		if err := w.client.AppsV1().Deployments("default").Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.create(cached.DeepCopy())
		if gone == "while no runner runs" {
			w.start()
		}
		w.ready("manager")
		if _, err := os.Stat(file); err == nil || before.Alive() {
			t.Errorf("deleted %s: data of another Deployment: %v, its process lives: %v", gone, err, before.Alive())
		}
		if err := w.client.AppsV1().Deployments("default").Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.gone(filepath.Dir(filepath.Dir(filepath.Dir(file))))
	}
	w.stop()
	stale := filepath.Join(w.dir, runDir, "default", "stale")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.gone(stale)
}
