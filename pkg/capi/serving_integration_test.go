//go:build integration

package capi

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

const convertedCRD = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: converteds.test.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta2: v1}
  annotations:
    clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check: ""
    cert-manager.io/inject-ca-from: infrastructuredocker-system/infrastructuredocker-cert
spec:
  group: test.cluster.x-k8s.io
  names: {kind: Converted, listKind: ConvertedList, plural: converteds, singular: converted}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: hook, namespace: infrastructuredocker-system, path: /convert}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: first, x-kubernetes-preserve-unknown-fields: true}}
`

// TestServing checks that a provider's CRD is written only once, with the certificate of the provider's webhook server and the mark of a
// first generation, and that an upgrade keeps the certificate and not the mark.
func TestServing(t *testing.T) {
	root := newRepository(t)
	file := filepath.Join(root, "infrastructure-docker", "v1.14.2", "infrastructure-components-development.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	releasestest.WriteFile(t, file, string(content)+convertedCRD)
	m, c, source := newManagementFrom(t, root)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, label := range labels {
		addRelease(t, root, label, "v1.14.1", "description: first", "description: zeroth")
	}
	wanted := resolve(t, source, allProviders)
	look := func() (crd *apiextensionsv1.CustomResourceDefinition, ca []byte) {
		t.Helper()
		crd, secret := &apiextensionsv1.CustomResourceDefinition{}, &corev1.Secret{}
		if err := c.Get(ctx, kube.Key{Name: "converteds.test.cluster.x-k8s.io"}, crd); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(ctx, kube.Key{Namespace: "infrastructuredocker-system", Name: "infrastructuredocker-tls"}, secret); err != nil {
			t.Fatal(err)
		}
		if got := crd.Spec.Conversion.Webhook.ClientConfig.CABundle; len(got) == 0 || !bytes.Equal(got, secret.Data["ca.crt"]) {
			t.Errorf("the CRD trusts %q; the Secret has %q", got, secret.Data["ca.crt"])
		}
		return crd, secret.Data["ca.crt"]
	}

	if _, err := m.Install(ctx, source, InstallOptions{Providers: withVersion(wanted, "v1.14.1")}); err != nil {
		t.Fatal(err)
	}
	crd, first := look()
	if mark := crd.Annotations[clusterv1.CRDMigrationObservedGenerationAnnotation]; crd.Generation != 1 || mark != "1" {
		t.Errorf("generation %d with the mark of generation %q", crd.Generation, mark)
	}

	upgrade := InstallOptions{Providers: wanted, BeforeUpgrade: func(context.Context, []releases.Upgrade) error { return nil }}
	if _, err := m.Install(ctx, source, upgrade); err != nil {
		t.Fatal(err)
	}
	crd, second := look()
	if crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description != "first" || !bytes.Equal(first, second) {
		t.Errorf("upgraded to %v; same certificate: %v", crd.Spec.Versions[0].Schema, bytes.Equal(first, second))
	}
	if mark := crd.Annotations[clusterv1.CRDMigrationObservedGenerationAnnotation]; mark != "" || crd.Generation != 2 {
		t.Errorf("generation %d with the mark of generation %q", crd.Generation, mark)
	}
}

// TestServingWithSecrets checks an installation into namespaces that have Secrets of the same names: one that a killed installation has
// made, and one whose authority is no certificate. The first is used. With the second in a CRD, the API server would not serve the CRD.
func TestServingWithSecrets(t *testing.T) {
	root := newRepository(t)
	add := func(file, manifest string) {
		t.Helper()
		file = filepath.Join(root, file)
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		releasestest.WriteFile(t, file, string(content)+manifest)
	}
	add("infrastructure-docker/v1.14.2/infrastructure-components-development.yaml", convertedCRD)
	add("bootstrap-kubeadm/v1.14.2/bootstrap-components.yaml", strings.NewReplacer(
		"infrastructuredocker", "bootstrapkubeadm", "converted", "other", "Converted", "Other").Replace(convertedCRD))
	m, c, source := newManagementFrom(t, root)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	left := map[string][]byte{}
	for _, name := range []string{"infrastructuredocker", "bootstrapkubeadm"} {
		objects := parse(t, strings.ReplaceAll(releasestest.Components, "NAME", name))
		for _, obj := range objects {
			spec, ok := selfSigned(obj, objects)
			if !ok {
				continue
			}
			secret, err := issue(obj, spec)
			if err != nil {
				t.Fatal(err)
			}
			if name == "bootstrapkubeadm" {
				secret.Data[authorityKey] = []byte("none")
			}
			left[name] = secret.Data[authorityKey]
			if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: secret.Namespace}}); err != nil {
				t.Fatal(err)
			}
			if err := c.Create(ctx, secret); err != nil {
				t.Fatal(err)
			}
		}
	}

	if _, err := m.Install(ctx, source, InstallOptions{Providers: resolve(t, source, allProviders)}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{"converteds": left["infrastructuredocker"], "others": nil} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, kube.Key{Name: name + ".test.cluster.x-k8s.io"}, crd); err != nil {
			t.Fatal(err)
		}
		if got := crd.Spec.Conversion.Webhook.ClientConfig.CABundle; !bytes.Equal(got, want) {
			t.Errorf("%s trusts %q, want %q", name, got, want)
		}
	}
	for name, want := range left {
		secret := &corev1.Secret{}
		if err := c.Get(ctx, kube.Key{Namespace: name + "-system", Name: name + "-tls"}, secret); err != nil {
			t.Fatal(err)
		}
		if got := secret.Data[authorityKey]; !bytes.Equal(got, want) {
			t.Errorf("the Secret of %s has changed to %q", name, got)
		}
	}
}
