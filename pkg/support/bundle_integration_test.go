//go:build integration

package support

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
	"github.com/fleetctl/fleetctl/pkg/status"
)

// logFolder is a host's logs: files of a folder.
type logFolder string

func (l logFolder) Logs() ([]string, error) {
	entries, err := os.ReadDir(string(l))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (l logFolder) Log(name string) (*os.File, error) {
	return os.Open(filepath.Join(string(l), name))
}

// TestCanary hides one secret in every place where a real cluster, its host and its fleet repo may have a secret. The bundle has everything
// except this secret.
func TestCanary(t *testing.T) {
	client, kubeconfig := kubetest.Start(t)
	ctx := t.Context()
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"stringData":{"plain":"` + canary + `"}}`,
			"from": "https://x:" + canary + "@git.example.com/fleet.git",
		}}
	}
	if err := client.Create(ctx, &corev1.Secret{
		ObjectMeta: meta("cloud"),
		StringData: map[string]string{"plain": canary, "kubeconfig": string(kubeconfig), "namespace": "kube-system"},
	}); err != nil {
		t.Fatal(err)
	}
	if err := client.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: meta("config"),
		Data:       map[string]string{"innocent": "it is " + canary, "coded": encoded, "script": "#!/bin/sh\nexport X=" + canary},
	}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: meta("web"), Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "web", Image: "example.com/web:v1", Args: []string{"--session", canary},
		Env: []corev1.EnvVar{{Name: "DATABASE", Value: "postgres://u:" + canary + "@db/x"}},
	}}}}
	if err := client.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}); err != nil {
		t.Log(err) // its controller may have been there
	}
	if err := client.Create(ctx, pod); err != nil {
		t.Fatal(err)
	}
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e1"}, Type: "Warning", Reason: "FailedClone",
		Message:        "clone with " + canary + " failed",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "web"},
	}
	if err := client.Create(ctx, event); err != nil {
		t.Fatal(err)
	}
	logs := t.TempDir()
	if err := os.WriteFile(filepath.Join(logs, "etcd"), []byte("started\nlogged in as x with "+canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	result, err := Write(ctx, file, Sources{
		Name: "mgmt", Status: status.Sources{Cluster: status.Cluster{Name: "mgmt", State: "running"}, Client: client}, Logs: logFolder(logs),
		Files: map[string][]byte{"fleet.yaml": []byte(
			"spec:\n  variables:\n  - name: AWS_B64ENCODED_CREDENTIALS\n    value: " + canary + "\n  git: {url: \"https://x:" + canary +
				"@h/y\"}\n"), "broken.yaml": []byte("a: [\npassword: " + canary)},
		Failure: "clone https://x:" + canary + "@git.example.com: denied",
	})
	if err != nil {
		t.Fatal(err)
	}
	entries := unpack(t, file)
	for name, content := range entries {
		for _, secret := range []string{canary, encoded} {
			if strings.Contains(content, secret) || strings.Contains(name, secret) {
				t.Errorf("%s has the secret:\n%.2000s", name, content)
			}
		}
		for line := range strings.SplitSeq(string(kubeconfig), "\n") {
			if key, value, ok := strings.Cut(line, "client-key-data: "); ok && strings.Contains(content, value) {
				t.Errorf("%s has %s", name, key)
			}
		}
	}
	for name, has := range map[string]string{
		"support-bundle/README.txt": "denied", "support-bundle/events.txt": "FailedClone", "support-bundle/logs/etcd.log": "logged in",
		"support-bundle/objects/core/Secret.yaml": "plain: " + Redacted,
		"support-bundle/objects/core/Pod.yaml":    "example.com/web:v1", "support-bundle/versions.json": `"fleetctl"`,
		"support-bundle/status.json": "none are installed", "support-bundle/objects/core/Namespace.yaml": "name: kube-system",
		"support-bundle/files/fleet.yaml": "AWS_B64ENCODED_CREDENTIALS", "support-bundle/files/broken.yaml": Redacted,
	} {
		if !strings.Contains(entries[name], has) {
			t.Errorf("%s lacks %q:\n%.1500s", name, has, entries[name])
		}
	}
	if len(result.Unread) > 0 || len(result.Entries) != len(entries) || result.Bytes == 0 {
		t.Errorf("%+v", result)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("beside it: %v, %v", left, err)
	}
	if !slices.Contains(result.Entries, "support-bundle/README.txt") {
		t.Errorf("entries: %q", result.Entries)
	}
}
