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

// kustomizationBehind returns why a Kustomization is not at its source's revision, or "" if it is.
func (w world) kustomizationBehind(k *kustomizev1.Kustomization) string {
	source := k.Spec.SourceRef
	wanted := w.sourceRevision(source.Kind, cmp.Or(source.Namespace, k.Namespace), source.Name)
	if wanted == "" || k.Status.LastAppliedRevision == wanted {
		return ""
	}
	return fmt.Sprintf("it has not applied %s yet", shortRevision(wanted))
}

// releaseBehind returns why the chart that a HelmRelease has installed is not the one in its source, or "" if it is.
func (w world) releaseBehind(r *helmv2.HelmRelease) string {
	obj := w[helmChartKind][chartOf(r)]
	if obj == nil {
		return "" // a chart from another kind of source, which is looked at by itself
	}
	var chart sourcev1.HelmChart
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &chart); err != nil {
		return fmt.Sprintf("its HelmChart cannot be read: %v", err)
	}
	wanted := w.sourceRevision(chart.Spec.SourceRef.Kind, chart.Namespace, chart.Spec.SourceRef.Name)
	switch {
	case wanted != "" && chart.Status.ObservedSourceArtifactRevision != wanted:
		return fmt.Sprintf("its chart does not come from %s yet", shortRevision(wanted))
	case chart.Status.Artifact != nil && r.Status.LastAttemptedRevision != chart.Status.Artifact.Revision:
		return fmt.Sprintf("its chart %s is not installed yet", chart.Status.Artifact.Revision)
	}
	return ""
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

// BehindHint says what to do about an object that is behind its source.
func BehindHint(kind, namespace, name string) string {
	again := diag.ShellCommand("kubectl", "-n", namespace, "annotate", "--overwrite", strings.ToLower(kind), name)
	return "wait a moment; if it stays so for minutes, Flux has overlooked the revision, and `" + again + " " +
		fluxmeta.ReconcileRequestAnnotation + "=$(date +%s)` makes it look"
}
