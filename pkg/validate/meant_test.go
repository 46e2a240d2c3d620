package validate

import (
	"slices"
	"strings"
	"testing"
)

// What works as it is written is no finding, although it looks like a mistake.
func TestMeantAsWritten(t *testing.T) {
	files := rawRepo()
	files["infra/meant.yaml"] = `apiVersion: v1
kind: Namespace
metadata: {name: meant}
---
apiVersion: v1
kind: LimitRange
metadata: {name: usual, namespace: meant}
spec: {limits: [{type: Container, defaultRequest: {cpu: 100m}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: meant}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: a
        image: a:v1
        command: [sh, -c, "echo $(date) $$(HOST) $(FRONT_SERVICE_HOST) $(A)"]
        env: [{name: A, value: a}, {name: B, value: $(A)}]
      - name: b
        image: b:v1
        envFrom: [{configMapRef: {name: settings, optional: true}}]
        args: [$(FROM_ELSEWHERE)]
      - {name: c, image: c:v1, args: [$(NO_ENV)]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: a, namespace: meant}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}
  metrics:
  - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}
  - {type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: 1Gi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: a, namespace: meant}
spec: {minAvailable: 1, selector: {matchLabels: {app: a}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: values, namespace: meant}
data: {values.yaml: "# none\n", certificate: "-----BEGIN\nabc: d\n", host: a.example.com}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: meant}
spec: {interval: 1h, url: "https://charts.example.com"}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: one, namespace: meant}
spec:
  interval: 1h
  releaseName: same
  chart: {spec: {chart: a, sourceRef: {kind: HelmRepository, name: charts}}}
  valuesFrom:
  - {kind: ConfigMap, name: values}
  - {kind: ConfigMap, name: values, valuesKey: host, targetPath: a.host}
  - {kind: ConfigMap, name: values, valuesKey: certificate, targetPath: a.certificate, literal: true}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: two, namespace: meant}
spec:
  interval: 1h
  releaseName: same
  targetNamespace: default
  storageNamespace: default
  chart: {spec: {chart: a, sourceRef: {kind: HelmRepository, name: charts}}}
---
` + strings.NewReplacer("namespace: platform", "namespace: meant", "'{{ .size }}'",
		"'{{ range $i, $u := .builtin.cluster.names }}{{ .nobody }}{{ $.size }}{{ end }}'", "      jsonPatches:\n", `      jsonPatches:
      - {op: add, path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration, value: {}}
      - {op: add, path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer, value: {}}
`).Replace(meantClass())
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.File == "infra/meant.yaml" && !slices.Contains([]string{RuleForeign, RuleUnknownKind}, f.Rule) {
			t.Errorf("%s [%s] (%s)", f, f.Rule, f.Hint)
		}
	}
}
