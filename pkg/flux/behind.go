package flux

import (
	"cmp"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// An object can be Ready at another revision than its source has. Usually that lasts for moments. But Flux can overlook a revision: its
// controllers skip a change of a source for an object whose last attempt was at that revision, even if they are just about to apply another
// one (requestsForRevisionChangeOf in kustomize-controller's kustomization_indexers.go). So an object can stay at a tag that was rolled back
// until its interval is over, which is an hour for what installs Flux on workload clusters.

// late says why an object is not at its source's revision, and which object has to look at its source again: the object itself, or the
// HelmChart of a release. It is empty if nothing is.
type late struct {
	why  string
	look kube.Ref
}

func (w world) kustomizationLate(k *kustomizev1.Kustomization) late {
	source := k.Spec.SourceRef
	wanted := w.sourceRevision(source.Kind, cmp.Or(source.Namespace, k.Namespace), source.Name)
	if wanted == "" || k.Status.LastAppliedRevision == wanted {
		return late{}
	}
	return late{
		why:  fmt.Sprintf("it has not applied %s yet", shortRevision(wanted)),
		look: kube.Ref{GroupVersionKind: kustomizationKind, Key: kube.Key{Namespace: k.Namespace, Name: k.Name}},
	}
}

func (w world) releaseLate(r *helmv2.HelmRelease) late {
	of := chartOf(r)
	obj := w[helmChartKind][of]
	if obj == nil {
		return late{} // a chart from another kind of source, which is looked at by itself
	}
	var chart sourcev1.HelmChart
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &chart); err != nil {
		return late{why: fmt.Sprintf("its HelmChart cannot be read: %v", err)}
	}
	wanted := w.sourceRevision(chart.Spec.SourceRef.Kind, chart.Namespace, chart.Spec.SourceRef.Name)
	switch {
	case wanted != "" && chart.Status.ObservedSourceArtifactRevision != wanted:
		return late{
			why:  fmt.Sprintf("its chart does not come from %s yet", shortRevision(wanted)),
			look: kube.Ref{GroupVersionKind: helmChartKind, Key: of},
		}
	case chart.Status.Artifact != nil && r.Status.LastAttemptedRevision != chart.Status.Artifact.Revision:
		return late{
			why:  fmt.Sprintf("its chart %s is not installed yet", chart.Status.Artifact.Revision),
			look: kube.Ref{GroupVersionKind: helmReleaseKind, Key: kube.Key{Namespace: r.Namespace, Name: r.Name}},
		}
	}
	return late{}
}

// hint says what to do about an object that is not at its source's revision; "" if nothing has to look again.
func (l late) hint() string {
	if l.look.Name == "" {
		return ""
	}
	again := diag.ShellCommand("kubectl", "-n", l.look.Namespace, "annotate", "--overwrite", strings.ToLower(l.look.Kind), l.look.Name)
	return "wait a moment; if it stays so for minutes, Flux has overlooked the revision, and `" + again + " " +
		fluxmeta.ReconcileRequestAnnotation + "=$(date +%s)` makes it look"
}

// sourceRevision is the revision that a GitRepository or OCIRepository has fetched. It is "" for other kinds, whose revision cannot be
// compared, and for a source that is missing or suspended.
func (w world) sourceRevision(kind, namespace, name string) string {
	if kind != sourcev1.GitRepositoryKind && kind != sourcev1.OCIRepositoryKind {
		return ""
	}
	obj := w[sourcev1.GroupVersion.WithKind(kind)][kube.Key{Namespace: namespace, Name: name}]
	if obj == nil {
		return ""
	}
	o, err := objectOf(obj)
	if err != nil || o.Spec.Suspend {
		return ""
	}
	return o.artifactRevision()
}
