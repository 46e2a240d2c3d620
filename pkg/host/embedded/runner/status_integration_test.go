//go:build integration

package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images/imagestest"
)

func TestCrashLoopIsVisible(t *testing.T) {
	w := newWorld(t)
	w.create(deployment("manager", "--fail=cannot read the configuration"))
	d := w.wait("manager", "in a crash loop", func(d *appsv1.Deployment) bool {
		c := condition(d, appsv1.DeploymentAvailable)
		return c.Reason == "CrashLoopBackOff" && strings.Contains(c.Message, "after 2 restarts")
	})
	if c := condition(d, appsv1.DeploymentAvailable); !strings.Contains(c.Message, "exit code 3") ||
		!strings.Contains(c.Message, "cannot read the configuration") {
		t.Errorf("condition: %+v", c)
	}
	w.warned("manager", "BackOff", "cannot read the configuration")
	w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = nil })
	w.ready("manager")
}

// TestRolloutThatCrashes is to a version that starts and ends: status and events say so with the last lines of its log, the pauses between
// its starts grow, and what the version before had written waits for the next one.
func TestRolloutThatCrashes(t *testing.T) {
	w := newWorld(t)
	w.secret("cloud", map[string]string{"token": "t0ken"})
	d := deployment("manager")
	pod := &d.Spec.Template.Spec
	pod.Volumes = []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cloud"}}},
	}
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "secret", MountPath: "/secret"}}
	w.create(d)
	w.service("manager")
	w.ready("manager")
	before := w.identity("manager")
	volumes := filepath.Join(w.dir, runDir, "default", "manager", "volumes")
	if err := os.WriteFile(filepath.Join(volumes, "data", "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.edit("manager", func(d *appsv1.Deployment) {
		deadline := int32(1)
		d.Spec.ProgressDeadlineSeconds = &deadline
		d.Spec.Template.Spec.Containers[0].Image = newImage
		d.Spec.Template.Spec.Containers[0].Args = []string{"--fail=the schema is of another version"}
	})
	told := func(c appsv1.DeploymentCondition) bool {
		return strings.Contains(c.Message, "exit code 3") && strings.HasSuffix(c.Message, ": starting\nthe schema is of another version")
	}
	got := w.wait("manager", "told to crash, and its rollout to have failed", func(d *appsv1.Deployment) bool {
		available, progressing := condition(d, appsv1.DeploymentAvailable), condition(d, appsv1.DeploymentProgressing)
		return available.Reason == "CrashLoopBackOff" && strings.Contains(available.Message, "after 3 restarts") && told(available) &&
			progressing.Reason == "ProgressDeadlineExceeded" && told(progressing)
	})
	if s := got.Status; s.AvailableReplicas != 0 || s.ReadyReplicas != 0 || s.UnavailableReplicas != 1 || before.Alive() {
		t.Errorf("status: %+v; the version before lives: %v", s, before.Alive())
	}
	crashed := w.current("manager").view().status
	if pause := crashed.NextStart.Sub(crashed.LastExit.At); pause < 2*w.runner.opts.BackOff {
		t.Errorf("after so many ends it is started again after %s", pause)
	}
	w.warned("manager", "BackOff", "the schema is of another version")
	for file, want := range map[string]string{"data/file": "kept", "secret/token": "t0ken"} {
		if raw, err := os.ReadFile(filepath.Join(volumes, file)); string(raw) != want {
			t.Errorf("under the version that crashes %s is %q: %v", file, raw, err)
		}
	}
	w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = nil })
	w.ready("manager")
	if content, _ := w.file(w.resolve("manager.default.svc", "443"), "data/file"); content != "kept" {
		t.Errorf("the next version finds %q", content)
	}
}

func TestBadRolloutKeepsTheOldAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.create(deployment("manager"))
	w.ready("manager")
	before := w.identity("manager")
	w.edit("manager", func(d *appsv1.Deployment) {
		deadline := int32(1)
		d.Spec.ProgressDeadlineSeconds = &deadline
		d.Spec.Template.Spec.Containers[0].Image = "registry.invalid/no/such:image"
	})
	d := w.wait("manager", "told bad", func(d *appsv1.Deployment) bool {
		return condition(d, appsv1.DeploymentProgressing).Reason == "ProgressDeadlineExceeded"
	})
	if c := condition(d, appsv1.DeploymentProgressing); !strings.Contains(c.Message, "registry.invalid/no/such:image") {
		t.Errorf("condition: %+v", c)
	}
	if d.Status.UpdatedReplicas != 0 || d.Status.AvailableReplicas != 1 || w.identity("manager") != before {
		t.Errorf("the old one is gone: %+v", d.Status)
	}
	w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = newImage })
	w.ready("manager")
	if before.Alive() {
		t.Error("the old one still runs")
	}
}

func TestUnreadyIsNotAvailable(t *testing.T) {
	w := newWorld(t)
	w.create(deployment("manager", "--unready"))
	d := w.wait("manager", "told unready", func(d *appsv1.Deployment) bool {
		return strings.Contains(condition(d, appsv1.DeploymentAvailable).Message, "503")
	})
	if d.Status.ReadyReplicas != 0 || d.Status.Replicas != 1 {
		t.Errorf("status: %+v", d.Status)
	}
	w.wait("manager", "told what it said last", func(d *appsv1.Deployment) bool {
		return strings.Contains(condition(d, appsv1.DeploymentAvailable).Message, "its log ends with: listening on")
	})
}

func TestWhatCannotRunIsRefusedByName(t *testing.T) {
	w := newWorld(t)
	sidecar := deployment("sidecar")
	sidecar.Spec.Template.Spec.Containers = append(sidecar.Spec.Template.Spec.Containers, corev1.Container{Name: "proxy", Image: goodImage})
	w.create(sidecar)
	claim := deployment("claim")
	claim.Spec.Template.Spec.Volumes = []corev1.Volume{{
		Name:         "data",
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}},
	}}
	w.create(claim)
	for name, field := range map[string]string{
		"sidecar": "spec.template.spec.containers: there are 2 (manager, proxy)", "claim": "volumes[data].persistentVolumeClaim",
	} {
		d := w.wait(name, "refused", func(d *appsv1.Deployment) bool {
			return condition(d, appsv1.DeploymentReplicaFailure).Status == corev1.ConditionTrue
		})
		c := condition(d, appsv1.DeploymentAvailable)
		if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, field) || !strings.Contains(c.Message, "--host kind") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestImageTrouble(t *testing.T) {
	w := newWorld(t)
	exe, _ := os.Executable()
	err := w.store.Load(t.Context(), imagestest.Archive(t, map[string]imagestest.Image{armImage: {Program: exe, Arch: "mips"}}))
	if err == nil || !strings.Contains(err.Error(), armImage+" is for linux/mips") {
		t.Errorf("wrong architecture: %v", err)
	}
	err = w.store.Load(t.Context(), imagestest.Archive(t, map[string]imagestest.Image{armImage: {Program: exe, Truncated: true, Extra: "t"}}))
	if err == nil || !strings.Contains(err.Error(), armImage) || !strings.Contains(err.Error(), "content has digest") {
		t.Errorf("truncated: %v", err)
	}
	d := deployment("manager")
	d.Spec.Template.Spec.Containers[0].Image = armImage
	d.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
	w.create(d)
	got := w.wait("manager", "told", func(d *appsv1.Deployment) bool { return condition(d, appsv1.DeploymentAvailable).Message != "" })
	if c := condition(got, appsv1.DeploymentAvailable); !strings.Contains(c.Message, armImage) {
		t.Errorf("missing: %+v", c)
	}
}
