package capi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// WaitWebhooks waits for three things: cert-manager has given the API server the certificates of all webhooks that clusterctl installed;
// Cluster API's own webhooks admit a Cluster in a dry run; and every webhook server answers with a certificate that the API server trusts.
// detail, if not nil, is told what it waits for, and after a while why.
func (m *Manager) WaitWebhooks(ctx context.Context, detail func(string)) error {
	var found [2]kube.Objects // mutating webhooks first, because probesOf prefers them
	group, watchCtx := errgroup.WithContext(ctx)
	for i, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		group.Go(func() error {
			sel := kube.Selection{Labels: map[string]string{clusterctlv1.ClusterctlLabel: ""}}
			waiting := ""
			err := m.kube.Watch(watchCtx, admissionv1.SchemeGroupVersion.WithKind(kind), sel, func(objects kube.Objects) (bool, error) {
				if next := withoutCA(objects); next != "" {
					if next != waiting && detail != nil {
						detail("waiting until cert-manager gives " + kind + " " + next + " its certificate authority")
					}
					waiting = next
					return false, nil
				}
				found[i] = objects
				return true, nil
			})
			if err != nil {
				return fmt.Errorf("wait for the certificate of %s %s: %w", kind, waiting, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := m.kube.DryRunAdmission(ctx, probeCluster(), detail); err != nil {
		return err
	}
	probes, err := m.probesOf(ctx, found[:])
	if err != nil {
		return err
	}
	return kube.Each(webhookProbes, probes, func(probe *unstructured.Unstructured) error {
		return m.kube.UntilWebhooksAnswer(ctx, probe, detail)
	})
}

// webhookProbes bounds the concurrent probes.
const webhookProbes = 8

// probesOf returns one empty object for each webhook server, of a kind whose creation calls this server. Only a call shows whether the API
// server trusts the server: after cert-manager has issued a new certificate, the API server has the old certificate authority for some
// seconds. It prefers mutating webhooks, because the API server calls them before it checks required fields.
func (m *Manager) probesOf(ctx context.Context, configurations []kube.Objects) ([]*unstructured.Unstructured, error) {
	probes := map[string]*unstructured.Unstructured{}
	for _, objects := range configurations {
		webhooks, err := webhooksOf(objects)
		if err != nil {
			return nil, err
		}
		for i := range webhooks {
			server := serverOf(&webhooks[i].ClientConfig)
			if probes[server] != nil {
				continue
			}
			probe, err := m.probeFor(ctx, webhooks[i].Rules)
			if err != nil {
				return nil, fmt.Errorf("find a kind that webhook %s admits: %w", webhooks[i].Name, err)
			}
			if probe != nil {
				probes[server] = probe
			}
		}
	}
	return slices.Collect(maps.Values(probes)), nil
}

// serverOf identifies the server of a webhook.
func serverOf(config *admissionv1.WebhookClientConfig) string {
	if config.Service != nil {
		return config.Service.Namespace + "/" + config.Service.Name
	}
	return ptr.Deref(config.URL, "")
}

// webhooksOf returns the webhooks of configurations of both kinds. Both kinds have the fields that are read here, under the same names.
func webhooksOf(configurations kube.Objects) ([]admissionv1.ValidatingWebhook, error) {
	var all []admissionv1.ValidatingWebhook
	for _, obj := range configurations {
		configuration := &admissionv1.ValidatingWebhookConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, configuration); err != nil {
			return nil, fmt.Errorf("read %s: %w", kube.RefOf(obj), err)
		}
		all = append(all, configuration.Webhooks...)
	}
	return all, nil
}

// probeFor returns an object whose creation matches one of the rules. It returns nil if no rule names a kind of the cluster.
func (m *Manager) probeFor(ctx context.Context, rules []admissionv1.RuleWithOperations) (*unstructured.Unstructured, error) {
	for _, rule := range rules {
		create := slices.Contains(rule.Operations, admissionv1.Create) || slices.Contains(rule.Operations, admissionv1.OperationAll)
		named := len(rule.APIGroups) > 0 && len(rule.APIVersions) > 0 && rule.APIGroups[0] != "*" && rule.APIVersions[0] != "*"
		if !create || !named {
			continue
		}
		for _, resource := range rule.Resources {
			if strings.ContainsAny(resource, "*/") {
				continue
			}
			probe, err := m.emptyObject(ctx, schema.GroupVersionResource{Group: rule.APIGroups[0], Version: rule.APIVersions[0], Resource: resource})
			if kube.IsAbsent(err) {
				continue // a rule may name a kind that this version of the provider no longer has
			}
			return probe, err
		}
	}
	return nil, nil
}

func (m *Manager) emptyObject(ctx context.Context, resource schema.GroupVersionResource) (*unstructured.Unstructured, error) {
	gvk, err := m.kube.KindFor(ctx, resource)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	obj.SetName(probeName)
	namespaced, err := m.kube.IsObjectNamespaced(obj)
	if err != nil {
		return nil, err
	}
	if namespaced {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	return obj, nil
}

// injectAnnotations are the annotations on objects into which cert-manager writes a certificate authority.
var injectAnnotations = []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret"}

// withoutCA returns the first name of a configuration that still has to get its certificate authority, or "".
func withoutCA(configurations kube.Objects) string {
	for _, key := range slices.SortedFunc(maps.Keys(configurations), func(a, b kube.Key) int { return strings.Compare(a.Name, b.Name) }) {
		if !hasCA(configurations[key]) {
			return key.Name
		}
	}
	return ""
}

// hasCA tells whether all webhooks of a configuration have a certificate authority. A configuration that does not get it from cert-manager
// needs none.
func hasCA(obj *unstructured.Unstructured) bool {
	if !slices.ContainsFunc(injectAnnotations, func(name string) bool { return obj.GetAnnotations()[name] != "" }) {
		return true
	}
	webhooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	for _, each := range webhooks {
		webhook, ok := each.(map[string]any)
		if !ok {
			continue
		}
		if ca, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle"); ca == "" {
			return false
		}
	}
	return true
}

// probeName is the name of objects in dry runs.
const probeName = "fleetctl-dry-run"

// probeCluster returns a Cluster that Cluster API's webhooks admit. It is only for dry runs. The process with the admission webhooks also
// serves the conversion webhooks, with the same certificate, so they answer too. A conversion itself cannot be probed with an
// infrastructure kind that does not exist.
func probeCluster() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": metav1.NamespaceDefault, "name": probeName},
		"spec": map[string]any{"infrastructureRef": map[string]any{
			"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ProbeCluster", "name": probeName,
		}},
	}}
	obj.SetGroupVersionKind(clusterKind)
	return obj
}
