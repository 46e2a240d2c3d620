package capi

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

const servingIssuer = `
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: own, namespace: a}, spec: {selfSigned: {}}}
---
`

func parse(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := kube.ParseYAML([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// The certificate must fit what cert-manager checks of a Secret that it finds: key, names, issuer, and time.
func TestIssue(t *testing.T) {
	objects := parse(t, servingIssuer+`
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving, namespace: a}
spec:
  dnsNames: [hook.a.svc, hook.a.svc.cluster.local]
  issuerRef: {kind: Issuer, name: own}
  secretName: hook-cert
  subject: {organizations: [some]}
`)
	spec, ok := selfSigned(objects[1], objects)
	if !ok {
		t.Fatal("this Certificate signs itself")
	}
	secret, err := issue(objects[1], spec)
	if err != nil {
		t.Fatal(err)
	}
	if secret.Namespace != "a" || secret.Name != "hook-cert" || secret.Type != corev1.SecretTypeTLS {
		t.Errorf("made %s/%s of type %s", secret.Namespace, secret.Name, secret.Type)
	}
	want := map[string]string{
		"cert-manager.io/certificate-name": "serving", "cert-manager.io/issuer-name": "own", "cert-manager.io/issuer-kind": "Issuer",
		"cert-manager.io/issuer-group": "",
	}
	if diff := cmp.Diff(want, secret.Annotations); diff != "" {
		t.Error(diff)
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("the authority is no certificate")
	}
	for _, name := range spec.DNSNames {
		// This machine's clock may show another time zone's time as UTC. cert-manager issues no certificate because one is not valid yet.
		for _, at := range []time.Time{time.Now().Add(-14 * time.Hour), time.Now().Add(60 * 24 * time.Hour)} {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at}); err != nil {
				t.Errorf("%s at %s: %v", name, at, err)
			}
		}
	}
	if !slices.Equal(pair.Leaf.Subject.Organization, []string{"some"}) || pair.Leaf.Subject.CommonName != "" || pair.Leaf.IsCA {
		t.Errorf("certificate of %s, authority: %v", pair.Leaf.Subject, pair.Leaf.IsCA)
	}
	if key, is := pair.Leaf.PublicKey.(interface{ Size() int }); !is || key.Size() != 2048/8 {
		t.Errorf("a key of type %T", pair.Leaf.PublicKey)
	}
}

// What asks for more than this program knows is cert-manager's work.
func TestOnlySelfSigned(t *testing.T) {
	for spec, want := range map[string]bool{
		`{secretName: s, dnsNames: [a], issuerRef: {name: own}}`:                                                  true,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own, kind: Issuer, group: cert-manager.io}}`:            true,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own, kind: ClusterIssuer}}`:                             false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own, group: example.com}}`:                              false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: authority}}`:                                            false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: elsewhere}}`:                                            false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: missing}}`:                                              false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own}, isCA: true}`:                                      false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own}, privateKey: {algorithm: ECDSA}}`:                  false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own}, secretTemplate: {labels: {a: b}}}`:                false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own}, duration: 24h}`:                                   false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own}, subject: {countries: [XX]}}`:                      false,
		`{secretName: s, dnsNames: [a], issuerRef: {name: own}, subject: {organizations: [some]}, commonName: a}`: false,
		`{secretName: s, ipAddresses: [127.0.0.1], issuerRef: {name: own}}`:                                       false,
		`{dnsNames: [a], issuerRef: {name: own}}`:                                                                 false,
	} {
		objects := parse(t, servingIssuer+`
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: authority, namespace: a}, spec: {ca: {secretName: b}}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: elsewhere, namespace: b}, spec: {selfSigned: {}}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: serving, namespace: a}, spec: `+spec+`}
`)
		if _, got := selfSigned(objects[3], objects); got != want {
			t.Errorf("%s: %v, want %v", spec, got, want)
		}
	}
}

const trusted = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: converted, annotations: {cert-manager.io/inject-ca-from: a/serving}}
spec: {conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: hook, namespace: a}}}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: alone, annotations: {cert-manager.io/inject-ca-from: a/serving}}
spec: {group: a}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hooks, annotations: {cert-manager.io/inject-ca-from: a/serving}}
webhooks:
- {name: one, clientConfig: {service: {name: hook, namespace: a}}}
- {name: two, clientConfig: {service: {name: hook, namespace: a}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: others, annotations: {cert-manager.io/inject-ca-from: b/serving}}
webhooks: [{name: one, clientConfig: {service: {name: hook, namespace: b}}}]
`

// authoritiesIn returns the authorities that an object has, by webhook.
func authoritiesIn(obj *unstructured.Unstructured) map[string]any {
	found := map[string]any{}
	for name, config := range clientConfigs(obj) {
		found[name] = config["caBundle"]
	}
	return found
}

func TestTrusting(t *testing.T) {
	objects := parse(t, trusted)
	got := authorities{"a/serving": []byte("pem")}.trusting(objects)
	pem := base64.StdEncoding.EncodeToString([]byte("pem"))
	for i, want := range []map[string]any{{"": pem}, {}, {"one": pem, "two": pem}, {"one": nil}} {
		if diff := cmp.Diff(want, authoritiesIn(got[i])); diff != "" {
			t.Errorf("%s: %s", got[i].GetName(), diff)
		}
	}
	if diff := cmp.Diff(parse(t, trusted), objects); diff != "" {
		t.Errorf("the originals changed: %s", diff)
	}
}

func TestAuthoritiesStay(t *testing.T) {
	there := parse(t, trusted)
	for i, each := range slices.Sorted(maps.Keys(clientConfigs(there[2]))) {
		clientConfigs(there[2])[each]["caBundle"] = each + string(rune('0'+i))
	}
	clientConfigs(there[0])[""]["caBundle"] = "old"
	for i, want := range []map[string]any{{"": "old"}, {}, {"one": "one0", "two": "two1"}, {"one": nil}} {
		if diff := cmp.Diff(want, authoritiesIn(withAuthoritiesOf(there[i], parse(t, trusted)[i]))); diff != "" {
			t.Errorf("%s: %s", there[i].GetName(), diff)
		}
	}
	renewed := parse(t, trusted)[0]
	clientConfigs(renewed)[""]["caBundle"] = "new"
	if diff := cmp.Diff(map[string]any{"": "new"}, authoritiesIn(withAuthoritiesOf(there[0], renewed))); diff != "" {
		t.Error(diff)
	}
}
