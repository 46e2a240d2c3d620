//go:build integration

package handover

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionreviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// managing starts an API server with the CRDs and the inventory of a management cluster, whose provider is not running.
func managing(t *testing.T) *kube.Client {
	t.Helper()
	ctx := t.Context()
	c, _ := kubetest.Start(t)
	kubetest.ClusterAPI(t, c, "clusters", "machines")
	module, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	inventory, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "cmd", "clusterctl", "config", "crd", "bases",
		"clusterctl.cluster.x-k8s.io_providers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const provider = `
{apiVersion: v1, kind: Namespace, metadata: {name: capi-system}}
---
{apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3, kind: Provider, metadata: {namespace: capi-system, name: cluster-api},
 providerName: cluster-api, type: CoreProvider, version: v1.14.2}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: capi-system, name: manager, labels: {
  cluster.x-k8s.io/provider: cluster-api, clusterctl.cluster.x-k8s.io: ""}},
 spec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}
`
	for _, manifest := range [][]byte{inventory, []byte(provider)} {
		if _, err := kubetest.ApplyYAML(ctx, c, manifest, kube.ApplyOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	manager := &appsv1.Deployment{}
	if err := c.Get(ctx, kube.Key{Namespace: "capi-system", Name: "manager"}, manager); err != nil {
		t.Fatal(err)
	}
	manager.Status.ObservedGeneration = manager.Generation
	if err := c.Status().Update(ctx, manager); err != nil {
		t.Fatal(err)
	}
	return c
}

// shopAt makes the Cluster shop/shop with a Secret.
func shopAt(t *testing.T, c *kube.Client) {
	t.Helper()
	ctx, yes := t.Context(), true
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop"},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "TestCluster", Name: "shop",
		}},
	}
	for _, obj := range []client.Object{namespaceOf("shop"), cluster} {
		if err := c.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
	cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: &yes, ControlPlaneInitialized: &yes}
	cluster.Status.Conditions = []metav1.Condition{{
		Type: "ControlPlaneInitialized", Status: "True", Reason: "Fine", LastTransitionTime: metav1.Now(),
	}}
	if err := c.Status().Update(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "shop-ca", Labels: map[string]string{clusterv1.ClusterNameLabel: "shop"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind("Cluster"))},
		},
		Data: map[string][]byte{"tls.crt": []byte("a")},
	}
	if err := c.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
}

// policyOn denies operations on resources, with the message "not here, says the team".
func policyOn(operation, group, resources, match string) string {
	return fmt.Sprintf(`
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: on-%[2]s}, spec: {
  matchConstraints: {resourceRules: [{apiGroups: ["%[1]s"], apiVersions: ["*"], operations: [%[4]s], resources: ["%[2]s"]}]},
  matchConditions: [{name: some, expression: '%[3]s'}],
  validations: [{expression: "false", message: "not here, says the team"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: on-%[2]s},
 spec: {policyName: on-%[2]s, validationActions: [Deny]}}
`, group, resources, match, operation)
}

// webhookAt is a webhook for all resources whose server is at path of the server.
func webhookAt(server *httptest.Server, operation, kind, path string) string {
	ca, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return fmt.Sprintf(`
{apiVersion: admissionregistration.k8s.io/v1, kind: %s, metadata: {name: theirs}, webhooks: [{
  name: hook.example.com, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Fail,
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}},
  clientConfig: {url: "%s%s", caBundle: %s},
  rules: [{apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: [%s]}]}]}
`, kind, server.URL, path, ca, operation)
}

// hooks serves webhooks: one refuses, one changes the data of Secrets.
func hooks(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionreviewv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			t.Error(err)
			return
		}
		answer := &admissionreviewv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		switch {
		case r.URL.Path == "/refuse" && review.Request.Namespace == "shop":
			answer.Allowed, answer.Result = false, &metav1.Status{Message: "not here, says the team"}
		case review.Request.Kind.Kind == "Secret":
			kind := admissionreviewv1.PatchTypeJSONPatch
			answer.PatchType, answer.Patch = &kind, []byte(`[{"op":"replace","path":"/data/tls.crt","value":"Yg=="}]`)
		}
		review.Response = answer
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// What somebody else's webhook or policy at the target refuses, or changes, is found before either side is fenced, and
// in the plan.
func TestRefusedBeforeTheFence(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	source, target := managing(t), managing(t)
	shopAt(t, source)
	o := Options{
		Fleet: "f", Source: Side{Name: "old", Client: source}, Target: Side{Name: "new", Client: target},
		Drain: 10 * time.Second, BlockMove: 10 * time.Second,
	}
	plan, err := Look(ctx, o)
	if err != nil || len(plan.Untried) > 0 || plan.taker == nil || len(plan.taker.foreign)+len(plan.loser.foreign) > 0 {
		t.Fatalf("without anybody's policies: %+v, %v (%s)", plan, err, diag.Hint(err))
	}
	server := hooks(t)
	atSource := []struct{ name, manifest, says string }{
		{
			"a policy on deletions of Secrets", policyOn("DELETE", "", "secrets", `oldObject.metadata.namespace == "shop"`),
			"old would refuse to delete Secret shop/shop-ca: ",
		},
		{
			"a policy on changes of Clusters", policyOn("UPDATE", "cluster.x-k8s.io", "clusters", "true"),
			"old would refuse to change Cluster shop/shop: ",
		},
		{
			"a policy on pauses",
			strings.ReplaceAll(policyOn("UPDATE", "cluster.x-k8s.io", "clusters", "has(object.spec.paused) && object.spec.paused"),
				"on-clusters", "on-pauses"),
			"ValidatingAdmissionPolicy 'on-pauses'",
		},
		{
			"a webhook on deletions", webhookAt(server, "DELETE", "ValidatingWebhookConfiguration", "/refuse"),
			`old would refuse to delete Cluster shop/shop: admission webhook "hook.example.com"`,
		},
	}
	for _, c := range atSource {
		t.Run("at the source, "+c.name, func(t *testing.T) {
			defer put(ctx, t, source, c.manifest)()
			refusedBefore(ctx, t, o, c.says)
			o := o
			o.Target, o.Select = Side{}, []kube.Key{{Namespace: "shop", Name: "shop"}}
			_, _, looked := LookDetach(ctx, o)
			_, detached := Detach(ctx, o)
			for _, err := range []error{looked, detached} {
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(diag.Hint(err), "nothing has been changed") {
					t.Errorf("the detachment: %v (%s)", err, diag.Hint(err))
				}
			}
			untouched(t, source, target)
		})
	}
	for _, c := range []struct{ name, manifest, says string }{
		{
			"a policy on namespaces", policyOn("CREATE", "", "namespaces", `object.metadata.name == "shop"`),
			"ValidatingAdmissionPolicy 'on-namespaces'",
		},
		{
			"a policy on Secrets", policyOn("CREATE", "", "secrets", `object.metadata.namespace == "shop"`),
			"ValidatingAdmissionPolicy 'on-secrets'",
		},
		{"a policy on Clusters", policyOn("CREATE", "cluster.x-k8s.io", "clusters", "true"), "ValidatingAdmissionPolicy 'on-clusters'"},
		{
			"a webhook that refuses", webhookAt(server, "CREATE", "ValidatingWebhookConfiguration", "/refuse"),
			`admission webhook "hook.example.com"`,
		},
		{
			"a webhook that changes", webhookAt(server, "CREATE", "MutatingWebhookConfiguration", "/change"),
			"in .data.tls.crt (webhook hook.example.com",
		},
		{
			"a quota", `{apiVersion: v1, kind: ResourceQuota, metadata: {name: theirs, namespace: shop}, spec: {hard: {count/secrets: "0"}}}`,
			"ResourceQuota theirs of new allows 0 of count/secrets",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "a policy on namespaces" { // the dry runs of the others need the namespace
				until(ctx, t, func(ctx context.Context) bool {
					err := target.Create(ctx, namespaceOf("shop"))
					return err == nil || apierrors.IsAlreadyExists(err)
				})
			}
			defer put(ctx, t, target, c.manifest)()
			refusedBefore(ctx, t, o, c.says)
			untouched(t, source, target)
		})
	}
}

// put applies a manifest, and returns a function that deletes its objects.
func put(ctx context.Context, t *testing.T, c *kube.Client, manifest string) func() {
	t.Helper()
	objects, err := kube.ParseYAML([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(ctx, objects, kube.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
	return func() {
		for _, obj := range slices.Backward(objects) {
			if err := c.WithWatch.Delete(context.WithoutCancel(ctx), obj); err != nil {
				t.Error(err)
			}
		}
	}
}

// refusedBefore checks that the plan and a run say what is refused.
func refusedBefore(ctx context.Context, t *testing.T, o Options, says string) {
	t.Helper()
	var plan *Plan
	var err error
	until(ctx, t, func(ctx context.Context) bool { // what an earlier case has deleted may still be in force
		plan, err = Look(ctx, o)
		return err != nil && strings.Contains(err.Error(), says)
	})
	if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(diag.Hint(err), "nothing has been changed") {
		t.Errorf("the plan: %+v, %v (%s)", plan, err, diag.Hint(err))
	}
	if _, err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("the run: %v", err)
	}
}

// until calls done until it returns true. The API server enforces a policy a moment after it has stored or deleted it, and no watch shows
// when.
func until(ctx context.Context, t *testing.T, done func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		return done(ctx), nil
	})
	if err != nil {
		t.Error(err)
	}
}

// untouched checks that neither side is fenced or has a journal.
func untouched(t *testing.T, sides ...*kube.Client) {
	t.Helper()
	for i, c := range sides {
		fenced, err := (&side{Side: Side{Client: c}}).isFenced(t.Context())
		if err != nil || fenced {
			t.Errorf("side %d is fenced: %v, %v", i, fenced, err)
		}
		if j, err := ReadJournal(t.Context(), c); err != nil || j != nil {
			t.Errorf("the journal of side %d: %+v, %v", i, j, err)
		}
	}
}

// A dry run into a namespace that does not exist tells nothing: the plan says so, and a restore or a run creates the
// namespace, tries, and leaves the fence down.
func TestRefusedInANewNamespace(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	source, target := managing(t), managing(t)
	shopAt(t, source)
	policy := policyOn("CREATE", "", "secrets", `object.metadata.namespace == "shop" || object.metadata.name == "canary"`)
	if _, err := kubetest.ApplyYAML(ctx, target, []byte(policy), kube.ApplyOptions{FieldManager: "test"}); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, func(ctx context.Context) bool {
		canary := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "canary"}}
		return target.Create(ctx, canary, client.DryRunAll) != nil
	})
	o := Options{
		Fleet: "f", Source: Side{Name: "old", Client: source}, Target: Side{Name: "new", Client: target},
		Drain: 10 * time.Second, BlockMove: 10 * time.Second,
	}
	plan, err := Look(ctx, o)
	if err != nil || len(plan.Untried) != 1 || !strings.Contains(plan.Untried[0], "namespace shop") {
		t.Fatalf("the plan: %+v, %v", plan, err)
	}
	if namespaces := (&corev1.NamespaceList{}); target.List(ctx, namespaces) != nil ||
		slices.ContainsFunc(namespaces.Items, func(n corev1.Namespace) bool { return n.Name == "shop" }) {
		t.Error("the plan has created the namespace")
	}
	graph, err := managerOf(t, source).Graph(ctx, capi.GraphOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := graph.Portable()
	if err != nil {
		t.Fatal(err)
	}
	from := RestoreOptions{
		Fleet: "f", Target: o.Target, Snapshot: "s", Source: Party{"old", "u"}, Objects: objects, Drain: 10 * time.Second,
	}
	if notes, err := LookRestore(ctx, from); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "namespace shop") {
		t.Errorf("the dry run of a restore: %v, %v", notes, err)
	}
	restore := func() error { _, err := Restore(ctx, from); return err }
	run := func() error { _, err := Run(ctx, o); return err }
	for name, do := range map[string]func() error{"a restore": restore, "a run": run} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "not here, says the team") ||
			!strings.Contains(err.Error(), "shop-ca") || !strings.Contains(diag.Hint(err), userPrefix) {
			t.Errorf("%s: %v (%s)", name, err, diag.Hint(err))
		}
		untouched(t, source, target)
	}
	if _, err := LookRestore(ctx, from); err == nil || !strings.Contains(err.Error(), "shop-ca") {
		t.Errorf("the dry run of a restore, now that the namespace exists: %v", err)
	}
}

// A policy at the target that is about changes only cannot be tried on objects that do not exist there. The plan says so.
func TestChangesAtTheTargetAreUntried(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	source, target := managing(t), managing(t)
	shopAt(t, source)
	if err := target.Create(ctx, namespaceOf("shop")); err != nil {
		t.Fatal(err)
	}
	defer put(ctx, t, target, policyOn("UPDATE", "", "secrets", `object.metadata.namespace == "shop"`))()
	plan, err := Look(ctx, Options{
		Fleet: "f", Source: Side{Name: "old", Client: source}, Target: Side{Name: "new", Client: target},
		Drain: 10 * time.Second, BlockMove: 10 * time.Second,
	})
	const wanted = "whether new lets the hand-over change Secret shop/shop-ca was not tried: the ValidatingAdmissionPolicy on-secrets"
	if err != nil || len(plan.Untried) != 1 || !strings.HasPrefix(plan.Untried[0], wanted) {
		t.Errorf("%+v, %v", plan, err)
	}
}

// The webhooks of providers are put aside, because their controllers are stopped. Those of others stay, whatever they name: a policy engine
// keeps running, and writes its configurations again.
func TestAside(t *testing.T) {
	aside := (&side{manager: managerOf(t, managing(t))}).aside([]string{"cluster.x-k8s.io"})
	of := func(namespace string) *admissionv1.ServiceReference {
		return &admissionv1.ServiceReference{Namespace: namespace, Name: "webhook"}
	}
	for name, c := range map[string]struct {
		group   string
		service *admissionv1.ServiceReference
		aside   bool
	}{
		"a provider's":                      {"cluster.x-k8s.io", of("capi-system"), true},
		"a provider's for all groups":       {"*", of("capi-system"), true},
		"a provider's for another group":    {"apps", of("capi-system"), false},
		"a policy engine's":                 {"cluster.x-k8s.io", of("kyverno"), false},
		"a policy engine's for all groups":  {"*", of("gatekeeper-system"), false},
		"somebody's at a URL":               {"cluster.x-k8s.io", nil, false},
		"somebody's at a URL, for anything": {"*", nil, false},
	} {
		w := webhook{rules: []admissionv1.RuleWithOperations{ruleFor(c.group, "*", "*")}, service: c.service}
		if got, err := aside(t.Context(), &w); err != nil || got != c.aside {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

func managerOf(t *testing.T, c *kube.Client) *capi.Manager {
	t.Helper()
	manager, err := capi.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return manager
}
