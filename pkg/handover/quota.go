package handover

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/capi"
)

// quotas returns the ResourceQuotas of the target that limit how many objects of the graph's kinds its namespaces may
// have. A dry run does not count: each object alone would pass.
func (t *tester) quotas(ctx context.Context) ([]corev1.ResourceQuota, error) {
	list := &corev1.ResourceQuotaList{}
	if err := t.list(ctx, list); err != nil {
		return nil, fmt.Errorf("list the ResourceQuotas of %s: %w", t.side.Name, err)
	}
	namespaces := map[string]bool{}
	for _, item := range t.graph.Items {
		namespaces[item.GetNamespace()] = true
	}
	var limiting []corev1.ResourceQuota
	for _, q := range list.Items {
		limits := false
		for kind := range t.resources {
			limits = limits || len(t.limits(&q, kind)) > 0
		}
		if namespaces[q.Namespace] && limits {
			limiting = append(limiting, q)
		}
	}
	return limiting, nil
}

// limits returns the names under which a quota limits the number of objects of a kind. A quota with scopes is about
// Pods and volumes only.
func (t *tester) limits(q *corev1.ResourceQuota, kind schema.GroupKind) []corev1.ResourceName {
	c, known := t.resources[kind]
	if !known || len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
		return nil
	}
	var names []corev1.ResourceName
	for _, name := range []string{"count/" + c.resource.String(), c.resource.String()} { // such as count/secrets and secrets
		if _, limited := q.Spec.Hard[corev1.ResourceName(name)]; limited {
			names = append(names, corev1.ResourceName(name))
		}
	}
	return names
}

// count compares quotas with the number of objects that would arrive.
func (t *tester) count(quotas []corev1.ResourceQuota, arriving []*capi.Item) {
	for i := range quotas {
		q := &quotas[i]
		comes := map[corev1.ResourceName]int64{}
		for _, item := range arriving {
			if item.GetNamespace() != q.Namespace {
				continue
			}
			for _, name := range t.limits(q, item.GroupVersionKind().GroupKind()) {
				comes[name]++
			}
		}
		for name, n := range comes {
			hard, used := q.Spec.Hard[name], q.Status.Used[name]
			sum := used.DeepCopy()
			sum.Add(*resource.NewQuantity(n, resource.DecimalSI))
			if sum.Cmp(hard) > 0 {
				t.refuse(fmt.Errorf("the ResourceQuota %s of %s allows %s of %s in the namespace %s: it has %s, and %d would come",
					q.Name, t.side.Name, hard.String(), name, q.Namespace, used.String(), n))
			}
		}
	}
}
