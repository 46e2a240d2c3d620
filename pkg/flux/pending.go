package flux

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// pending lists the objects that are missing or not healthy at the commit; it is empty when all are healthy. It starts at the
// Kustomization flux-system, and follows the inventory of each Kustomization of this cluster. It leaves out objects that the user
// suspended, except for flux-system itself.
func (w world) pending(commit string) kube.NotReadyError {
	c := &check{world: w, commit: commit, seen: map[kube.Ref]bool{}}
	root := kube.Ref{GroupVersionKind: gitRepositoryKind, Key: systemKey}
	if c.system(root) {
		c.visit(kube.Ref{GroupVersionKind: kustomizationKind, Key: systemKey})
	}
	slices.SortFunc(c.missing, func(a, b kube.Unready) int { return cmp.Compare(a.String(), b.String()) })
	return c.missing
}

// fetched is the commit that the GitRepository flux-system has fetched, or "".
func (w world) fetched() string {
	obj := w[gitRepositoryKind][systemKey]
	if obj == nil {
		return ""
	}
	o, err := objectOf(obj)
	if err != nil {
		return ""
	}
	return commitOf(o.artifactRevision())
}

// check walks over a world.
type check struct {
	world    world
	commit   string
	revision string // of the system's artifact
	seen     map[kube.Ref]bool
	missing  kube.NotReadyError
	// workloads tells whether objects of workload clusters count.
	workloads bool
}

// whySuspended is why an object that somebody has suspended is pending.
const whySuspended = "it is suspended"

// resumeHint says how to resume the objects among the missing ones that somebody has suspended: no wait ends that. It is "" where there are
// none.
func resumeHint(missing kube.NotReadyError) string {
	var commands []string
	for _, m := range missing {
		if m.Reason == whySuspended {
			commands = append(commands, "`"+ResumeCommand(m.Ref.Kind, m.Ref.Key)+"`")
		}
	}
	if len(commands) == 0 {
		return ""
	}
	return "somebody has suspended Flux; to let it go on, run " + strings.Join(commands, " and ")
}

// ResumeCommand is the command that resumes any object of Flux.
func ResumeCommand(kind string, key kube.Key) string {
	return diag.ShellCommand("kubectl", "-n", key.Namespace, "patch", strings.ToLower(kind), key.Name, "--type", "merge", "-p",
		`{"spec":{"suspend":false}}`)
}

func (c *check) miss(ref kube.Ref, format string, args ...any) {
	c.missing = append(c.missing, kube.Unready{Ref: ref, Reason: fmt.Sprintf(format, args...)})
}

// system tells whether the GitRepository has fetched the commit.
func (c *check) system(ref kube.Ref) bool {
	o := c.object(ref)
	if o == nil {
		return false
	}
	c.revision = o.artifactRevision()
	if o.Spec.Suspend {
		c.miss(ref, whySuspended)
		c.suspendedSync()
		return false
	}
	if why := o.ready(); why != "" {
		c.miss(ref, "%s", why)
		return false
	}
	if commitOf(c.revision) != c.commit {
		c.miss(ref, "it has fetched %s, not %s", shortCommit(commitOf(c.revision)), shortCommit(c.commit))
		return false
	}
	return true
}

// suspendedSync misses the Kustomization of the same name where somebody has suspended it, too: both have to be resumed.
func (c *check) suspendedSync() {
	obj := c.world[kustomizationKind][systemKey]
	if obj == nil {
		return
	}
	if o, err := objectOf(obj); err == nil && o.Spec.Suspend {
		c.miss(kube.Ref{GroupVersionKind: kustomizationKind, Key: systemKey}, whySuspended)
	}
}

// object returns the object ref. If it is missing or cannot be read, it records that and returns nil.
func (c *check) object(ref kube.Ref) *object {
	obj := c.world[ref.GroupVersionKind][ref.Key]
	if obj == nil {
		c.miss(ref, "it does not exist")
		return nil
	}
	o, err := objectOf(obj)
	if err != nil {
		c.miss(ref, "it cannot be read: %v", err)
		return nil
	}
	return o
}

// visit checks one object that Flux applied, once.
func (c *check) visit(ref kube.Ref) {
	if c.seen[ref] {
		return
	}
	c.seen[ref] = true
	o := c.object(ref)
	if o == nil {
		return
	}
	if o.Labels[WorkloadLabel] != "" && !c.workloads {
		return // WaitWorkloads waits for objects of workload clusters
	}
	if o.Spec.Suspend {
		if ref.Key == systemKey && ref.GroupVersionKind == kustomizationKind {
			c.miss(ref, whySuspended)
		}
		return
	}
	why := o.ready()
	switch ref.GroupVersionKind {
	case kustomizationKind:
		c.kustomization(ref, why)
	case helmReleaseKind:
		c.release(ref, why)
	default:
		if why != "" {
			c.miss(ref, "%s", why)
		}
	}
}

// kustomization checks that a Kustomization has applied its source's artifact, and then the objects in its inventory.
func (c *check) kustomization(ref kube.Ref, why string) {
	var k kustomizev1.Kustomization
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.world[ref.GroupVersionKind][ref.Key].Object, &k); err != nil {
		c.miss(ref, "it cannot be read: %v", err)
		return
	}
	if why == "" {
		why = c.world.kustomizationLate(&k).why
	}
	switch {
	case why != "":
		c.miss(ref, "%s", why)
		return
	case k.Spec.KubeConfig != nil || k.Status.Inventory == nil:
		return // the applied objects are in another cluster
	}
	for _, entry := range k.Status.Inventory.Entries {
		if child, ok := inventoryRef(entry.ID); ok {
			c.visit(child)
		}
	}
}

// release checks that a HelmRelease's chart comes from its source's artifact and is installed.
func (c *check) release(ref kube.Ref, why string) {
	var r helmv2.HelmRelease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.world[ref.GroupVersionKind][ref.Key].Object, &r); err != nil {
		c.miss(ref, "it cannot be read: %v", err)
		return
	}
	if why != "" {
		c.miss(ref, "%s", why)
		return
	}
	if why := cmp.Or(c.world.chartTrouble(&r), c.world.releaseLate(&r).why); why != "" {
		c.miss(ref, "%s", why)
	}
}

// chartOf names the HelmChart of a release: a shared one, or the one that helm-controller makes from the release's spec.
func chartOf(r *helmv2.HelmRelease) kube.Key {
	if ref := r.Spec.ChartRef; ref != nil && ref.Kind == sourcev1.HelmChartKind {
		return kube.Key{Namespace: cmp.Or(ref.Namespace, r.Namespace), Name: ref.Name}
	}
	namespace, name, _ := strings.Cut(r.Status.HelmChart, "/")
	return kube.Key{Namespace: namespace, Name: name}
}

// chartTrouble returns why the HelmChart of a release is not available. It is "" if it is, or if the chart comes from another kind of
// source. helm-controller reports such an error only at the release's next interval.
func (w world) chartTrouble(r *helmv2.HelmRelease) string {
	key := chartOf(r)
	obj := w[helmChartKind][key]
	switch {
	case obj != nil:
		o, err := objectOf(obj)
		if err != nil {
			return fmt.Sprintf("its HelmChart cannot be read: %v", err)
		}
		if why := o.ready(); why != "" {
			return fmt.Sprintf("its HelmChart %s/%s: %s", key.Namespace, key.Name, why)
		}
	case r.Spec.ChartRef != nil && r.Spec.ChartRef.Kind == sourcev1.HelmChartKind:
		return fmt.Sprintf("there is no HelmChart %s/%s", key.Namespace, key.Name)
	}
	return ""
}

// inventoryRef parses an entry of an inventory, <namespace>_<name>_<group>_<kind>. ok is false if the object is not one of Flux's kinds.
func inventoryRef(id string) (ref kube.Ref, ok bool) {
	parts := strings.Split(id, "_")
	if len(parts) != 4 {
		return kube.Ref{}, false
	}
	i := slices.IndexFunc(allKinds(), func(k schema.GroupVersionKind) bool { return k.Group == parts[2] && k.Kind == parts[3] })
	if i < 0 {
		return kube.Ref{}, false
	}
	return kube.Ref{GroupVersionKind: allKinds()[i], Key: kube.Key{Namespace: parts[0], Name: parts[1]}}, true
}

// shortRevision shortens the commit or digest at the end of a revision.
func shortRevision(revision string) string {
	if i := strings.LastIndexByte(revision, ':'); i >= 0 {
		return revision[:i+1] + shortCommit(revision[i+1:])
	}
	return revision
}

func shortCommit(commit string) string {
	if commit == "" {
		return "nothing"
	}
	return commit[:min(len(commit), 12)]
}

// below is like pending, but starts at the Flux Kustomization called name in flux-system. It includes the objects of workload clusters, for
// each cluster only the one that the others wait for. seen are all objects that it has looked at.
func (w world) below(name, commit string) (missing kube.NotReadyError, seen map[kube.Ref]bool) {
	c := &check{world: w, commit: commit, seen: map[kube.Ref]bool{}, workloads: true}
	ref := kube.Ref{GroupVersionKind: kustomizationKind, Key: kube.Key{Namespace: Namespace, Name: name}}
	if applied := commitOf(w.applied(name)); applied != commit && w[kustomizationKind][ref.Key] != nil {
		c.miss(ref, "it has applied %s, not %s", shortCommit(applied), shortCommit(commit))
	} else {
		c.visit(ref)
	}
	missing = w.firstParts(c.missing)
	slices.SortFunc(missing, func(a, b kube.Unready) int { return cmp.Compare(a.String(), b.String()) })
	return missing, c.seen
}

// applied is the revision that a Flux Kustomization in flux-system has last applied; "" if there is none.
func (w world) applied(name string) string {
	obj := w[kustomizationKind][kube.Key{Namespace: Namespace, Name: name}]
	if obj == nil {
		return ""
	}
	var k kustomizev1.Kustomization
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &k); err != nil {
		return ""
	}
	return k.Status.LastAppliedRevision
}
