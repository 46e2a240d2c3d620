//go:build integration

package runner

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images/imagestest"
)

func (w *world) configMap(name string, data map[string]string) {
	w.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	if _, err := w.client.CoreV1().ConfigMaps("default").Create(w.Context(), c, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// file is what a manager reads at a path relative to the folder that it was started in; ok is false if it can not.
func (w *world) file(address, name string) (content string, ok bool) {
	w.Helper()
	resp, err := http.Get("http://" + address + "/file?name=" + url.QueryEscape(name))
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return string(raw), resp.StatusCode == http.StatusOK
}

// fillEnv gives a container variables of each kind, and returns what the program has to have of them; "" is not set.
func fillEnv(c *corev1.Container) map[string]string {
	yes := true
	c.Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("64Mi")}
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	c.EnvFrom = []corev1.EnvFromSource{
		{Prefix: "CONFIG_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("config")}},
		{Prefix: "CLOUD_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("cloud")}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: named("none"), Optional: &yes}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: named("none"), Optional: &yes}},
	}
	for name, from := range map[string]corev1.EnvVarSource{
		"LABEL":       {FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}},
		"ACCOUNT":     {FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.serviceAccountName"}},
		"CPUS":        {ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}},
		"MEBIBYTES":   {ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}},
		"COLOUR":      {ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("config"), Key: "colour"}},
		"TOKEN":       {SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("cloud"), Key: "token"}},
		"NO_CONFIG":   {ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("none"), Key: "colour", Optional: &yes}},
		"NO_KEY":      {ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("config"), Key: "size", Optional: &yes}},
		"NO_SECRET":   {SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("none"), Key: "token", Optional: &yes}},
		"CONFIG_form": {ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: named("config"), Key: "form"}},
	} {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, ValueFrom: &from})
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: "CLOUD_user", Value: "somebody else"}, corev1.EnvVar{Name: "SUB", Value: "deep/er"})
	return map[string]string{
		"CONFIG_colour": "blue", "CONFIG_form": "round", "CLOUD_token": "t0ken", "CLOUD_user": "somebody else",
		"LABEL": "all", "ACCOUNT": "manager", "CPUS": "2", "MEBIBYTES": "64", "COLOUR": "blue", "TOKEN": "t0ken",
		"NO_CONFIG": "", "NO_KEY": "", "NO_SECRET": "", "colour": "", "token": "",
	}
}

// volumeKinds are volumes of each kind by where they are mounted.
func volumeKinds(host string) map[string]corev1.VolumeSource {
	yes, create := true, corev1.HostPathDirectoryOrCreate
	config := corev1.LocalObjectReference{Name: "config"}
	labels := corev1.DownwardAPIVolumeFile{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}}
	memory := corev1.DownwardAPIVolumeFile{
		Path: "memory", ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: "manager", Resource: "limits.memory"},
	}
	return map[string]corev1.VolumeSource{
		"config": {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: config}},
		"items": {ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: config, Items: []corev1.KeyToPath{{Key: "colour", Path: "of/it"}},
		}},
		"secret":   {Secret: &corev1.SecretVolumeSource{SecretName: "cloud", Items: []corev1.KeyToPath{{Key: "token", Path: "key"}}}},
		"optional": {Secret: &corev1.SecretVolumeSource{SecretName: "none", Optional: &yes}},
		"downward": {DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{labels, memory}}},
		"projected": {Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: config, Items: []corev1.KeyToPath{{Key: "form", Path: "config/form"}}}},
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "cloud"}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{labels}}},
		}}},
		"scratch": {EmptyDir: &corev1.EmptyDirVolumeSource{}},
		"host":    {HostPath: &corev1.HostPathVolumeSource{Path: host}},
		"made":    {HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(host, "made", "here"), Type: &create}},
	}
}

// TestWhatAProgramSees: one Deployment with each kind of variable and volume.
func TestWhatAProgramSees(t *testing.T) {
	w := newWorld(t)
	w.configMap("config", map[string]string{"colour": "blue", "form": "round"})
	w.secret("cloud", map[string]string{"token": "t0ken", "user": "me"})
	w.service("all")
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "file"), []byte("of this machine"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := deployment("all", "--peer-addr=/mnt/config/colour")
	pod := &d.Spec.Template.Spec
	c := &pod.Containers[0]
	env := fillEnv(c)
	kinds := volumeKinds(host)
	for _, name := range sortedKeys(kinds) {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: kinds[name]})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/mnt/" + name})
	}
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: "config", MountPath: "/etc/one/colour.txt", SubPath: "colour"},
		corev1.VolumeMount{Name: "scratch", MountPath: "/var/part", SubPathExpr: "$(SUB)"},
	)
	w.create(d)
	w.ready("all")
	part := filepath.Join(w.dir, runDir, "default", "all", "volumes", "scratch", "deep", "er")
	if err := os.WriteFile(filepath.Join(part, "file"), []byte("kept"), 0o600); err != nil {
		t.Errorf("subPath: %v", err)
	}
	address := w.resolve("all.default.svc", "443")
	has := w.about(address)
	for name, want := range env {
		set := slices.ContainsFunc(has.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if got := has.env(name); got != want || set != (want != "") {
			t.Errorf("%s is %q (set: %v), want %q", name, got, set, want)
		}
	}
	if raw, err := os.ReadFile(has.Peer); string(raw) != "blue" {
		t.Errorf("the path in its arguments: %q: %v", has.Peer, err)
	}
	want := map[string]string{
		"mnt/config/colour": "blue", "mnt/config/form": "round", "mnt/items/of/it": "blue", "mnt/secret/key": "t0ken",
		"mnt/downward/labels": `app="all"`, "mnt/downward/memory": "67108864",
		"mnt/projected/config/form": "round", "mnt/projected/token": "t0ken", "mnt/projected/user": "me", "mnt/projected/labels": `app="all"`,
		"etc/one/colour.txt": "blue", "var/part/file": "kept", "mnt/scratch/deep/er/file": "kept", "mnt/host/file": "of this machine",
	}
	got := map[string]string{}
	for name := range want {
		got[name], _ = w.file(address, name)
	}
	if !maps.Equal(got, want) {
		t.Errorf("files: %q, want %q", got, want)
	}
	for _, name := range []string{"mnt/items/colour", "mnt/secret/user", "mnt/optional/token", "mnt/projected/colour"} {
		if content, ok := w.file(address, name); ok {
			t.Errorf("%s is there: %q", name, content)
		}
	}
	if info, err := os.Stat(filepath.Join(host, "made", "here")); err != nil || !info.IsDir() {
		t.Errorf("hostPath that is to be made: %v", err)
	}
}

// TestImageSaysHowToStart: entrypoint, arguments and working folder come from the image where the manifest has none, and a program that
// wants no token gets none.
func TestImageSaysHowToStart(t *testing.T) {
	const image = "registry.example.com/test/manager:of-its-own"
	w := newWorld(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	archive := imagestest.Archive(t, map[string]imagestest.Image{image: {
		Program: exe,
		Cmd:     []string{"--peer-addr=of the image"}, WorkingDir: "/data",
	}})
	if err := w.store.Load(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	w.configMap("config", map[string]string{"colour": "blue"})
	w.service("manager")
	no := false
	d := deployment("manager")
	pod := &d.Spec.Template.Spec
	pod.AutomountServiceAccountToken = &no
	pod.Volumes = []corev1.Volume{{Name: "data", VolumeSource: volumeKinds("")["config"]}}
	c := &pod.Containers[0]
	c.Image, c.Command, c.Args = image, nil, nil
	c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	w.create(d)
	for _, step := range []struct {
		args       []string
		workingDir string
		peer, file string
	}{
		{nil, "", "of the image", "colour"},
		{[]string{"--peer-addr=of the manifest"}, "", "of the manifest", "colour"},
		{nil, "/", "of the image", "data/colour"},
	} {
		w.edit("manager", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Args, d.Spec.Template.Spec.Containers[0].WorkingDir = step.args, step.workingDir
		})
		w.ready("manager")
		address := w.resolve("manager.default.svc", "443")
		has := w.about(address)
		if content, _ := w.file(address, step.file); has.Peer != step.peer || content != "blue" {
			t.Errorf("%+v: peer %q, file %q", step, has.Peer, content)
		}
		if has.env("KUBECONFIG") != "" {
			t.Errorf("it has a token: %v", has.Env)
		}
	}
}
