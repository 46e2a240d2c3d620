package support

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/guises"
)

// canary is what must not come out.
const canary = "C4nary-0f-Coalmine"

// TestCanaryInTexts: however a secret stands in a line of a log, an event or a script.
func TestCanaryInTexts(t *testing.T) {
	r := NewRedactor(nil, nil)
	for _, text := range []string{
		"password=" + canary, "PASSWORD: " + canary, `{"password":"` + canary + `","x":1}`, `{\"token\":\"` + canary + `\"}`, "--token " + canary,
		"--client-secret=" + canary, "-password '" + canary + " and more'",
		"export AWS_SECRET_ACCESS_KEY=" + canary, "AZURE_CLIENT_SECRET='" + canary + "'", "https://me:" + canary + "@git.example.com/fleet.git",
		"https://" + canary + "@git.example.com/fleet.git",
		"clone https://example.com/x?access_token=" + canary + "&y=1: failed", "https://blob.example.com/c?sv=1&sig=" + canary,
		"Authorization: Bearer " + canary, "authorization: Basic " + canary, "bearer " + canary + "==",
		"-----BEGIN RSA PRIVATE KEY-----\n" + canary + "\n-----END RSA PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary,
		"a: 1\npassword: |\n  first\n  " + canary + "\n\n  " + canary + "\nb: 2", "users:\n- user:\n    client-key-data: " + canary + "\n",
		"apiKey = \"a \\\" " + canary + "\"", "kubeadm join --discovery-token " + canary,
		"kubeadm join --token abcdef.0123456789abcdef --certificate-key " + canary,
		"connectionString: Server=x;Password=" + canary, "ssh-key: " + canary,
	} {
		if got := r.Text(text); strings.Contains(got, canary) || strings.Contains(got, "abcdef.0123456789abcdef") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, shape := range []string{
		"AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", "ghp_0123456789abcdefghijABCDEFGHIJ", "glpat-0123456789abcdefghij",
		"AKIA0123456789ABCDEF",
		"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl",
	} {
		if got := r.Text("it said " + shape + " and ended"); strings.Contains(got, shape) {
			t.Errorf("%q is shown", shape)
		}
	}
}

// Text that is no secret stays, because a bundle without text helps nobody.
func TestWhatStays(t *testing.T) {
	r := NewRedactor([][]byte{[]byte("flux-system"), []byte("short"), []byte("kind: Config")}, map[string]bool{"flux-system": true})
	for _, text := range []string{
		"failed to create vpc: UnauthorizedOperation: You are not authorized to perform this operation", "Flux in flux-system is short of memory",
		"dial tcp 10.0.0.1:443: connect: connection refused",
		"clone https://git.example.com/fleet.git: repository not found", "pod capi-system/capi-controller-manager-0",
		"main@sha1:0123456789abcdef0123456789abcdef01234567", "kind: Config",
	} {
		if got := r.Text(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestCanaryInObjects: wherever a secret can stand in an object.
func TestCanaryInObjects(t *testing.T) {
	r := NewRedactor([][]byte{[]byte(canary)}, nil)
	blind := NewRedactor(nil, nil) // it knows no Secret
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	for name, object := range map[string]string{
		"Secret":         `{apiVersion: v1, kind: Secret, metadata: {name: x}, data: {anything: %[2]q}}`,
		"Secret, clear":  `{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {anything: %[1]q}}`,
		"last applied":   `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"data":{"x":"%[1]s"}}'}}}`,
		"variable":       `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, env: [{name: DB_PASSWORD, value: %[1]q}]}]}}`,
		"argument":       `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, args: [--token, %[1]q]}]}}`,
		"argument, one":  `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, args: ["--api-key=%[1]s"]}]}}`,
		"a script":       `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, command: [sh, -c, "TOKEN=%[1]s run"]}]}}`,
		"values":         `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: x}, spec: {values: {database: {adminPassword: %[1]q}}}}`,
		"below a name":   `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {credentials: {first: %[1]q, more: [{deep: %[1]q}]}}}`,
		"a number":       `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {password: 424242}}`,
		"annotation":     `{apiVersion: v1, kind: Namespace, metadata: {name: x, annotations: {source: "https://u:%[1]s@git.example.com/x"}}}`,
		"kubeconfig":     `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {config: "apiVersion: v1\nkind: Config\nclusters: []\ncurrent-context: a\nusers:\n- user: {token: %[1]s}\n"}}`,
		"machine's file": `{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, metadata: {name: x}, spec: {files: [{path: /etc/cloud.conf, content: "key=%[1]s"}]}}`,
		"bootstrap":      `{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, metadata: {name: x}, spec: {joinConfiguration: {discovery: {bootstrapToken: {token: %[1]q}}}}}`,
		"user's":         `{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, metadata: {name: x}, spec: {users: [{name: a, passwd: %[1]q}]}}`,
		"commands":       `{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfig, metadata: {name: x}, spec: {preKubeadmCommands: ["curl -u me --password %[1]s https://x"]}}`,
		"status":         `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, status: {conditions: [{type: Ready, message: "cannot log in with password: %[1]s"}]}}`,
		"header":         `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {headers: [{name: Authorization, value: %[1]q}]}}`,
		"user data":      `{apiVersion: example.com/v1, kind: Thing, metadata: {name: x}, spec: {userData: %[2]q}}`,
	} {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(with(object, encoded)), &content); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for how, redactor := range map[string]*Redactor{"known": r, "unknown": blind} {
			out, err := yaml.Marshal(redactor.Object(&unstructured.Unstructured{Object: content}).Object)
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{canary, encoded, "424242"} {
				if strings.Contains(string(out), secret) {
					t.Errorf("%s, %s:\n%s", name, how, out)
				}
			}
		}
	}
	// No trace of a Secret's value is left, under any name and in any form.
	for name, object := range map[string]string{
		"plain": `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {innocent: "it is %[1]s"}}`,
		"coded": `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {innocent: "it is %[2]s"}}`,
		"key":   `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {x: %[1]q}}, data: {"%[1]s": x}}`,
	} {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(with(object, encoded)), &content); err != nil {
			t.Fatal(err)
		}
		out, err := yaml.Marshal(r.Object(&unstructured.Unstructured{Object: content}).Object)
		if err != nil || strings.Contains(string(out), canary) || strings.Contains(string(out), encoded) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// with puts the canary, and its encoded form, into a text.
func with(text, encoded string) string {
	return strings.NewReplacer("%[1]q", strconv.Quote(canary), "%[1]s", canary, "%[2]q", strconv.Quote(encoded),
		"%[2]s", encoded).Replace(text)
}

// References stay: the objects that a Cluster names are half of a diagnosis.
func TestReferencesStay(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x", "namespace": "n"},
		"spec": map[string]any{
			"secretRef": map[string]any{"name": "cloud"}, "secretName": "tls", "dataSecretName": "boot",
			"identityRef":      map[string]any{"kind": "AWSClusterStaticIdentity", "name": "id"},
			"imagePullSecrets": []any{map[string]any{"name": "pull"}}, "automountServiceAccountToken": true,
		},
	}}
	out, err := yaml.Marshal(NewRedactor(nil, nil).Object(obj).Object)
	if err != nil || strings.Contains(string(out), Redacted) {
		t.Errorf("%v\n%s", err, out)
	}
}

// A Secret may hold a whole document, of which only one value stands elsewhere; and a password may have any character in it.
func TestPartsOfSecrets(t *testing.T) {
	r := NewRedactor([][]byte{
		[]byte(`{"auths":{"registry.example":{"username":"robot-one","password":"pulls-a-lot-42","auth":"cm9ib3Qtb25lOnB1bGxzLWEtbG90LTQy"}}}`),
		[]byte("{\n  \"nested\": [\n    {\"k\": \"deep-in-a-list\"}\n  ]\n}\n"),
	}, nil)
	for text, secret := range map[string]string{
		"pull failed for pulls-a-lot-42 at registry": "pulls-a-lot-42",
		"it says deep-in-a-list here":                "deep-in-a-list",
		"password=Ab1,RestOfIt&more;x":               "RestOfIt",
		"token: abc[def]{ghi}":                       "ghi",
	} {
		if got := r.Text(text); strings.Contains(got, secret) {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// A log or an event may have the value of a Secret in another form than the Secret.
func TestFormsOfSecrets(t *testing.T) {
	const key = `C4nary+/&<>"\\0f%Coalmine`
	r := NewRedactor([][]byte{[]byte(key), []byte("profile: " + strings.Repeat("x", 40) + key + "\n")}, nil)
	profile := base64.StdEncoding.EncodeToString([]byte("[default]\naws_secret_access_key = " + key + "\nregion = eu-central-1\n"))
	quoted, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"JSON": string(quoted), "Go": strconv.Quote(key), "query": url.QueryEscape(key), "path": url.PathEscape(key),
		"hexadecimal": hex.EncodeToString([]byte(key)), "base64 of a longer text": profile, "no padding": strings.TrimRight(profile, "="),
		"wrapped": profile[:76] + "\n" + profile[76:], "short lines": profile[:40] + "\n  " + profile[40:80] + "\n  " + profile[80:],
		"wrapped, in JSON": profile[:76] + `\n` + profile[76:], "CRLF": profile[:64] + "\r\n" + profile[64:],
	} {
		if got := r.Text("it sent " + text + " and failed"); guises.In(got, 8, key) || !strings.Contains(got, "and failed") {
			t.Errorf("%s: %q", name, got)
		}
	}
	digests := "sha256:\n" + strings.Repeat("0123456789abcdef", 4) + "\n" + strings.Repeat("fedcba9876543210", 4) + "\nend"
	if got := r.Text(digests); got != digests {
		t.Errorf("%q", got)
	}
}
