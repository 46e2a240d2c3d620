package validate

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// literalRepo has an object below a Flux Kustomization, which has the given postBuild.
func literalRepo(object, postBuild string) map[string]string {
	files := rawRepo()
	files["clusters/mgmt/app.yaml"] = strings.ReplaceAll(files["clusters/mgmt/infra.yaml"], "infra", "app") + postBuild
	files["app/all.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n" + object
	return files
}

const (
	tagged = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n" +
		"  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n" +
		"      containers: [{name: web, image: \"web:${TAG}\"}]\n"
	addressed = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: web, namespace: shop}\n" +
		"spec: {interval: 1h, url: \"https://${DOMAIN:=example.com}/charts\"}\n"
	regional = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata: {name: web, namespace: shop}\n" +
		"spec:\n  region: ${AWS_REGION}\n  sshKeyName: ${KEY}\n"
)

func TestLiteralVariables(t *testing.T) {
	for name, c := range map[string]struct{ object, says string }{
		"an image": {tagged, "nothing fills in ${TAG}"}, "an address": {addressed, "nothing fills in ${DOMAIN:=example.com}"},
		"a cluster": {regional, "nothing fills in ${AWS_REGION}, ${KEY}: Kustomization flux-system/app has no postBuild"},
	} {
		t.Run(name, func(t *testing.T) {
			if said := literals(t, literalRepo(c.object, "")); len(said) != 1 || !strings.Contains(said[0], c.says) {
				t.Errorf("%q", said)
			}
		})
	}
}

// An optional ConfigMap that is not in the repo may be made by others: what it may set is doubted, with other variables beside it or not.
func TestVariablesOfOthers(t *testing.T) {
	const optional = "substituteFrom: [{kind: ConfigMap, name: cluster-info, optional: true}]"
	dashed := strings.Replace(tagged, ":${TAG}", "-${TAG}", 1)
	for name, c := range map[string]struct{ postBuild, says string }{
		"alone": {optional, "nothing fills in ${TAG}: Kustomization flux-system/app has its variables from the ConfigMap cluster-info, " +
			"which is not in the repo"},
		"beside others": {"substitute: {ENV: prod}, " + optional, "nothing sets the variable TAG of Kustomization flux-system/app, so it " +
			"becomes empty unless the ConfigMap cluster-info does, which is not in the repo"},
	} {
		t.Run(name, func(t *testing.T) {
			found := ofRule(validate(t, literalRepo(dashed, "  postBuild: {"+c.postBuild+"}\n"), knownKinds(t)).Findings, RuleVariable)
			if len(found) != 1 || found[0].Severity != diag.SeverityWarning || !strings.Contains(found[0].Summary, c.says) {
				t.Error(found)
			}
		})
	}
	found := ofRule(validate(t, literalRepo(dashed, "  postBuild: {substitute: {ENV: prod}}\n"), knownKinds(t)).Findings, RuleVariable)
	if len(found) != 1 || found[0].Severity != diag.SeverityError {
		t.Errorf("without a ConfigMap of others: %v", found)
	}
}

// What others fill in, and what Flux fills in, is nothing to report.
func TestTextOfOthers(t *testing.T) {
	const script = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n" +
		"data: {run.sh: \"echo ${HOME}\", image: \"${IMAGE}\"}\n"
	for name, files := range map[string]map[string]string{
		"a script": literalRepo(script, ""),
		"a command": literalRepo("apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfigTemplate\n"+
			"metadata: {name: web, namespace: shop}\nspec:\n  template:\n    spec:\n"+
			"      joinConfiguration: {nodeRegistration: {name: \"${COREOS_CUSTOM_HOSTNAME}\"}}\n"+
			"      preKubeadmCommands: ['echo ${HOSTNAME}']\n", ""),
		"a control plane": literalRepo("apiVersion: controlplane.cluster.x-k8s.io/v1beta2\nkind: KubeadmControlPlane\n"+
			"metadata: {name: web, namespace: shop}\nspec:\n  kubeadmConfigSpec: {preKubeadmCommands: ['echo ${HOSTNAME}']}\n", ""),
		"values": literalRepo("apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: shop}\n"+
			"spec: {interval: 1h, chartRef: {kind: OCIRepository, name: web}, values: {config: \"${NAME}\"}}\n", ""),
		"two dollars": literalRepo(strings.ReplaceAll(tagged, "${", "$${"), ""),
		"disabled": literalRepo(strings.Replace(tagged, "namespace: shop}",
			"namespace: shop, labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}", 1), ""),
		"a value":      literalRepo(tagged, "  postBuild: {substitute: {TAG: v1}}\n"),
		"of a Secret":  literalRepo(tagged, "  postBuild: {substituteFrom: [{kind: Secret, name: values}]}\n"),
		"an empty one": literalRepo(tagged, "  postBuild: {}\n"),
	} {
		t.Run(name, func(t *testing.T) {
			if said := literals(t, files); len(said) > 0 {
				t.Errorf("%q", said)
			}
		})
	}
}

// literals returns what is said about variables that stay.
func literals(t *testing.T, files map[string]string) (said []string) {
	t.Helper()
	for _, f := range validate(t, files, knownKinds(t)).Findings {
		if f.Rule == RuleVariable && f.File == "app/all.yaml" {
			said = append(said, f.String())
		}
	}
	return said
}
