package validate

import "testing"

// A broken object without a namespace gets that of a kustomization.yaml above it, or of the Flux Kustomization. What is there may be of it.
func TestBrokenObjectGetsItsNamespaceElsewhere(t *testing.T) {
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: jellyfin}\nspec:\n  interval: 1h\n" +
		"  chart: {spec: {chart: jellyfin, sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}}}\n" + fault
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: media}\n"
	const policy = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: jellyfin}
spec: {podSelector: {matchLabels: {app.kubernetes.io/name: jellyfin}}, policyTypes: [Ingress]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: jellyfin}
spec: {maxUnavailable: 1, selector: {matchLabels: {app.kubernetes.io/name: jellyfin}}}
---
apiVersion: v1
kind: Service
metadata: {name: jellyfin}
spec: {selector: {app.kubernetes.io/name: jellyfin}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: jellyfin}
spec: {ingressClassName: nginx, defaultBackend: {service: {name: made-by-the-chart, port: {number: 80}}}}
`
	const all = "resources: [namespace.yaml, release.yaml, policy.yaml]\n"
	flux := func(path, spec string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: media, namespace: flux-system}\nspec:\n" +
			"  interval: 1h\n  prune: true\n  path: " + path + "\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + spec
	}
	for name, tt := range map[string]struct{ kustomization, overlay, flux, broken string }{
		"of its folder":       {"namespace: media\n" + all, "", flux("./apps/media", ""), "apps/media/release.yaml"},
		"of an overlay":       {all, "namespace: media\nresources: [../media]\n", flux("./apps/overlay", ""), "apps/media/release.yaml"},
		"of Flux":             {all, "", flux("./apps/media", "  targetNamespace: media\n"), "apps/media/release.yaml"},
		"of Flux and overlay": {all, "resources: [../media]\n", flux("./apps/overlay", "  targetNamespace: media\n"), "apps/media/release.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			files := infra("    crds: []\n", map[string]string{
				"infra/media.yaml": tt.flux, "apps/media/kustomization.yaml": tt.kustomization, "apps/media/namespace.yaml": namespace,
				"apps/media/release.yaml": release, "apps/media/policy.yaml": policy,
			})
			if tt.overlay != "" {
				files["apps/overlay/kustomization.yaml"] = tt.overlay
			}
			expect(t, validate(t, files, knownKinds(t)).Findings, "syntax "+tt.broken)
		})
	}
}
