package validate

// plantsInForms are texts that a schema takes, and that the API server, Flux or a machine refuses. Each stands in the line with at.
func plantsInForms() (out []plant) {
	for _, p := range []struct{ name, rule, object, at string }{
		{
			"an image with two tags", RuleValue, "apiVersion: v1\nkind: Pod\nmetadata: {name: form, namespace: platform}\nspec:\n  containers:\n" +
				"  - name: a\n    image: acme/web:v1:v2\n", "image: acme",
		},
		{
			"a resource in the singular", RuleValue, "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: form, namespace: " +
				"platform}\nrules:\n- apiGroups: [\"\"]\n  resources:\n  - pod\n  verbs: [get]\n", "- pod",
		},
		{
			"an address of a registry with a tag", RuleValue, "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: " +
				"{name: form, namespace: platform}\nspec:\n  interval: 1h\n  url: oci://ghcr.io/acme/redis:1.2.3\n", "url: oci",
		},
		{
			"a type of a Provider that Flux does not have", RuleValue, "apiVersion: notification.toolkit.fluxcd.io/v1beta3\nkind: Provider\n" +
				"metadata: {name: form, namespace: platform}\nspec:\n  type: slak\n  address: https://hooks.example.com\n", "type: slak",
		},
		{
			"a certificate for a URL", RuleRefused, "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfig\nmetadata: {name: form, " +
				"namespace: platform}\nspec:\n  clusterConfiguration:\n    apiServer:\n      certSANs:\n      - https://api.example.com\n",
			"- https://api",
		},
		{
			"a flag with its dashes", RuleRefused, "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfig\nmetadata: {name: form, " +
				"namespace: platform}\nspec:\n  joinConfiguration:\n    nodeRegistration:\n      kubeletExtraArgs:\n      - name: --v\n        " +
				"value: \"2\"\n", "- name: --v",
		},
	} {
		out = append(out, plant{
			name: p.name, rule: p.rule, file: platform + "forms.yaml", becomes: p.object, at: p.at, also: []string{RuleUnknownKind},
		})
	}
	return append(out, plant{
		name: "kustomize finds no such field", rule: RuleKustomize, file: "features/web/namespaced/kustomization.yaml",
		becomes: "- target: {kind: Deployment}\n  patch: |\n    - op: remove\n      path: /spec/nothing\n", at: "path: /spec/nothing",
	})
}
