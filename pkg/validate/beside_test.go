package validate

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// shop is a namespace in which everything that is named is there.
const shop = `apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: shop}
spec:
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front, tier: web}}
    spec:
      serviceAccountName: front-runner
      imagePullSecrets: [{name: puller}]
      initContainers:
      - {name: init, image: a, envFrom: [{secretRef: {name: maybe, optional: true}}]}
      containers:
      - name: front
        image: a
        ports: [{name: http, containerPort: 80}]
        envFrom: [{configMapRef: {name: settings}}]
        env: [{name: A, valueFrom: {secretKeyRef: {name: tokens, key: a}}}]
        volumeMounts: [{name: data, mountPath: /data}, {name: all, mountPath: /all}, {name: first, mountPath: /first}]
      volumes:
      - {name: data, persistentVolumeClaim: {claimName: front-data}}
      - {name: all, projected: {sources: [{configMap: {name: pages}}, {configMap: {name: kube-root-ca.crt}}]}}
      - {name: first, persistentVolumeClaim: {claimName: disk-store-0}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: shop}
spec:
  serviceName: stores
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {serviceAccountName: default, containers: [{name: a, image: a}]}
  volumeClaimTemplates: [{metadata: {name: disk}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: front-runner, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pages, namespace: shop}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: tokens, namespace: shop}
spec: {}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: other, namespace: shop}
spec: {target: {name: puller}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: front-data, namespace: shop}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec:
  selector: {app: front}
  ports: [{name: http, port: 80, targetPort: http}, {name: second, port: 8080, targetPort: "8080"}]
---
apiVersion: v1
kind: Service
metadata: {name: stores, namespace: shop}
spec: {clusterIP: None, selector: {statefulset.kubernetes.io/pod-name: store-0, app: store}, ports: [{port: 1}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop, annotations: {cert-manager.io/cluster-issuer: a}}
spec:
  tls: [{secretName: made-by-cert-manager}]
  rules:
  - http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: front, port: {name: second}}}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: front, namespace: shop}
spec: {rules: [{backendRefs: [{name: front, port: 80, weight: 1}]}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: front, namespace: shop}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: front}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: front, namespace: shop}
spec: {minAvailable: 1, selector: {matchExpressions: [{key: app, operator: In, values: [front, back]}]}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: all, namespace: shop}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: front, namespace: shop}
spec: {podSelector: {matchLabels: {app: front, tier: web}}, policyTypes: [Ingress]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules: [{apiGroups: [""], resources: [configmaps, secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: front-runner, namespace: shop}, {kind: User, name: somebody}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
`

// foreignRelease is a release of a chart from elsewhere, into a namespace.
func foreignRelease(name, namespace string) string {
	return "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts, namespace: " + namespace + "}\n" +
		"spec: {interval: 1h, url: 'https://charts.example.com'}\n" +
		"---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
		"spec: {interval: 1h, chart: {spec: {chart: library/" + name + "-chart, sourceRef: {kind: HelmRepository, name: charts}}}}\n"
}

// besides are what validate says of the names and selectors in a namespace.
func besides(t *testing.T, manifests string) (out []diag.Finding) {
	t.Helper()
	files := infra("    exclude: []\n", map[string]string{"infra/shop.yaml": manifests})
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.Rule == RuleMissingObject || f.Rule == RuleIdleSelector || f.Rule == RuleMissingNS {
			out = append(out, f)
		}
	}
	return out
}

// A name that leads nowhere in a namespace whose whole content is in the repo is told at its line; where a chart from elsewhere, a
// controller or a program of the cluster may make what is named, only if it is the name of something there but for a letter.
func TestNamesInANamespace(t *testing.T) {
	if found := besides(t, shop); len(found) > 0 {
		t.Fatalf("with nothing wrong: %v", found)
	}
	for _, tc := range []struct{ old, becomes, at, rule, hint string }{
		{"serviceAccountName: front-runner", "serviceAccountName: frontrunner2", "frontrunner2", RuleMissingObject, "front-runner"},
		{"serviceAccountName: front-runner", "serviceAccountName: nobody", "nobody", RuleMissingObject, "add it"},
		{"imagePullSecrets: [{name: puller}]", "imagePullSecrets: [{name: nothing}]", "nothing", RuleMissingObject, "SOPS"},
		{"claimName: front-data", "claimName: elsewhere", "elsewhere", RuleMissingObject, "add it"},
		{"claimName: disk-store-0", "claimName: disc-shop-0", "disc-shop-0", RuleMissingObject, "add it"},
		{"configMapRef: {name: settings}", "configMapRef: {name: options}", "options", RuleMissingObject, "add it"},
		{"secretKeyRef: {name: tokens", "secretKeyRef: {name: password", "password", RuleMissingObject, "SOPS"},
		{"configMap: {name: pages}", "configMap: {name: leaves}", "leaves", RuleMissingObject, "add it"},
		{"serviceName: stores", "serviceName: nowhere", "nowhere", RuleMissingObject, "add it"},
		{"service: {name: front, ", "service: {name: nowhere, ", "nowhere", RuleMissingObject, "add it"},
		{"port: {name: second}", "port: {name: third}", "third", RuleMissingObject, "it has http (80), second (8080)"},
		{"backendRefs: [{name: front, ", "backendRefs: [{name: nowhere, ", "nowhere", RuleMissingObject, "add it"},
		{"port: 80, weight", "port: 81, weight", "port: 81", RuleMissingObject, "it has http (80), second (8080)"},
		{"kind: Deployment, name: front}", "kind: Deployment, name: nothing}", "nothing", RuleMissingObject, "add it"},
		{"kind: Role, name: reader}", "kind: Role, name: writer}", "writer", RuleMissingObject, "add it"},
		{"name: front-runner, namespace: shop}, {", "name: nobody, namespace: shop}, {", "nobody", RuleMissingObject, "add it"},
		{"targetPort: http}", "targetPort: htp}", "htp", RuleMissingObject, "did you mean http?"},
		{"selector: {app: front}", "selector: {app: back}", "app: back", RuleIdleSelector, "their labels"},
		{"values: [front, back]", "values: [back]", "[back]", RuleIdleSelector, "their labels"},
		{"{app: front, tier: web}}, p", "{app: front, tier: wev}}, p", "tier: wev", RuleIdleSelector, "did you mean tier: web?"},
	} {
		manifests := strings.Replace(shop, tc.old, tc.becomes, 1)
		line := 1 + strings.Count(manifests[:strings.Index(manifests, tc.at)], "\n")
		found := besides(t, manifests)
		if len(found) != 1 || found[0].Rule != tc.rule || found[0].Line != line || found[0].Severity != diag.SeverityWarning ||
			!strings.Contains(found[0].Hint, tc.hint) {
			t.Errorf("%s: %v, want %s in line %d", tc.becomes, found, tc.rule, line)
		}
	}
}

// Where something else may make what is named, or be selected, nothing is told of it.
func TestNamesThatMayBeMadeElsewhere(t *testing.T) {
	for old, becomes := range map[string]string{
		"serviceAccountName: front-runner": "serviceAccountName: nobody",
		"secretKeyRef: {name: tokens":      "secretKeyRef: {name: password",
		"selector: {app: front}":           "selector: {app: back}",
	} {
		manifests := strings.Replace(shop, old, becomes, 1)
		for why, text := range map[string]string{
			"a chart":      manifests + foreignRelease("database", "shop"),
			"a controller": manifests + "---\napiVersion: db.example.com/v1\nkind: Database\nmetadata: {name: a, namespace: shop}\n",
			"a folder":     manifests + foreignFolder,
			"a program": manifests + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: all, namespace: shop}\n" +
				"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}\n" +
				"subjects: [{kind: ServiceAccount, name: front-runner, namespace: shop}]\n",
			"a role": manifests + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: all, namespace: shop}\n" +
				"rules: [{apiGroups: ['*'], resources: ['*'], verbs: [create]}]\n",
			"whoever made the namespace": strings.Replace(manifests, "kind: Namespace\nmetadata: {name: shop}", "kind: Namespace\nmetadata: {name: b}", 1),
		} {
			for _, f := range besides(t, text) {
				if f.Rule != RuleMissingNS {
					t.Errorf("%s, with %s: %v", becomes, why, f)
				}
			}
		}
	}
}

// foreignFolder is a Kustomization of Flux that applies a folder of another repo.
const foreignFolder = `---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: other, namespace: default}
spec: {interval: 1m, url: "https://git.example.com/acme/other.git"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: other, namespace: default}
spec: {interval: 1m, prune: true, path: ./deploy, sourceRef: {kind: GitRepository, name: other}}
`

// Beside charts from elsewhere, a slip of one letter is told, unless one of these charts may have made what is named.
func TestSlips(t *testing.T) {
	for _, tc := range []struct {
		release, name string
		told          bool
	}{
		{"database", "fronr", true},
		{"database", "frnot", true},
		{"database", "fron", true},
		{"database", "front1", false},
		{"database", "front-a", false},
		{"database", "back", false},
		{"fronr", "fronr", false},
		{"fron", "fronx", false},
	} {
		manifests := strings.Replace(shop, "service: {name: front, ", "service: {name: "+tc.name+", ", 1) + foreignRelease(tc.release, "shop")
		if found := besides(t, manifests); tc.told != (len(found) == 1) || tc.told && found[0].Hint != "did you mean front?" {
			t.Errorf("%s beside %s: %v", tc.name, tc.release, found)
		}
	}
	for _, tc := range []struct {
		namespace string
		told      bool
	}{{"shob", true}, {"shop-a", false}, {"other", false}, {"shop2", false}} {
		manifests := shop + foreignRelease("database", "default") + "---\n" + strings.Replace(aConfigMap, "default", tc.namespace, 1)
		if found := besides(t, manifests); tc.told != (len(found) == 1) || tc.told && found[0].Severity != diag.SeverityWarning {
			t.Errorf("in namespace %s: %v", tc.namespace, found)
		}
	}
}

// What a Secret or ConfigMap of another namespace may be copied to is not known where an operator from elsewhere runs.
func TestSecretsBesideOperators(t *testing.T) {
	for old, becomes := range map[string]string{
		"secretKeyRef: {name: tokens": "secretKeyRef: {name: password", "configMapRef: {name: settings}": "configMapRef: {name: options}",
	} {
		if found := besides(t, strings.Replace(shop, old, becomes, 1)+foreignRelease("operator", "default")); len(found) > 0 {
			t.Errorf("%s: %v", becomes, found)
		}
	}
	manifests := strings.Replace(shop, "claimName: front-data", "claimName: elsewhere", 1) + foreignRelease("operator", "default")
	if found := besides(t, manifests); len(found) != 1 {
		t.Errorf("of a claim: %v", found)
	}
}
