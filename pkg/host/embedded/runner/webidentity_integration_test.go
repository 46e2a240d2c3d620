//go:build integration

package runner

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// audiences reads a file with a token that only its owner may read, and returns the token and its audiences.
func (w *world) audiences(file string) (token string, audiences []string) {
	w.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		w.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		w.Errorf("%s: %v, %v", file, info, err)
	}
	parts := strings.Split(string(raw), ".")
	if len(parts) != 3 {
		w.Fatalf("%s has no token", file)
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		w.Fatal(err)
	}
	var says struct {
		Audiences []string `json:"aud"`
	}
	if err := json.Unmarshal(claims, &says); err != nil {
		w.Fatal(err)
	}
	return string(raw), says.Audiences
}

func (w *world) annotateAccount(name string, annotations map[string]string) {
	w.Helper()
	accounts := w.client.CoreV1().ServiceAccounts("default")
	account, err := accounts.Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	account.Annotations = annotations
	if _, err := accounts.Update(w.Context(), account, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// TestWebIdentity: a process finds the token of its ServiceAccount for AWS and for Azure, as a pod does by the clouds' webhooks. The token
// is renewed under the process.
func TestWebIdentity(t *testing.T) {
	const role = "arn:aws:iam::111122223333:role/controllers"
	w := newWorld(t)
	w.stop()
	w.opts.TokenRenewal = time.Second
	w.start()
	w.service("manager")
	w.annotateAccount("manager", map[string]string{awsRole: role, azureClient: "client", azureTenant: "tenant"})
	d := deployment("manager")
	d.Spec.Template.Labels[azureUse] = "true"
	w.create(d)
	w.ready("manager")
	has := w.about(w.resolve("manager.default.svc", "443"))
	for name, want := range map[string]string{"AWS_ROLE_ARN": role, "AZURE_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant"} {
		if got := has.env(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{awsTokenFile: "sts.amazonaws.com", azureTokenFile: azureAudience} {
		token, audiences := w.audiences(has.env(name))
		if !slices.Equal(audiences, []string{want}) {
			t.Errorf("%s is for %v, want %s", name, audiences, want)
		}
		w.wait("manager", "a new token in "+name, func(*appsv1.Deployment) bool {
			now, err := os.ReadFile(has.env(name))
			return err == nil && string(now) != token
		})
	}
}

// TestWebIdentityOfTheManifest: what a manifest says itself counts, and the token that it mounts is the one that the program finds. A
// program without label and annotation gets nothing.
func TestWebIdentityOfTheManifest(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	w.create(deployment("manager"))
	w.ready("manager")
	has := w.about(w.resolve("manager.default.svc", "443"))
	for _, name := range []string{"AWS_ROLE_ARN", awsTokenFile, azureTokenFile, "AZURE_CLIENT_ID"} {
		if got := has.env(name); got != "" {
			t.Errorf("%s is %q without a label or an annotation", name, got)
		}
	}
	w.annotateAccount("manager", map[string]string{awsRole: "arn:aws:iam::111122223333:role/controllers", azureClient: "annotated"})
	w.edit("manager", func(d *appsv1.Deployment) {
		pod := &d.Spec.Template
		pod.Labels[azureUse] = "true"
		pod.Spec.Volumes = []corev1.Volume{{Name: "azure", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Path: "azure-identity-token", Audience: azureAudience,
			}}},
		}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "azure", MountPath: "/var/run/secrets/azure/tokens"}}
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "AWS_ROLE_ARN", Value: "mine"}, {Name: "AZURE_CLIENT_ID", Value: "mine"}}
	})
	w.ready("manager")
	has = w.about(w.resolve("manager.default.svc", "443"))
	if has.env("AWS_ROLE_ARN") != "mine" || has.env(awsTokenFile) != "" || has.env("AZURE_CLIENT_ID") != "mine" {
		t.Errorf("what the manifest says does not count: %v", has.Env)
	}
	file := has.env(azureTokenFile)
	if _, audiences := w.audiences(file); !slices.Equal(audiences, []string{azureAudience}) ||
		!strings.HasSuffix(file, "/volumes/azure/azure-identity-token") {
		t.Errorf("%s is for %v", file, audiences)
	}
}
