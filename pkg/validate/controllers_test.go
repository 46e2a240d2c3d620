package validate

import (
	"maps"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

const imageObjects = `apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: web, namespace: flux-system}
spec: {image: registry.example.com/web, interval: 5m}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImagePolicy
metadata: {name: web, namespace: flux-system}
spec: {imageRepositoryRef: {name: web}, policy: {semver: {range: 1.x}}}
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageUpdateAutomation
metadata: {name: web, namespace: flux-system}
spec:
  interval: 10m
  sourceRef: {kind: GitRepository, name: flux-system}
  git: {commit: {author: {email: bot@example.com}}}
  update: {path: ./features}
`

// withImages is what fleet.yaml says to have Flux's controllers for images, too.
const withImages = "  flux:\n    components: [source-controller, kustomize-controller, helm-controller, notification-controller, " +
	"image-reflector-controller, image-automation-controller]\n"

// A controller that Flux is installed without is named once, and not where the list or the repo has it.
func TestControllers(t *testing.T) {
	known := knownKinds(t)
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: " +
		"{name: imagepolicies.image.toolkit.fluxcd.io}\nspec:\n  group: image.toolkit.fluxcd.io\n  " +
		"names: {kind: ImagePolicy, plural: imagepolicies}\n  scope: Namespaced\n  versions:\n  " +
		"- {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
	for _, c := range []struct {
		name, components string
		files            map[string]string
		want             string
	}{
		{"by default", "", nil, "image-reflector-controller image-automation-controller"},
		{"one of them", "image-reflector-controller", nil, "image-automation-controller"},
		{"both", "image-reflector-controller, image-automation-controller", nil, ""},
		{
			"the CRD of one kind", "image-automation-controller",
			map[string]string{mgmt + "crd.yaml": crd, mgmt + "images.yaml": strings.SplitAfterN(imageObjects, "---\n", 2)[1]},
			"",
		},
		{"nothing applies it", "", map[string]string{mgmt + "images.yaml": "", "notes/images.yaml": imageObjects}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := fleet(t)
			files[mgmt+"images.yaml"] = imageObjects
			maps.Copy(files, c.files)
			if c.components != "" {
				files["fleet.yaml"] += "  flux:\n    components: [source-controller, kustomize-controller, helm-controller, notification-controller, " +
					c.components + "]\n"
			}
			var told []string
			for _, f := range validate(t, files, known).Findings {
				if f.Rule != RuleController {
					continue
				}
				_, after, _ := strings.Cut(f.Summary, "without ")
				name, _, _ := strings.Cut(after, ",")
				told = append(told, name)
				if f.Severity != diag.SeverityWarning || f.File != mgmt+"images.yaml" || !strings.Contains(f.Hint, "spec.flux.components") {
					t.Errorf("%v", f)
				}
			}
			if got := strings.Join(told, " "); got != c.want {
				t.Errorf("told of %q, not %q", got, c.want)
			}
		})
	}
}

// A line that image automation is to change names a policy that exists; in a namespace without policies here, it may come from elsewhere.
func TestImageMarkers(t *testing.T) {
	known := knownKinds(t)
	for _, c := range []struct{ marker, says, hint string }{
		{"flux-system:web:tag", "", ""},
		{"flux-system:web", "", ""},
		{"flux-system:wbe:tag", "there is no ImagePolicy flux-system/wbe: image automation skips the line", "did you mean flux-system:web?"},
		{"flux-system:unlike-any", "there is no ImagePolicy flux-system/unlike-any", "add the policy"},
		{"elsewhere:unlike-any", "", ""},
	} {
		t.Run(c.marker, func(t *testing.T) {
			files := fleet(t)
			files[mgmt+"images.yaml"] = imageObjects
			files["fleet.yaml"] += withImages
			files[platform+"marked.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: marked, namespace: platform}\ndata:\n" +
				"  image: web:1.0.0 # {\"$imagepolicy\": \"" + c.marker + "\"}\n"
			found := validate(t, files, known).Findings
			if c.says == "" {
				report(t, found)
				return
			}
			if f := only(t, found, RuleMissingObject); f.File != platform+"marked.yaml" || f.Line != 5 || !strings.HasPrefix(f.Summary, c.says) ||
				!strings.Contains(f.Hint, c.hint) {
				t.Errorf("%v", f)
			}
		})
	}
}
