package validate

import "strings"

// plantsOfClaims are mistakes that show only in two objects together, and fields of Flux that its controllers cannot use. Each stands in
// the line with at.
func plantsOfClaims() (out []plant) {
	const budget = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: claim, namespace: platform}\nspec:\n" +
		"  selector: {matchLabels: {app: claim}}\n"
	const path = "\nspec:\n  ingressClassName: nginx\n  rules:\n  - host: shop.example.com\n    http:\n      paths:\n" +
		"      - backend: {service: {name: claim, port: {number: 80}}}\n        pathType: Prefix\n"
	const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: claim, namespace: platform}" + path
	const release = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: claim, namespace: platform}\n" +
		"spec: {interval: 1h, url: 'https://charts.example.com'}\n---\napiVersion: v1\nkind: ConfigMap\n" +
		"metadata: {name: claim, namespace: platform}\ndata: {host: a.example.com}\n---\n" +
		"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: claim, namespace: platform}\nspec:\n" +
		"  interval: 10m\n  chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: claim}}}\n"
	other := strings.NewReplacer("name: claim", "name: other", "selector: {", "selector:  {")
	for _, p := range []struct{ name, rule, objects, at string }{
		{"a budget of as many pods as there are", RuleValue, claimant("replicas: 2") + budget + "  minAvailable: 2\n", "minAvailable: 2"},
		{"a budget of more pods than there are", RuleValue, claimant("replicas: 2") + budget + "  minAvailable: 3\n", "minAvailable: 3"},
		{
			"a budget of all pods of two", RuleValue, claimant("replicas: 2") + "---\n" +
				strings.NewReplacer("name: claim", "name: other", "app: claim", "app: claim, more: a").Replace(claimant("replicas: 1")) +
				budget + "  minAvailable: 3\n", "minAvailable: 3",
		},
		{"a budget of half of one pod", RuleValue, claimant("replicas: 1") + budget + "  minAvailable: 50%\n", "minAvailable: 50%"},
		{
			"two controllers of the same pods", RuleValue,
			claimant("replicas: 2") + "---\n" + other.Replace(claimant("replicas: 2")), "  selector:  {",
		},
		{
			"two Ingresses of one path", RuleValue,
			ingress + "        path: /\n---\n" + other.Replace(ingress) + "        path:  /\n", "path:  /",
		},
		{"values that are a text", RuleType, release + "  values: |\n    a: b\n", "  values: |"},
		{"values that are a list of a release", RuleType, release + "  values:\n  - a: b\n", "  values:\n"},
		{
			"a path without a first name", RuleValue,
			release + "  valuesFrom:\n  - {kind: ConfigMap, name: claim, valuesKey: host,\n     targetPath: .server.host}\n", "targetPath:",
		},
		{
			"a path without a last name", RuleValue,
			release + "  valuesFrom:\n  - {kind: ConfigMap, name: claim, valuesKey: host,\n     targetPath: server.host.}\n", "targetPath:",
		},
		{
			"a patch of a release without a target", RuleKustomize,
			release + "  postRenderers:\n  - kustomize:\n      patches:\n      - target: {kind: Service}\n        patch: |\n" +
				"          - {op: remove, path: /spec/a}\n      - patch: '[{op: remove, path: /spec/b}]'\n", "      - patch: '",
		},
	} {
		out = append(out, plant{
			name: p.name, rule: p.rule, file: platform + "claim.yaml", becomes: p.objects, at: p.at,
			also: []string{RuleForeign, RuleMissingObject}, // the chart is elsewhere, and the Service of the Ingresses is nowhere
		})
	}
	return append(out,
		plant{
			name: "a patch without a target", rule: RuleKustomize, file: "features/web/namespaced/kustomization.yaml",
			becomes: "- patch: |\n    - op: remove\n      path: /spec/replicas\n", at: "- patch: |",
		},
		plant{
			name: "a patch in a file without a target", rule: RuleKustomize, file: "features/web/namespaced/kustomization.yaml",
			becomes: "- path: claim.yaml\n", at: "- path: claim.yaml", more: func(files map[string]string) {
				files["features/web/namespaced/claim.yaml"] = "- op: remove\n  path: /spec/replicas\n"
			},
		},
		plant{
			name: "a patch of Flux without a target", rule: RuleKustomize, file: mgmt + "clusters-staging.yaml",
			becomes: "  patches:\n  - patch: |\n      - op: remove\n        path: /spec/suspend\n", at: "  - patch: |",
		},
	)
}

// claimant is a Deployment with the label app: claim.
func claimant(field string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: claim, namespace: platform}\nspec:\n  " + field + "\n" +
		"  selector: {matchLabels: {app: claim}}\n  template:\n    metadata: {labels: {app: claim}}\n" +
		"    spec: {containers: [{name: a, image: a:v1}]}\n"
}
