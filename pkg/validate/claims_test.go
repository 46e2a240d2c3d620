package validate

import (
	"slices"
	"strings"
	"testing"
)

// Objects that look as if they claimed what others have, and that do not, are no finding.
func TestClaimsOfTheirOwn(t *testing.T) {
	files := rawRepo()
	budget := func(name, field string) string {
		return "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: " + name + ", namespace: claims}\n" +
			"spec: {selector: {matchLabels: {app: " + name + "}}, " + field + "}\n"
	}
	pods := func(kind, name, label, field string) string {
		return "---\napiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: claims}\n" +
			"spec: {selector: {matchLabels: {app: " + label + "}}, " + field +
			"template: {metadata: {labels: {app: " + label + "}}, spec: {containers: [{name: a, image: 'a:v1'}]}}}\n"
	}
	ingress := func(name, annotation, spec, path string) string {
		return "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: " + name + ", namespace: claims, annotations: {" +
			annotation + "}}\nspec: {" + spec + "rules: [{host: a.example.com, http: {paths: [{" + path +
			", backend: {service: {name: front, port: {number: 80}}}}]}}]}\n"
	}
	twice := func(name, annotation, spec, path string) string {
		return ingress(name, annotation, spec, path) + ingress(name+"-too", annotation, spec, path)
	}
	const whole, nginx = "path: /, pathType: Prefix", "ingressClassName: nginx, "
	files["infra/claims.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: claims}\n" +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: front, namespace: claims}\n" +
		"spec: {selector: {app: enough}, ports: [{port: 80}]}\n" +
		pods("Deployment", "enough", "enough", "replicas: 3, ") + budget("enough", "minAvailable: 2") +
		pods("StatefulSet", "share", "share", "serviceName: front, replicas: 3, ") + budget("share", "minAvailable: 50%") +
		pods("Deployment", "most", "most", "replicas: 1, ") + budget("most", "maxUnavailable: 50%") +
		pods("DaemonSet", "each", "each", "") + budget("each", "minAvailable: 1") +
		pods("DaemonSet", "each-amd64", "node", "") + pods("DaemonSet", "each-arm64", "node", "") + // as flannel has them, for other nodes
		pods("Deployment", "idle", "idle", "replicas: 0, ") + budget("idle", "minAvailable: 1") +
		pods("Deployment", "idle-too", "idle", "replicas: 2, ") +
		pods("Deployment", "scaled", "scaled", "replicas: 1, ") + budget("scaled", "minAvailable: 1") +
		pods("Deployment", "events", "events", "replicas: 1, ") + budget("events", "minAvailable: 1") + `---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: scaled, namespace: claims}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: scaled}}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: events, namespace: claims}
spec: {scaleTargetRef: {name: events}, triggers: []}
---
apiVersion: v1
kind: Namespace
metadata: {name: others}
` + strings.ReplaceAll(pods("Deployment", "enough", "enough", "replicas: 3, "), "namespace: claims", "namespace: others") +
		ingress("a", "", nginx, whole) +
		ingress("b", "", "ingressClassName: internal, ", whole) +
		ingress("c", "", nginx, "path: /, pathType: Exact") +
		ingress("d", "", nginx, "path: /shop, pathType: Prefix") +
		ingress("e", `nginx.ingress.kubernetes.io/canary: "true"`, nginx, whole) +
		ingress("f", "traefik.ingress.kubernetes.io/router.entrypoints: web", "", whole) +
		ingress("g", "traefik.ingress.kubernetes.io/router.entrypoints: websecure", "", whole) +
		ingress("h", "", "ingressClassName: alb, ", whole) +
		ingress("i", "", "ingressClassName: alb, ", whole) +
		twice("alb-internet", "", "ingressClassName: alb-internet-facing, ", whole) +
		twice("gce", "kubernetes.io/ingress.class: gce-regional-external", "", whole) +
		twice("tailscale", "", "ingressClassName: tailscale, ", whole) +
		twice("cilium", "", "ingressClassName: cilium, ", whole) +
		twice("funnel", `tailscale.com/funnel: "true"`, "ingressClassName: ts, ", whole) +
		twice("own", "ingress.cilium.io/loadbalancer-mode: dedicated", "ingressClassName: net, ", whole) +
		strings.ReplaceAll(twice("any", "", "", whole), "host: a.example.com, ", "") + `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: others}
spec: {interval: 1h, url: "https://charts.example.com"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values, namespace: others}
data: {host: a.example.com}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: one, namespace: others}
spec:
  interval: 1h
  chart: {spec: {chart: a, sourceRef: {kind: HelmRepository, name: charts}}}
  valuesFrom:
  - {kind: ConfigMap, name: values, valuesKey: host, targetPath: 'servers[0].host'}
  - {kind: ConfigMap, name: values, valuesKey: host, targetPath: 'annotations.kubernetes\.io/host'}
  - {kind: ConfigMap, name: values, valuesKey: host, targetPath: 'matrix[0][1]'}
  values:
  postRenderers:
  - kustomize:
      patches:
      - patch: |
          apiVersion: v1
          kind: Service
          metadata: {name: a}
          spec: {type: NodePort}
      - target: {kind: Service}
        patch: |
          - {op: remove, path: /spec/type}
      - target: {}
        patch: |
          - {op: add, path: /metadata/labels, value: {}}
`
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.File == "infra/claims.yaml" && !slices.Contains([]string{RuleForeign, RuleUnknownKind}, f.Rule) {
			t.Errorf("%s [%s] (%s)", f, f.Rule, f.Hint)
		}
	}
}

// A budget is wrong only where it is certain how many pods there are. An autoscaler that the repo does not have may scale a Deployment
// without a number.
func TestClaimOfOneDeployment(t *testing.T) {
	for name, c := range map[string]struct {
		manifests string
		want      int
	}{
		"a number":   {claimant("replicas: 1"), 1},
		"no number":  {claimant("paused: false"), 1},
		"a variable": {claimant("replicas: ${count}"), 0},
		"beside a chart from outside": {claimant("replicas: 1") + "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\n" +
			"metadata: {name: charts, namespace: platform}\nspec: {interval: 1h, url: 'https://charts.example.com'}\n---\n" +
			"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: more, namespace: platform}\n" +
			"spec: {interval: 1h, chart: {spec: {chart: more, sourceRef: {kind: HelmRepository, name: charts}}}}\n", 0},
		"no number in default": {strings.ReplaceAll(claimant("paused: false"), "namespace: platform", "namespace: default"), 0},
		"two that are one each": {
			claimant("replicas: 1") + "---\n" + strings.NewReplacer("name: claim", "name: more", "app: claim", "app: claim, more: a").
				Replace(claimant("replicas: 1")), 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := rawRepo()
			namespace := "platform"
			if strings.Contains(c.manifests, "namespace: default") {
				namespace = "default"
			}
			files["infra/claims.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: platform}\n---\n" + c.manifests +
				"---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: claim, namespace: " + namespace + "}\n" +
				"spec: {minAvailable: 1, selector: {matchLabels: {app: claim}}}\n"
			found := 0
			for _, f := range validate(t, files, knownKinds(t)).Findings {
				if f.File == "infra/claims.yaml" && f.Rule == RuleValue {
					found++
				}
			}
			if found != c.want {
				t.Errorf("%d findings, want %d", found, c.want)
			}
		})
	}
}
