package flux

import (
	"cmp"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// An object can be Ready at another revision than its source has. Usually that lasts for moments.
//
// But kustomize-controller 1.9 can record the wrong revision. A source goes to a revision and back while a Kustomization is being applied.
// Then two reconciliations follow each other at once. The second begins with the object as the cache has it, from before the first, and its
// patch of the status leaves out what is the same there: status.lastAppliedRevision. So the Kustomization has applied the older revision
// again, is Ready, and its status names the newer one. Whatever depends on it, and has the same source, waits until it is reconciled for
// another reason: after its interval, which is an hour for what installs Flux on workload clusters. lastAttemptedRevision, which is patched
// more often, is right, and tells this case.

// late says why an object is not at its source's revision, and what to do. It is empty if the object is at that revision.
type late struct{ why, hint string }

func (w world) kustomizationLate(k *kustomizev1.Kustomization) late {
	source := k.Spec.SourceRef
	wanted := w.sourceRevision(source.Kind, cmp.Or(source.Namespace, k.Namespace), source.Name)
	switch {
	case wanted == "" || k.Status.LastAppliedRevision == wanted:
		return late{}
	case k.Status.LastAttemptedRevision == wanted:
		command := diag.ShellCommand("kubectl", "-n", k.Namespace, "annotate", "--overwrite", "kustomization", k.Name)
		return late{
			why: fmt.Sprintf("Flux has applied %s, but has recorded %s: what depends on it waits", shortRevision(wanted),
				shortRevision(k.Status.LastAppliedRevision)),
			hint: "`" + command + " " + fluxmeta.ReconcileRequestAnnotation + "=$(date +%s)` makes Flux look again",
		}
	}
	return late{why: fmt.Sprintf("it has not applied %s yet", shortRevision(wanted)), hint: waitAMoment}
}

const waitAMoment = "wait a moment; `fleetctl status --watch` shows when Flux has applied it"

func (w world) releaseLate(r *helmv2.HelmRelease) late {
	obj := w[helmChartKind][chartOf(r)]
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
		return late{why: fmt.Sprintf("its chart does not come from %s yet", shortRevision(wanted)), hint: waitAMoment}
	case chart.Status.Artifact != nil && r.Status.LastAttemptedRevision != chart.Status.Artifact.Revision:
		return late{why: fmt.Sprintf("its chart %s is not installed yet", chart.Status.Artifact.Revision), hint: waitAMoment}
	}
	return late{}
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
	// Only these two fields, because each of thousands of Kustomizations asks for the same source.
	if suspended, _, err := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended || err != nil {
		return ""
	}
	revision, _, _ := unstructured.NestedString(obj.Object, "status", "artifact", "revision")
	return revision
}
