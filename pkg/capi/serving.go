package capi

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// The certificates of the providers' webhook servers are made ahead. A provider asks cert-manager for a certificate that signs itself, and
// cert-manager writes the certificate into each of the provider's CRDs and webhook configurations. That takes until cert-manager runs, its
// Secrets come before the managers can start, and each written CRD costs the API server as much as a new one. So Install makes the Secret
// that cert-manager would make, and applies the CRDs with the certificate. cert-manager takes over a Secret that fits its Certificate, as
// after a restore from a backup: it renews the certificate in time, and then writes the new one into the CRDs.

const (
	certificateNameAnnotation = "cert-manager.io/certificate-name"
	injectFromCertificate     = "cert-manager.io/inject-ca-from"
	certManagerGroup          = "cert-manager.io"
	authorityKey              = "ca.crt"

	// servingKeyBits and servingTime are cert-manager's defaults. It issues a certificate again whose key has another size.
	servingKeyBits = 2048
	servingTime    = 90 * 24 * time.Hour
	// clockTolerance lets a cluster accept a new certificate although the clock of this machine is ahead, for example by a time zone. Nobody
	// would issue it again because it is not valid yet.
	clockTolerance = 24 * time.Hour
)

// certificateSpec has the fields of a Certificate that issue knows. It makes no certificate for a Certificate with other fields.
type certificateSpec struct {
	SecretName string    `json:"secretName"`
	DNSNames   []string  `json:"dnsNames"`
	IssuerRef  issuerRef `json:"issuerRef"`
	Subject    struct {
		Organizations []string `json:"organizations"`
	} `json:"subject"`
}

type issuerRef struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Group string `json:"group"`
}

// authorities are certificate authorities in PEM, by namespace and name of the Certificate.
type authorities map[string][]byte

// serve makes the Secrets of a provider's Certificates that do not exist yet, and returns the authorities of all of them. It leaves out a
// Certificate that only cert-manager can fulfil. Beside a cert-manager of somebody else it does nothing: its owner may have rules about who
// issues which certificate, and it runs already.
func (in *installation) serve(ctx context.Context, custom []*unstructured.Unstructured) (authorities, error) {
	known := authorities{}
	if !in.ownCerts {
		return known, nil
	}
	for _, certificate := range custom {
		spec, ok := selfSigned(certificate, custom)
		if !ok {
			continue
		}
		secret, err := in.servingSecret(ctx, certificate, spec)
		if err != nil {
			return nil, fmt.Errorf("make the Secret of %s: %w", kube.RefOf(certificate), err)
		}
		// The API server does not serve a CRD with an authority that is no certificate.
		ca := secret.Data[authorityKey]
		if x509.NewCertPool().AppendCertsFromPEM(ca) && secret.Annotations[certificateNameAnnotation] == certificate.GetName() {
			known[certificate.GetNamespace()+"/"+certificate.GetName()] = ca
		}
	}
	return known, nil
}

// servingSecret returns the Secret of a Certificate as it is in the cluster, and makes it if there is none.
func (in *installation) servingSecret(
	ctx context.Context,
	certificate *unstructured.Unstructured,
	spec *certificateSpec,
) (*corev1.Secret, error) {
	there := &corev1.Secret{}
	key := kube.Key{Namespace: certificate.GetNamespace(), Name: spec.SecretName}
	err := in.kube.Get(ctx, key, there)
	if !apierrors.IsNotFound(err) {
		return there, err
	}
	made, err := issue(certificate, spec)
	if err != nil {
		return nil, err
	}
	err = in.kube.WithWatch.Create(ctx, made, client.FieldOwner(kube.FieldManager))
	if apierrors.IsAlreadyExists(err) { // cert-manager was faster
		return there, in.kube.Get(ctx, key, there)
	}
	return made, err
}

// selfSigned returns the spec of a Certificate if one of the Issuers among custom lets it sign itself, and if it asks for nothing that
// issue does not know.
func selfSigned(obj *unstructured.Unstructured, custom []*unstructured.Unstructured) (*certificateSpec, bool) {
	if !isOfCertManager(obj, "Certificate") {
		return nil, false
	}
	raw, err := json.Marshal(obj.Object["spec"])
	if err != nil {
		return nil, false
	}
	spec := &certificateSpec{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if decoder.Decode(spec) != nil || spec.SecretName == "" || len(spec.DNSNames) == 0 {
		return nil, false
	}
	ref := spec.IssuerRef
	if ref.Kind != "" && ref.Kind != "Issuer" || ref.Group != "" && ref.Group != certManagerGroup {
		return nil, false
	}
	for _, issuer := range custom {
		if !isOfCertManager(issuer, "Issuer") || issuer.GetNamespace() != obj.GetNamespace() || issuer.GetName() != ref.Name {
			continue
		}
		config := asMap(issuer.Object["spec"])
		signs, is := config["selfSigned"]
		return spec, is && len(config) == 1 && len(asMap(signs)) == 0
	}
	return nil, false
}

func isOfCertManager(obj *unstructured.Unstructured, kind string) bool {
	gvk := obj.GroupVersionKind()
	return gvk.Group == certManagerGroup && gvk.Kind == kind
}

// issue makes the Secret that cert-manager would make for a Certificate that signs itself.
func issue(certificate *unstructured.Unstructured, spec *certificateSpec) (*corev1.Secret, error) {
	key, err := rsa.GenerateKey(rand.Reader, servingKeyBits)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: spec.Subject.Organizations}, DNSNames: spec.DNSNames,
		NotBefore: now.Add(-clockTolerance), NotAfter: now.Add(servingTime), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	signed := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: certificate.GetNamespace(), Name: spec.SecretName,
			Labels: map[string]string{"controller.cert-manager.io/fao": "true"},
			Annotations: map[string]string{
				certificateNameAnnotation:      certificate.GetName(),
				"cert-manager.io/issuer-name":  spec.IssuerRef.Name,
				"cert-manager.io/issuer-kind":  spec.IssuerRef.Kind,
				"cert-manager.io/issuer-group": spec.IssuerRef.Group,
			},
		},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			authorityKey:            signed,
			corev1.TLSCertKey:       signed,
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		},
	}, nil
}

// trusting returns objects with the authorities that cert-manager would write into them. The others are the same objects.
func (a authorities) trusting(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		if ca := a[obj.GetAnnotations()[injectFromCertificate]]; ca != nil {
			obj = obj.DeepCopy()
			for _, config := range clientConfigs(obj) {
				config["caBundle"] = base64.StdEncoding.EncodeToString(ca)
			}
		}
		all = append(all, obj)
	}
	return all
}

// clientConfigs returns the parts of a CRD or of a webhook configuration that say which server to call, by the name of the webhook.
func clientConfigs(obj *unstructured.Unstructured) map[string]map[string]any {
	configs := map[string]map[string]any{}
	switch gvk := obj.GroupVersionKind(); {
	case gvk.Group == admissionv1.GroupName:
		for _, each := range asSlice(obj.Object["webhooks"]) {
			webhook := asMap(each)
			name, _ := webhook["name"].(string)
			if config := asMap(webhook["clientConfig"]); config != nil {
				configs[name] = config
			}
		}
	case gvk.Kind == "CustomResourceDefinition":
		config, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "conversion", "webhook", "clientConfig")
		if found := asMap(config); found != nil {
			configs[""] = found
		}
	}
	return configs
}

// keepAuthorities returns obj with the authorities that the object in the cluster has. Without them, an apply would remove those that an
// earlier apply has written, and nobody could call the webhooks until cert-manager writes them again.
func keepAuthorities(ctx context.Context, c *kube.Client, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !injected(obj) {
		return obj, nil
	}
	ref := kube.RefOf(obj)
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(obj.GroupVersionKind())
	if err := c.Get(ctx, ref.Key, there); err != nil {
		if apierrors.IsNotFound(err) {
			return obj, nil
		}
		return nil, fmt.Errorf("look at %s: %w", ref, err)
	}
	return withAuthoritiesOf(there, obj), nil
}

// injected tells whether cert-manager writes authorities into an object.
func injected(obj *unstructured.Unstructured) bool {
	return obj.GetAnnotations()[injectFromCertificate] != "" && len(clientConfigs(obj)) > 0
}

// withAuthoritiesOf returns a copy of obj with the authorities of there, if cert-manager writes them.
func withAuthoritiesOf(there, obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	if !injected(obj) {
		return obj
	}
	has := clientConfigs(there)
	for name, config := range clientConfigs(obj) {
		if ca, is := has[name]["caBundle"].(string); is && ca != "" && config["caBundle"] == nil {
			config["caBundle"] = ca
		}
	}
	return obj
}
