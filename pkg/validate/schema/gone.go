package schema

import (
	"cmp"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Gone returns the minor release of Kubernetes 1 that no longer serves a version of a kind, or 0 if it is still served. hint names the
// version to write instead.
func Gone(gvk schema.GroupVersionKind) (minor uint64, hint string) {
	g, ok := removed[gvk]
	if !ok {
		g = removed[gvk.GroupVersion().WithKind("")]
	}
	if g.minor == 0 {
		return 0, ""
	}
	return g.minor, cmp.Or(g.instead, "there is nothing in its place")
}

// GoneAt tells whether a version of Kubernetes (v1.36.3) no longer serves a version of a kind. If the version of Kubernetes is not known,
// GoneAt assumes the newest.
func GoneAt(gvk schema.GroupVersionKind, kubernetes string) bool {
	minor, _ := Gone(gvk)
	if minor == 0 {
		return false
	}
	v, err := semver.ParseTolerant(kubernetes)
	return err != nil || v.Major > 1 || v.Minor >= minor
}

type goneSince struct {
	minor   uint64
	instead string
}

// removed are the API versions that Kubernetes has removed: of a kind, or without a kind, of a whole group.
var removed = map[schema.GroupVersionKind]goneSince{
	{Group: "extensions", Version: "v1beta1"}:                                             {16, "apps/v1"},
	{Group: "extensions", Version: "v1beta1", Kind: "Ingress"}:                            {22, "networking.k8s.io/v1"},
	{Group: "extensions", Version: "v1beta1", Kind: "NetworkPolicy"}:                      {16, "networking.k8s.io/v1"},
	{Group: "extensions", Version: "v1beta1", Kind: "PodSecurityPolicy"}:                  {16, ""},
	{Group: "apps", Version: "v1beta1"}:                                                   {16, "apps/v1"},
	{Group: "apps", Version: "v1beta2"}:                                                   {16, "apps/v1"},
	{Group: "batch", Version: "v1beta1"}:                                                  {25, "batch/v1"},
	{Group: "batch", Version: "v2alpha1"}:                                                 {21, "batch/v1"},
	{Group: "policy", Version: "v1beta1"}:                                                 {25, "policy/v1"},
	{Group: "policy", Version: "v1beta1", Kind: "PodSecurityPolicy"}:                      {25, ""},
	{Group: "networking.k8s.io", Version: "v1beta1", Kind: "Ingress"}:                     {22, "networking.k8s.io/v1"},
	{Group: "networking.k8s.io", Version: "v1beta1", Kind: "IngressClass"}:                {22, "networking.k8s.io/v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1beta1"}:                              {22, "rbac.authorization.k8s.io/v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1alpha1"}:                             {22, "rbac.authorization.k8s.io/v1"},
	{Group: "apiextensions.k8s.io", Version: "v1beta1"}:                                   {22, "apiextensions.k8s.io/v1"},
	{Group: "apiregistration.k8s.io", Version: "v1beta1"}:                                 {22, "apiregistration.k8s.io/v1"},
	{Group: "certificates.k8s.io", Version: "v1beta1", Kind: "CertificateSigningRequest"}: {22, "certificates.k8s.io/v1"},
	{Group: "coordination.k8s.io", Version: "v1beta1", Kind: "Lease"}:                     {22, "coordination.k8s.io/v1"},
	{Group: "scheduling.k8s.io", Version: "v1beta1"}:                                      {22, "scheduling.k8s.io/v1"},
	{Group: "storage.k8s.io", Version: "v1beta1", Kind: "StorageClass"}:                   {22, "storage.k8s.io/v1"},
	{Group: "storage.k8s.io", Version: "v1beta1", Kind: "CSIDriver"}:                      {22, "storage.k8s.io/v1"},
	{Group: "storage.k8s.io", Version: "v1beta1", Kind: "CSINode"}:                        {22, "storage.k8s.io/v1"},
	{Group: "storage.k8s.io", Version: "v1beta1", Kind: "VolumeAttachment"}:               {22, "storage.k8s.io/v1"},
	{Group: "storage.k8s.io", Version: "v1beta1", Kind: "CSIStorageCapacity"}:             {27, "storage.k8s.io/v1"},
	{Group: "admissionregistration.k8s.io", Version: "v1beta1", Kind: "ValidatingWebhookConfiguration"}: {
		22,
		"admissionregistration.k8s.io/v1",
	},
	{Group: "admissionregistration.k8s.io", Version: "v1beta1", Kind: "MutatingWebhookConfiguration"}: {
		22,
		"admissionregistration.k8s.io/v1",
	},
	{Group: "autoscaling", Version: "v2beta1"}:      {25, "autoscaling/v2"},
	{Group: "autoscaling", Version: "v2beta2"}:      {26, "autoscaling/v2"},
	{Group: "discovery.k8s.io", Version: "v1beta1"}: {25, "discovery.k8s.io/v1"},
	{Group: "events.k8s.io", Version: "v1beta1"}:    {25, "events.k8s.io/v1"},
	{Group: "node.k8s.io", Version: "v1beta1"}:      {25, "node.k8s.io/v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta1"}: {
		26,
		"flowcontrol.apiserver.k8s.io/v1",
	},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta2"}: {
		29,
		"flowcontrol.apiserver.k8s.io/v1",
	},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3"}: {
		32,
		"flowcontrol.apiserver.k8s.io/v1",
	},
}
