package handover

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// conditionName names the match condition that lets the writes of hand-overs skip a webhook. The writes have to skip it,
// because the controller that serves the webhook is scaled to 0. They may skip it, because the copied objects passed the
// webhook when they were created at the source.
const conditionName = "fleetctl-handover"

// pass returns the match condition. If admit is not "", the service accounts of that namespace skip the webhook too.
func pass(admit string) admissionv1.MatchCondition {
	expression := fmt.Sprintf("!request.userInfo.username.startsWith(%q)", userPrefix)
	if admit != "" {
		expression += " && !(" + ofNamespace(admit) + ")"
	}
	return admissionv1.MatchCondition{Name: conditionName, Expression: expression}
}

// bypass lets the writes of hand-overs skip the webhooks for groups, and, if admit is not "", the writes of that
// namespace's service accounts. The writes of everybody else still go through the webhooks.
func (s *side) bypass(ctx context.Context, groups []string, admit string) error {
	aside := s.aside(groups)
	return s.editWebhooks(ctx, func(ctx context.Context, w *webhook) ([]admissionv1.MatchCondition, error) {
		concerned, err := aside(ctx, w)
		if err != nil || !concerned || slices.ContainsFunc(*w.conditions, passes) {
			return *w.conditions, err
		}
		return append(slices.Clone(*w.conditions), pass(admit)), nil
	})
}

// aside returns a function that tells whether bypass puts a webhook aside: one of a provider for an API group that is
// handed over. Those of others, such as a policy engine, stay: their servers keep running, they guard the cluster, and
// some of them write their configurations again when somebody changes them.
func (s *side) aside(groups []string) func(context.Context, *webhook) (bool, error) {
	var providers map[string]bool // namespaces; nil until they are needed
	return func(ctx context.Context, w *webhook) (bool, error) {
		concerned := slices.ContainsFunc(w.rules, func(r admissionv1.RuleWithOperations) bool {
			return slices.ContainsFunc(r.APIGroups, func(g string) bool { return g == "*" || slices.Contains(groups, g) })
		})
		if !concerned || w.service == nil {
			return false, nil
		}
		if providers == nil {
			deployments, err := s.manager.ProviderDeployments(ctx)
			if err != nil {
				return false, err
			}
			providers = map[string]bool{}
			for i := range deployments {
				providers[deployments[i].Namespace] = true
			}
		}
		return providers[w.service.Namespace], nil
	}
}

// untilPassed returns once the hand-over's writes skip the webhooks, whose controllers are stopped. No watch tells
// whether an API server has noticed the match conditions: only a request does. The requests are dry runs.
func (s *side) untilPassed(ctx context.Context, graph *capi.Graph) error {
	ctx, cancel := context.WithTimeout(ctx, fenceTime)
	defer cancel()
	err := kube.Each(webhookProbes, graph.OneOfEach(JournalKey.Namespace, probeName), func(probe *unstructured.Unstructured) error {
		err := s.as.DryRunAdmission(ctx, probe, nil)
		if ctx.Err() == nil {
			return nil // a refusal is an answer without the webhook too: the probe is not a valid object
		}
		return err
	})
	return diag.Wrap("skip the webhooks of "+s.Name, err,
		"find out who removes the match condition "+conditionName+" from its webhook configurations")
}

// webhookProbes bounds the probes that run at once.
const webhookProbes = 8

// restoreWebhooks undoes bypass.
func (s *side) restoreWebhooks(ctx context.Context) error {
	return s.editWebhooks(ctx, func(_ context.Context, w *webhook) ([]admissionv1.MatchCondition, error) {
		return slices.DeleteFunc(slices.Clone(*w.conditions), passes), nil
	})
}

func passes(c admissionv1.MatchCondition) bool { return c.Name == conditionName }

// webhook has the fields of a webhook, validating or mutating, that a hand-over reads and changes.
type webhook struct {
	name       string
	service    *admissionv1.ServiceReference // nil for a webhook at a URL
	rules      []admissionv1.RuleWithOperations
	conditions *[]admissionv1.MatchCondition
	effects    *admissionv1.SideEffectClass
	// namespaces and objects select what the webhook is asked about.
	namespaces, objects *metav1.LabelSelector
}

// configuration is an object with webhooks.
type configuration struct {
	kube.Object

	webhooks []webhook
}

// configurations is one kind of objects with webhooks.
type configurations struct {
	kind   string
	alters bool
	list   func(context.Context) ([]configuration, error)
}

func (s *side) configurations() []configurations {
	return []configurations{
		{"ValidatingWebhookConfiguration", false, s.validating},
		{"MutatingWebhookConfiguration", true, s.mutating},
	}
}

// editWebhooks replaces the match conditions of each webhook by the result of edit.
func (s *side) editWebhooks(
	ctx context.Context, edit func(context.Context, *webhook) ([]admissionv1.MatchCondition, error),
) error {
	for _, of := range s.configurations() {
		err := kube.Retry(ctx, func(ctx context.Context) error {
			all, err := of.list(ctx)
			if err != nil {
				return err
			}
			for _, c := range all {
				changed := false
				for i := range c.webhooks {
					w := &c.webhooks[i]
					edited, err := edit(ctx, w)
					if err != nil {
						return err
					}
					changed = changed || len(edited) != len(*w.conditions)
					*w.conditions = edited
				}
				if !changed {
					continue
				}
				if err := again(s.Client.Update(ctx, c.Object)); err != nil && !kube.IsAbsent(err) {
					return fmt.Errorf("edit %s %s: %w", of.kind, c.GetName(), err)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("edit the webhooks of %s: %w", s.Name, err)
		}
	}
	return nil
}

// validating lists the ValidatingWebhookConfigurations.
func (s *side) validating(ctx context.Context) ([]configuration, error) {
	list := &admissionv1.ValidatingWebhookConfigurationList{}
	err := s.Client.List(ctx, list)
	return mapped(list.Items, func(c *admissionv1.ValidatingWebhookConfiguration) configuration {
		return configuration{c, mapped(c.Webhooks, func(w *admissionv1.ValidatingWebhook) webhook {
			return webhook{
				w.Name, w.ClientConfig.Service, w.Rules, &w.MatchConditions, w.SideEffects, w.NamespaceSelector, w.ObjectSelector,
			}
		})}
	}), err
}

// mutating lists the MutatingWebhookConfigurations.
func (s *side) mutating(ctx context.Context) ([]configuration, error) {
	list := &admissionv1.MutatingWebhookConfigurationList{}
	err := s.Client.List(ctx, list)
	return mapped(list.Items, func(c *admissionv1.MutatingWebhookConfiguration) configuration {
		return configuration{c, mapped(c.Webhooks, func(w *admissionv1.MutatingWebhook) webhook {
			return webhook{
				w.Name, w.ClientConfig.Service, w.Rules, &w.MatchConditions, w.SideEffects, w.NamespaceSelector, w.ObjectSelector,
			}
		})}
	}), err
}

// mapped returns the result of do for each item. do may keep the address of the item.
func mapped[T, U any](items []T, do func(*T) U) []U {
	out := make([]U, 0, len(items))
	for i := range items {
		out = append(out, do(&items[i]))
	}
	return out
}
