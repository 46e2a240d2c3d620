package flux

import (
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// The kinds of Flux that fleetctl reads.
var (
	gitRepositoryKind  = sourcev1.GroupVersion.WithKind(sourcev1.GitRepositoryKind)
	ociRepositoryKind  = sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind)
	helmRepositoryKind = sourcev1.GroupVersion.WithKind(sourcev1.HelmRepositoryKind)
	bucketKind         = sourcev1.GroupVersion.WithKind(sourcev1.BucketKind)
	helmChartKind      = sourcev1.GroupVersion.WithKind(sourcev1.HelmChartKind)
	kustomizationKind  = kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind)
	helmReleaseKind    = helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind)
)

// allKinds are the kinds in the order in which they depend on each other. helm-controller makes HelmCharts, except for shared ones.
func allKinds() []schema.GroupVersionKind {
	return append(sourceKinds(), helmChartKind, kustomizationKind, helmReleaseKind)
}

func sourceKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{gitRepositoryKind, ociRepositoryKind, helmRepositoryKind, bucketKind}
}

// systemKey names the GitRepository and the Kustomization that sync the fleet repo.
var systemKey = kube.Key{Namespace: Namespace, Name: Name}

// world has the Flux objects of a cluster at one moment. It has no objects of kinds that the cluster does not know.
type world map[schema.GroupVersionKind]kube.Objects

// object is what all Flux kinds have in common.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Suspend bool   `json:"suspend"`
		Type    string `json:"type"`
		URL     string `json:"url"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
		Artifact           *fluxmeta.Artifact `json:"artifact"`
	} `json:"status"`
}

// objectOf decodes the common fields of a Flux object.
func objectOf(obj *unstructured.Unstructured) (*object, error) {
	var o object
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &o)
	return &o, err
}

// ready returns "" if the newest generation of o is reconciled and Ready, and else the reason.
func (o *object) ready() string {
	condition := apimeta.FindStatusCondition(o.Status.Conditions, fluxmeta.ReadyCondition)
	switch {
	case o.DeletionTimestamp != nil:
		return "it is being deleted"
	case o.Kind == sourcev1.HelmRepositoryKind && o.Spec.Type == sourcev1.HelmRepositoryTypeOCI:
		return "" // static, without a status
	case condition == nil:
		return "not reconciled yet"
	case condition.Status == metav1.ConditionFalse:
		return kube.Reason(o.Status.Conditions) // even for a newer generation, because a failed attempt does not always set observedGeneration
	case o.Status.ObservedGeneration < o.Generation || condition.ObservedGeneration < o.Generation:
		return "its newest generation is not reconciled yet"
	case condition.Status != metav1.ConditionTrue:
		return kube.Reason(o.Status.Conditions)
	}
	return ""
}

// artifactRevision is the revision of a source's artifact, or "".
func (o *object) artifactRevision() string {
	if o.Status.Artifact == nil {
		return ""
	}
	return o.Status.Artifact.Revision
}

// commitOf is the commit of a Git revision such as main@sha1:6f2c… or sha1:6f2c….
func commitOf(revision string) string {
	_, commit, found := strings.Cut(revision, ":")
	if !found {
		return revision
	}
	return commit
}
