package handover

import (
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

func ruleFor(group, resource string, operations ...admissionv1.OperationType) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}
}

// A gate is asked about what the API server asks it about, and about no other kinds.
func TestGateIsAsked(t *testing.T) {
	secret := request{
		operation: admissionv1.Create,
		resource:  schema.GroupResource{Resource: "secrets"}, namespaced: true, name: "a",
		labels: labels.Set{"l": "o"}, namespace: labels.Set{"l": "n"},
	}
	in := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"l": value}}
	}
	cluster := admissionv1.ClusterScope
	scoped := ruleFor("*", "*", "*")
	scoped.Scope = &cluster
	for name, c := range map[string]struct {
		webhook       webhook
		covers, asked bool
	}{
		"its kind":          {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("", "secrets", "CREATE")}}, true, true},
		"everything":        {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("*", "*", "*")}}, true, true},
		"with subresources": {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("*", "*/*", "*")}}, true, true},
		"only subresources": {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("*", "*/status", "*")}}, false, false},
		"deletions":         {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("*", "*", "DELETE")}}, false, false},
		"another group":     {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("apps", "*", "*")}}, false, false},
		"another kind":      {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("", "pods", "*")}}, false, false},
		"another scope":     {webhook{rules: []admissionv1.RuleWithOperations{scoped}}, false, false},
		"no rules":          {webhook{}, false, false},
		"its namespace":     {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("*", "*", "*")}, namespaces: in("n")}, true, true},
		"another namespace": {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("*", "*", "*")}, namespaces: in("x")}, true, false},
		"another label":     {webhook{rules: []admissionv1.RuleWithOperations{ruleFor("*", "*", "*")}, objects: in("x")}, true, false},
	} {
		g := c.webhook.gate("ValidatingWebhookConfiguration a", false)
		if covers, asked := g.covers(secret), g.asked(secret); covers != c.covers || asked != c.asked {
			t.Errorf("%s: covers %t, asked %t", name, covers, asked)
		}
	}
	except := gate{needs: []criterion{{except: []admissionv1.NamedRuleWithOperations{
		{ResourceNames: []string{"a"}, RuleWithOperations: ruleFor("", "secrets", "CREATE")},
	}}}}
	if except.asked(secret) {
		t.Error("a policy is asked about what it leaves out")
	}
	if other := (request{operation: admissionv1.Create, resource: secret.resource, namespaced: true, name: "b"}); !except.asked(other) {
		t.Error("a policy is not asked about another name than the one that it leaves out")
	}
}

// A webhook with side effects lets the API server refuse every dry run. Such a refusal is none of the object.
func TestDeafWebhook(t *testing.T) {
	for effects, deaf := range map[admissionv1.SideEffectClass]bool{"None": false, "NoneOnDryRun": false, "Some": true, "Unknown": true} {
		w := webhook{name: "a.example.com", effects: &effects, rules: []admissionv1.RuleWithOperations{ruleFor("*", "*", "*")}}
		g := w.gate("ValidatingWebhookConfiguration a", false)
		tester := (&side{Side: Side{Name: "new"}}).newTester(nil)
		ref := kube.Ref{Key: kube.Key{Namespace: "shop", Name: "a"}}
		if got := tester.isDeaf([]gate{g}, request{operation: admissionv1.Create}, ref); got != deaf {
			t.Errorf("%s: %t", effects, got)
		}
		if notes := strings.Join(tester.notes(), ""); strings.Contains(notes, "a.example.com") != deaf || len(tester.errs()) > 0 {
			t.Errorf("%s: %s, %v", effects, notes, tester.errs())
		}
	}
}

// The words of a refusal tell whose it is.
func TestIsIn(t *testing.T) {
	for says, c := range map[string]struct {
		gate gate
		is   bool
	}{
		`admission webhook "a.example.com" denied the request: no`: {gate{name: "a.example.com", of: "ValidatingWebhookConfiguration x"}, true},
		`admission webhook "ba.example.com" denied the request`:    {gate{name: "a.example.com", of: "ValidatingWebhookConfiguration x"}, false},
		`ValidatingAdmissionPolicy 'x' with binding 'y' denied`:    {gate{of: "ValidatingAdmissionPolicy x"}, true},
	} {
		if got := c.gate.isIn(errors.New(says)); got != c.is {
			t.Errorf("%s: %t", says, got)
		}
	}
}
