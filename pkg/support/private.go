package support

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// unseenSecrets says that logs and other texts may show what a Secret holds.
const unseenSecrets = "Secrets: their values could not be read, so logs and other texts in the bundle may show some of them"

// secretValues are the secret values of a Secret. The Secrets of Helm are compressed, and their secrets appear nowhere else in that form.
func secretValues(obj *unstructured.Unstructured) [][]byte {
	if obj.GetKind() != "Secret" || obj.GroupVersionKind().Group != "" {
		return nil
	}
	if kind, _, _ := unstructured.NestedString(obj.Object, "type"); kind == "helm.sh/release.v1" {
		return nil
	}
	raw, err := json.Marshal(map[string]any{"data": obj.Object["data"]})
	if err != nil {
		return nil
	}
	var secret corev1.Secret
	if err := json.Unmarshal(raw, &secret); err != nil {
		return nil
	}
	var out [][]byte
	for _, name := range sortedNames(secret.Data) {
		// These are public.
		if !slices.Contains([]string{"ca.crt", "tls.crt", "known_hosts", "identity.pub", "namespace", "service-ca.crt"}, name) {
			out = append(out, secret.Data[name])
		}
	}
	return out
}

// privateValues are the values under names of secrets in documents.
func privateValues(documents [][]byte) [][]byte {
	var out [][]byte
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for field, inner := range v {
				walk(field, inner)
			}
		case []any:
			for _, inner := range v {
				walk(name, inner)
			}
		case string:
			if hides(name) {
				out = append(out, []byte(v))
			}
		}
	}
	for _, d := range documents {
		var v any
		if err := yaml.Unmarshal(d, &v); err == nil {
			walk("", v)
		}
	}
	return out
}
