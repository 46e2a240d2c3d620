// Package releasestest provides small releases of providers and cert-manager for tests.
package releasestest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Repository makes a provider repository with small components of all providers that Install needs.
func Repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for label, file := range map[string]string{
		"cluster-api":           "core-components.yaml",
		"bootstrap-kubeadm":     "bootstrap-components.yaml",
		"control-plane-kubeadm": "control-plane-components.yaml",
		"infrastructure-docker": "infrastructure-components-development.yaml",
		"infrastructure-aws":    "infrastructure-components.yaml",
	} {
		content := strings.ReplaceAll(Components, "NAME", strings.ReplaceAll(label, "-", ""))
		if label == "infrastructure-aws" {
			content += Secret
		}
		WriteFile(t, filepath.Join(root, label, "v1.14.2", file), content)
		WriteFile(t, filepath.Join(root, label, "v1.14.2", "metadata.yaml"), Metadata)
	}
	WriteFile(t, filepath.Join(root, "cert-manager", "v1.11.5", "cert-manager.yaml"), CertManager)
	return root
}

// WriteFile writes a file and makes its folder.
func WriteFile(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Metadata is the metadata of a provider whose v1.14 releases work with this Cluster API.
const Metadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 14, contract: v1beta2}
`

// Components are the components of a provider, with NAME instead of the provider's name.
const Components = `apiVersion: v1
kind: Namespace
metadata: {name: NAME-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME-manager, namespace: NAME-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: NAMEs.test.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta2: v1}
  annotations: {clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check: ""}
spec:
  group: test.cluster.x-k8s.io
  names: {kind: NAME, listKind: NAMEList, plural: NAMEs, singular: NAME}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: NAME-issuer, namespace: NAME-system}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: NAME-cert, namespace: NAME-system}
spec: {secretName: NAME-tls, dnsNames: [NAME.NAME-system.svc], issuerRef: {name: NAME-issuer}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME-manager, namespace: NAME-system}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - {name: manager, image: "example.com/NAME:v1", args: ["--v=${LOG_LEVEL:=0}"]}
`

// Secret is a component of the provider aws with a variable that has no default.
const Secret = `---
apiVersion: v1
kind: Secret
metadata: {name: credentials, namespace: infrastructureaws-system}
data: {credentials: "${AWS_B64ENCODED_CREDENTIALS}"}
`

// CertManager is a small manifest of cert-manager v1.11.5.
var CertManager = `apiVersion: v1
kind: Namespace
metadata: {name: cert-manager}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: cert-manager-webhook}
---
` + certManagerCRD("Certificate") + certManagerCRD("Issuer") + `apiVersion: apps/v1
kind: Deployment
metadata: {name: cert-manager-webhook, namespace: cert-manager}
spec:
  selector: {matchLabels: {app: webhook}}
  template:
    metadata: {labels: {app: webhook}}
    spec: {containers: [{name: webhook, image: "quay.io/jetstack/cert-manager-webhook:v1.11.5"}]}
`

// certManagerCRD is the document of a CRD of cert-manager that takes every object.
func certManagerCRD(kind string) string {
	return strings.NewReplacer("KIND", kind, "NAME", strings.ToLower(kind)).Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: NAMEs.cert-manager.io}
spec:
  group: cert-manager.io
  names: {kind: KIND, listKind: KINDList, plural: NAMEs, singular: NAME}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
`)
}
