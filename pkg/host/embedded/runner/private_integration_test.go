//go:build integration

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images/imagestest"
)

// TestPrivateImageWithAPullSecret: an image by digest from a registry that asks who wants it, with a Secret that comes later.
func TestPrivateImageWithAPullSecret(t *testing.T) {
	const password = "s3cret-of-the-registry"
	w := newWorld(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	registry := imagestest.Registry(t, password)
	digest := imagestest.PushProgram(t, registry+"/team/manager:v1", password, exe)
	d := deployment("manager")
	d.Spec.Template.Spec.Containers[0].Image = registry + "/team/manager@" + digest
	d.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	w.create(d)
	got := w.wait("manager", "refused by the registry", func(d *appsv1.Deployment) bool {
		return condition(d, appsv1.DeploymentAvailable).Reason == "CannotStart"
	})
	if c := condition(got, appsv1.DeploymentAvailable); !strings.Contains(c.Message, digest) {
		t.Errorf("the image is not named: %+v", c)
	}
	login, err := json.Marshal(
		map[string]any{"auths": map[string]any{registry: map[string]string{"username": imagestest.User, "password": password}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: login},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.ready("manager")
	w.nowhere(password)
}

// TestSecretsStayOutOfSight: what a Secret gives to the environment is in the environment of that one process, and not on disk, in
// arguments, in logs or in events.
func TestSecretsStayOutOfSight(t *testing.T) {
	const token = "t0ken-of-a-cloud"
	t.Setenv("SECRET_OF_THE_USER", token+"-of-ours")
	w := newWorld(t)
	w.secret("cloud", map[string]string{"token": token})
	w.service("manager")
	d := deployment("manager")
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "CLOUD_TOKEN", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "cloud"}, Key: "token"},
	}}}
	w.create(d)
	w.service("other")
	w.create(deployment("other"))
	w.ready("manager")
	w.ready("other")
	has := w.about(w.resolve("manager.default.svc", "443"))
	if has.env("CLOUD_TOKEN") != token || has.env("SECRET_OF_THE_USER") != "" {
		t.Errorf("environment: %v", has.Env)
	}
	if other := w.about(w.resolve("other.default.svc", "443")); strings.Contains(strings.Join(other.Env, " "), token) {
		t.Errorf("another process has it, too: %v", other.Env)
	}
	w.nowhere(token)
}

// nowhere requires that a secret is in no file of the runner, no process's arguments and no event.
func (w *world) nowhere(secret string) {
	w.Helper()
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(secret)) {
			w.Errorf("it is in %s", path)
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	arguments, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(w.identity("manager").PID), "cmdline"))
	if err != nil || bytes.Contains(arguments, []byte(secret)) {
		w.Errorf("arguments: %q, %v", arguments, err)
	}
	events, err := w.client.CoreV1().Events("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range events.Items {
		if strings.Contains(e.Message, secret) {
			w.Errorf("event: %s", e.Message)
		}
	}
}

// TestImageIsBesideTheMountsInItsRoot: a program that starts in / finds its image's files by relative paths.
func TestImageIsBesideTheMountsInItsRoot(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	w.secret("cert", map[string]string{"tls.crt": "first"})
	d := deployment("manager")
	d.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cert", MountPath: "/extra/certs"}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{
		Name:         "cert",
		VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cert"}},
	}}
	w.create(d)
	w.ready("manager")
	want := []string{"extra", "manager", "tmp"}
	if found := w.about(w.resolve("manager.default.svc", "443")).Root; !slices.Equal(found, want) {
		t.Errorf("in its root: %v, want %v", found, want)
	}
	// Without the mount the image's own file of that name is there; with another one that is gone again.
	for _, mount := range []string{"/elsewhere", "/manager/certs"} {
		w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].VolumeMounts[0].MountPath = mount })
		w.ready("manager")
		raw, err := os.ReadFile(filepath.Join(w.dir, runDir, "default", "manager", rootDir, mount, "tls.crt"))
		if err != nil || string(raw) != "first" {
			t.Errorf("mounted at %s: %q, %v", mount, raw, err)
		}
	}
}
