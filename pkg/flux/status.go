package flux

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Report is the state of Flux in a cluster. Lists are sorted by namespace and name and never nil.
type Report struct {
	// Installed tells whether the cluster has Flux.
	Installed bool `json:"installed"`
	// Version of the running Flux distribution, from its labels; empty if unknown.
	Version string `json:"version,omitempty"`
	// Controllers are the Deployments in flux-system.
	Controllers []Controller `json:"controllers"`
	// Sources, Kustomizations and HelmReleases of all namespaces. HelmCharts that helm-controller made for one release are left out.
	Sources        []Object `json:"sources"`
	Kustomizations []Object `json:"kustomizations"`
	HelmReleases   []Object `json:"helmReleases"`
}

// Controller is one of Flux's Deployments.
type Controller struct {
	Name   string `json:"name"`
	Image  string `json:"image"`
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
}

// Object is one object that Flux reconciles.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready is true when the newest generation is reconciled and healthy.
	Ready bool `json:"ready"`
	// Reason why Ready is false.
	Reason string `json:"reason,omitempty"`
	// Troubles from the object's conditions, one for each cause.
	Troubles []kube.Trouble `json:"-"`
	// AppliedBy is the Flux Kustomization that applied the object; empty if none did.
	AppliedBy kube.Key `json:"-"`
	// DependsOn are objects of the same kind that this one waits for.
	DependsOn []kube.Key `json:"-"`
	// Suspended means that Flux does not reconcile the object. SuspendedByFleetctl tells whether fleetctl suspended it.
	Suspended           bool `json:"suspended"`
	SuspendedByFleetctl bool `json:"suspendedByFleetctl,omitempty"`
	// LetGo means that fleetctl suspended the object because its cluster is handed over, detached or drained. Nobody may resume it.
	LetGo bool `json:"letGo,omitempty"`
	// SuspendedInGit means that Git has the object suspended. Otherwise it was suspended on the cluster.
	SuspendedInGit bool `json:"suspendedInGit,omitempty"`
	// Pauses means that the Kustomization suspends the objects of Flux that it applies: its environment is paused in Git.
	Pauses bool `json:"-"`
	// PausedWith is the Kustomization with which a suspended object was paused: in Git, or by SetSuspendedBelow. It is empty if none was.
	PausedWith kube.Key `json:"-"`
	// URL of a source.
	URL string `json:"url,omitempty"`
	// Source of a Kustomization or HelmRelease, Kind/namespace/name.
	Source string `json:"source,omitempty"`
	// Revision that a source has fetched, a Kustomization has applied, or of the chart that a HelmRelease has installed.
	Revision string `json:"revision,omitempty"`
	// Behind says what to do if the object is not Ready only because it is at another revision than its source; otherwise it is empty.
	Behind string `json:"-"`
	// Attempted is the revision of the last attempt, if it differs.
	Attempted string `json:"attempted,omitempty"`
	// Remote means that the object works on another cluster.
	Remote bool `json:"remote,omitempty"`
	// Workload is the value of the object's WorkloadLabel.
	Workload string `json:"workload,omitempty"`
}

// Healthy tells whether all controllers, and all objects that are not suspended, are Ready. It leaves out objects of workload clusters.
func (r *Report) Healthy() bool {
	for _, c := range r.Controllers {
		if !c.Ready {
			return false
		}
	}
	for _, o := range slices.Concat(r.Sources, r.Kustomizations, r.HelmReleases) {
		if o.Workload == "" && !o.Ready && !o.Suspended {
			return false
		}
	}
	return r.Installed
}

// Status reads the state of Flux. A cluster without Flux is no error.
func (s *System) Status(ctx context.Context) (*Report, error) {
	report := &Report{Controllers: []Controller{}, Sources: []Object{}, Kustomizations: []Object{}, HelmReleases: []Object{}}
	if err := s.controllers(ctx, report); err != nil {
		return nil, err
	}
	w, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	_, report.Installed = w[kustomizationKind]
	for _, gvk := range sourceKinds() {
		report.Sources = append(report.Sources, w.report(gvk)...)
	}
	report.Sources = append(report.Sources, w.sharedCharts()...)
	report.Kustomizations = append(report.Kustomizations, w.report(kustomizationKind)...)
	report.HelmReleases = append(report.HelmReleases, w.report(helmReleaseKind)...)
	return report, nil
}

// Deployments returns the Deployments of Flux's controllers. There are none if Flux is not installed.
func (s *System) Deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	err := kube.Retry(ctx, func(ctx context.Context) error { return s.client.List(ctx, &list, kube.InNamespace(Namespace)) })
	if err != nil {
		return nil, fmt.Errorf("list Deployments of %s: %w", Namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return d.Labels["app.kubernetes.io/part-of"] != "flux" }), nil
}

// OtherVersion returns the version of a controller of Flux that does not run in the wanted version; "" if there is none.
func (s *System) OtherVersion(ctx context.Context, wanted string) (string, error) {
	deployments, err := s.Deployments(ctx)
	if err != nil {
		return "", err
	}
	for i := range deployments {
		if version := deployments[i].Labels[versionLabel]; version != "" && version != wanted {
			return version, nil
		}
	}
	return "", nil
}

func (s *System) controllers(ctx context.Context, report *Report) error {
	deployments, err := s.Deployments(ctx)
	if err != nil {
		return err
	}
	for i := range deployments {
		d := &deployments[i]
		report.Version = cmp.Or(report.Version, d.Labels[versionLabel])
		c := Controller{Name: d.Name}
		if containers := d.Spec.Template.Spec.Containers; len(containers) > 0 {
			c.Image = containers[0].Image
		}
		d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		if err != nil {
			return fmt.Errorf("read Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		obj := &unstructured.Unstructured{Object: content}
		if c.Ready = kube.DeploymentReady(obj); !c.Ready {
			c.Reason = cmp.Or(s.client.Explain(ctx, obj), "it is starting")
		}
		report.Controllers = append(report.Controllers, c)
	}
	slices.SortFunc(report.Controllers, func(a, b Controller) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// sharedCharts describes the HelmCharts, except for those that helm-controller made for one release.
func (w world) sharedCharts() []Object {
	own := map[string]bool{}
	for _, release := range w[helmReleaseKind] {
		name, _, _ := unstructured.NestedString(release.Object, "status", "helmChart")
		own[name] = true
	}
	return slices.DeleteFunc(w.report(helmChartKind), func(o Object) bool { return own[o.Namespace+"/"+o.Name] })
}

// report describes all objects of a kind.
func (w world) report(gvk schema.GroupVersionKind) []Object {
	var out []Object
	for _, ref := range w.refs(gvk) {
		out = append(out, w.describe(ref, w[gvk][ref.Key]))
	}
	return out
}

func (w world) describe(ref kube.Ref, obj *unstructured.Unstructured) Object {
	out := Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	o, err := objectOf(obj)
	if err != nil {
		out.Reason = "it cannot be read: " + err.Error()
		return out
	}
	out.Reason = o.ready()
	out.Ready = out.Reason == ""
	if !out.Ready {
		out.Troubles = kube.Troubles(obj)
	}
	out.AppliedBy = KustomizationOf(obj)
	out.Suspended = o.Spec.Suspend
	out.SuspendedInGit = o.Spec.Suspend && suspendedInGit(obj)
	out.Pauses = ref.GroupVersionKind == kustomizationKind && pauses(obj)
	if o.Spec.Suspend {
		out.PausedWith = w.pausedWith(obj)
	}
	_, out.SuspendedByFleetctl = o.Annotations[suspendedAnnotation]
	_, out.LetGo = o.Annotations[letGoAnnotation]
	out.URL = o.Spec.URL
	out.Workload = o.Labels[WorkloadLabel]
	out.Revision = o.artifactRevision()
	switch ref.GroupVersionKind {
	case kustomizationKind:
		err = w.describeKustomization(&out, obj)
	case helmReleaseKind:
		err = w.describeRelease(&out, obj)
	}
	if err != nil {
		out.Ready, out.Reason = false, "it cannot be read: "+err.Error()
	}
	return out
}

func (w world) describeKustomization(out *Object, obj *unstructured.Unstructured) error {
	var k kustomizev1.Kustomization
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &k); err != nil {
		return err
	}
	out.Source = sourceName(k.Spec.SourceRef.Kind, cmp.Or(k.Spec.SourceRef.Namespace, k.Namespace), k.Spec.SourceRef.Name)
	out.Revision = k.Status.LastAppliedRevision
	if k.Status.LastAttemptedRevision != out.Revision {
		out.Attempted = k.Status.LastAttemptedRevision
	}
	out.Remote = k.Spec.KubeConfig != nil
	for _, d := range k.Spec.DependsOn {
		out.DependsOn = append(out.DependsOn, kube.Key{Namespace: cmp.Or(d.Namespace, k.Namespace), Name: d.Name})
	}
	out.behind(w.kustomizationLate(&k))
	return nil
}

func (w world) describeRelease(out *Object, obj *unstructured.Unstructured) error {
	var r helmv2.HelmRelease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &r); err != nil {
		return err
	}
	switch {
	case r.Spec.Chart != nil:
		from := r.Spec.Chart.Spec.SourceRef
		out.Source = sourceName(from.Kind, cmp.Or(from.Namespace, r.Namespace), from.Name)
	case r.Spec.ChartRef != nil:
		out.Source = sourceName(r.Spec.ChartRef.Kind, cmp.Or(r.Spec.ChartRef.Namespace, r.Namespace), r.Spec.ChartRef.Name)
	}
	if latest := r.Status.History.Latest(); latest != nil {
		out.Revision = latest.ChartVersion
	}
	if r.Status.LastAttemptedRevision != out.Revision {
		out.Attempted = r.Status.LastAttemptedRevision
	}
	out.Remote = r.Spec.KubeConfig != nil
	for _, d := range r.Spec.DependsOn {
		out.DependsOn = append(out.DependsOn, kube.Key{Namespace: cmp.Or(d.Namespace, r.Namespace), Name: d.Name})
	}
	if why := w.chartTrouble(&r); why != "" && out.Ready {
		out.Ready, out.Reason = false, why
	}
	out.behind(w.releaseLate(&r))
	return nil
}

func (o *Object) behind(l late) {
	if o.Ready && !o.Suspended && l.why != "" {
		o.Ready, o.Reason, o.Behind = false, l.why, l.hint
	}
}

// KustomizationOf is the Flux Kustomization that applied an object, by the object's labels; empty if none did.
func KustomizationOf(obj *unstructured.Unstructured) kube.Key {
	group := kustomizev1.GroupVersion.Group
	return kube.Key{Namespace: obj.GetLabels()[group+"/namespace"], Name: obj.GetLabels()[group+"/name"]}
}

// ReleaseOf is the HelmRelease that installed an object, by the object's labels; empty if none did.
func ReleaseOf(obj *unstructured.Unstructured) kube.Key {
	group := helmv2.GroupVersion.Group
	return kube.Key{Namespace: obj.GetLabels()[group+"/namespace"], Name: obj.GetLabels()[group+"/name"]}
}

func sourceName(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func compareKeys(a, b kube.Key) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}
