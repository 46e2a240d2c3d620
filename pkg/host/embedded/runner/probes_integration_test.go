//go:build integration

package runner

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestProbes: each kind of probe, before and after the process is as it asks.
func TestProbes(t *testing.T) {
	w := newWorld(t)
	free, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	cat := corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/manager", "cat", "/mnt/$(FILE)"}}}
	listen := func(string) {
		l, err := net.Listen("tcp", free.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	write := func(volume string) {
		if err := os.WriteFile(filepath.Join(volume, "there"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		probe func(*corev1.Container)
		told  []string // until it passes
		pass  func(volume string)
	}{
		"tcp-moved": {probe: func(c *corev1.Container) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{
				Port: intstr.FromString("healthz"),
			}}}
		}},
		"tcp": {func(c *corev1.Container) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt(port)}}}
		}, []string{"readiness probe failed", "connection refused"}, listen},
		"exec": {func(c *corev1.Container) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: cat, TimeoutSeconds: 5}
		}, []string{"readiness probe failed", "exit status 1", "volumes/data/there: no such file"}, write},
		"startup": {func(c *corev1.Container) {
			c.StartupProbe = &corev1.Probe{ProbeHandler: cat, TimeoutSeconds: 5, PeriodSeconds: 1, FailureThreshold: 1}
		}, []string{"startup probe failed", "restart"}, write},
	} {
		d := deployment(name)
		pod := &d.Spec.Template.Spec
		pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		c := &pod.Containers[0]
		c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/mnt"}}
		c.Env = []corev1.EnvVar{{Name: "FILE", Value: "there"}}
		test.probe(c)
		w.create(d)
		if test.pass != nil {
			w.wait(name, "told why it is not ready", func(d *appsv1.Deployment) bool {
				message := condition(d, appsv1.DeploymentAvailable).Message
				for _, part := range test.told {
					if !strings.Contains(message, part) {
						return false
					}
				}
				return d.Status.ReadyReplicas == 0
			})
			test.pass(filepath.Join(w.dir, runDir, "default", name, "volumes", "data"))
		}
		w.ready(name)
	}
}

// TestLiveness: a process that fails its probe is ended, and another one started.
func TestLiveness(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	d := deployment("manager")
	d.Spec.Template.Spec.Containers[0].LivenessProbe = &corev1.Probe{
		PeriodSeconds: 1, FailureThreshold: 2, TimeoutSeconds: 5,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("healthz")}},
	}
	w.create(d)
	w.ready("manager")
	before := w.identity("manager")
	resp, err := http.Get("http://" + w.resolve("manager.default.svc", "443") + "/fall-sick")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	w.wait("manager", "another process", func(d *appsv1.Deployment) bool { return w.identity("manager") != before && isReady(d) })
	if before.Alive() {
		t.Error("the sick one still runs")
	}
}
