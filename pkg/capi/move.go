package capi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// MovePlan is what a move will take along, as MovePreflight found it.
type MovePlan struct {
	// Namespaces in the order in which they are moved: those whose ClusterClasses others use come first.
	Namespaces []string
	// Clusters that are moved.
	Clusters []kube.Key
	// Left are Secrets with credentials that clusterctl does not take along: the target needs them before it can go on.
	Left []IdentitySecret
}

// MovePreflight looks at both sides and changes nothing. It returns an error that names all that stands against a move: a
// Cluster that is paused, being deleted or still provisioned, one of the same name at the target, a provider that the target
// lacks or has in an older version.
func MovePreflight(ctx context.Context, from, to *Manager) (*MovePlan, error) {
	var clusters, there clusterv1.ClusterList
	var machines clusterv1.MachineList
	var classes clusterv1.ClusterClassList
	var source, target []InstalledProvider
	var secrets []IdentitySecret
	group, readCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return from.listAll(readCtx, "Clusters", &clusters) })
	group.Go(func() error { return from.listAll(readCtx, "Machines", &machines) })
	group.Go(func() error { return from.listAll(readCtx, "ClusterClasses", &classes) })
	group.Go(func() error { return to.listAll(readCtx, "Clusters at the target", &there) })
	group.Go(func() (err error) { source, err = from.Installed(readCtx); return err })
	group.Go(func() (err error) { target, err = to.Installed(readCtx); return err })
	group.Go(func() (err error) { secrets, err = from.identitySecrets(readCtx); return err })
	if err := group.Wait(); err != nil {
		return nil, diag.Wrap("prepare the move", err, "")
	}

	errs := []error{providersFit(source, target)}
	for i := range clusters.Items {
		errs = append(errs, movable(&clusters.Items[i], &there))
	}
	for i := range machines.Items {
		if m := &machines.Items[i]; !m.Status.NodeRef.IsDefined() {
			errs = append(errs, fmt.Errorf("Machine %s/%s has no node yet", m.Namespace, m.Name))
		}
	}
	for i := range classes.Items {
		if c := &classes.Items[i]; hasPausedAnnotation(c) {
			errs = append(errs, fmt.Errorf("ClusterClass %s/%s is paused", c.Namespace, c.Name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, diag.Wrap("prepare the move", err, "wait until the clusters are Available; `fleetctl status` tells")
	}
	plan := &MovePlan{Namespaces: moveOrder(clusters.Items, classes.Items), Left: secrets}
	for i := range clusters.Items {
		plan.Clusters = append(plan.Clusters, kube.Key{Namespace: clusters.Items[i].Namespace, Name: clusters.Items[i].Name})
	}
	slices.SortFunc(plan.Clusters, func(a, b kube.Key) int { return cmp.Compare(a.String(), b.String()) })
	return plan, nil
}

// movable says what stands against moving cluster.
func movable(cluster *clusterv1.Cluster, there *clusterv1.ClusterList) error {
	name := cluster.Namespace + "/" + cluster.Name
	var errs []error
	if isPaused(cluster) {
		errs = append(errs, diag.Errorf("clusterctl cannot resume a move that was killed; if nothing else paused it, "+
			"see what is at the target before you unpause it here", "Cluster %s is paused", name))
	}
	if !cluster.DeletionTimestamp.IsZero() {
		errs = append(errs, fmt.Errorf("Cluster %s is being deleted", name))
	}
	initialization := cluster.Status.Initialization
	if p := initialization.InfrastructureProvisioned; p == nil || !*p {
		errs = append(errs, fmt.Errorf("the infrastructure of Cluster %s is not provisioned yet", name))
	}
	initialized := findCondition(cluster.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)
	if initialized == nil || initialized.Status != metav1.ConditionTrue {
		errs = append(errs, fmt.Errorf("the control plane of Cluster %s is not initialized yet", name))
	}
	for i := range there.Items {
		if there.Items[i].Namespace == cluster.Namespace && there.Items[i].Name == cluster.Name {
			errs = append(errs, fmt.Errorf("Cluster %s exists at the target already", name))
		}
	}
	return errors.Join(errs...)
}

// providersFit tells which providers of the source the target lacks, has in an older version, or that are not ready there.
func providersFit(source, target []InstalledProvider) error {
	var errs []error
	for _, p := range source {
		i := slices.IndexFunc(target, func(t InstalledProvider) bool { return t.Name == p.Name && t.Type == p.Type })
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("the target has no %s", p.Provider))
		case compareVersions(target[i].Version, p.Version) < 0:
			errs = append(errs, fmt.Errorf("the target has %s, which is older than %s here", target[i].Provider, p.Version))
		case !target[i].Ready:
			errs = append(errs, fmt.Errorf("%s is not ready at the target: %s", target[i].Provider, target[i].Reason))
		}
	}
	if len(source) == 0 {
		errs = append(errs, errors.New("no provider is installed here"))
	}
	return errors.Join(errs...)
}

// moveOrder lists the namespaces with Clusters or ClusterClasses: those with classes that others use first, else by name.
func moveOrder(clusters []clusterv1.Cluster, classes []clusterv1.ClusterClass) []string {
	lends := map[string]bool{}
	var namespaces []string
	for i := range clusters {
		namespaces = append(namespaces, clusters[i].Namespace)
		if class := clusters[i].GetClassKey(); class.Namespace != clusters[i].Namespace {
			lends[class.Namespace] = true
		}
	}
	for i := range classes {
		namespaces = append(namespaces, classes[i].Namespace)
	}
	rank := func(namespace string) int {
		if lends[namespace] {
			return 0
		}
		return 1
	}
	slices.SortFunc(namespaces, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b)) })
	return slices.Compact(namespaces)
}

// Move hands what plan lists over to the management cluster of to, one namespace after the other, with clusterctl's own
// mover. It must not be interrupted: clusterctl cannot resume a move, and a Cluster whose move was cut off stays paused. So it goes on
// when ctx is cancelled, until the namespace that it is at is done. Then it proves that every Cluster and Machine arrived.
func Move(ctx context.Context, from, to *Manager, plan *MovePlan, detail func(string)) error {
	if detail == nil {
		detail = func(string) {}
	}
	before, err := from.census(ctx)
	if err != nil {
		return err
	}
	for i, namespace := range plan.Namespaces {
		if err := ctx.Err(); err != nil {
			return diag.Wrap("move Cluster API objects", fmt.Errorf("stopped before namespace %s: %w", namespace, context.Cause(ctx)), "")
		}
		prefix := fmt.Sprintf("namespace %s (%d of %d): ", namespace, i+1, len(plan.Namespaces))
		stop := listen(func(message string) { detail(prefix + message) })
		err := from.clusterctl(nil).ObjectMover().Move(context.WithoutCancel(ctx), namespace, to.clusterctl(nil), false)
		stop()
		if err != nil {
			return diag.Wrap("move namespace "+namespace, err,
				"objects may be on both sides, paused; do not delete either cluster before every Cluster is whole on one of them")
		}
	}
	return verifyMoved(context.WithoutCancel(ctx), from, to, plan, before)
}

// census lists the Clusters and Machines of a management cluster.
func (m *Manager) census(ctx context.Context) (map[kube.Ref]bool, error) {
	all, err := m.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	found := map[kube.Ref]bool{}
	for _, c := range all {
		found[kube.Ref{GroupVersionKind: clusterKind, Key: c.Key()}] = true
		for _, machine := range c.Machines {
			key := kube.Key{Namespace: c.Namespace, Name: machine.Name}
			found[kube.Ref{GroupVersionKind: clusterv1.GroupVersion.WithKind("Machine"), Key: key}] = true
		}
	}
	return found, nil
}

// verifyMoved compares what was at the source before with what is at the target, and at the source, now.
func verifyMoved(ctx context.Context, from, to *Manager, plan *MovePlan, before map[kube.Ref]bool) error {
	arrived, err := to.census(ctx)
	if err != nil {
		return err
	}
	left, err := from.census(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for ref := range before {
		if !slices.Contains(plan.Namespaces, ref.Namespace) {
			continue
		}
		if !arrived[ref] {
			errs = append(errs, fmt.Errorf("%s did not arrive", ref))
		}
		if left[ref] {
			errs = append(errs, fmt.Errorf("%s is still at the source", ref))
		}
	}
	return diag.Wrap("compare both sides after the move", errors.Join(errs...), "do not delete the source cluster")
}

func hasPausedAnnotation(obj metav1.Object) bool {
	_, paused := obj.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}
