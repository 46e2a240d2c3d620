package validate

import (
	"context"
	"strings"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// namingKinds are the fields in which an object names other objects by their apiVersion and kind.
var namingKinds = map[string][]string{
	"kustomize.toolkit.fluxcd.io/Kustomization": {"spec.healthChecks[]", "spec.healthCheckExprs[]"},
	"helm.toolkit.fluxcd.io/HelmRelease":        {"spec.healthCheckExprs[]"},
	"autoscaling/HorizontalPodAutoscaler":       {"spec.scaleTargetRef"},
}

// checkNamedKinds reports kinds in the fields of an object that no API server has. A health check of such a kind fails, and with it the
// Kustomization. The version does not matter: the controllers of Flux and of autoscalers find an object by its group and kind. See
// ReferenceToObjMetadataSet in kustomize-controller, NewStatusReader in fluxcd/pkg/runtime/cel, and RESTMappings in Kubernetes'
// horizontal.go.
func (s *schemas) checkNamedKinds(ctx context.Context, o *object, content map[string]any) (out diag.Findings) {
	for _, path := range namingKinds[groupOf(o)+"/"+o.Kind] {
		eachAt(content, path, func(at string, value any) {
			inner, _ := value.(map[string]any)
			named := mapping.Fields(inner)
			version, kind := named.Text("apiVersion"), named.Text("kind")
			if version == "" || kind == "" || strings.Contains(version+kind, "${") {
				return
			}
			if f := s.checkNamedKind(ctx, o, at, version, kind); f != nil {
				out = append(out, *f)
				return
			}
			for _, field := range []string{"current", "failed", "inProgress"} {
				if text := named.Text(field); strings.Contains(path, "Exprs") && text != "" && !strings.Contains(text, "${") {
					if err := schema.ParseCEL(text); err != nil {
						out = append(out, o.at(at+"."+field, RuleValue, "it cannot be read: "+firstLine(err.Error()),
							"write an expression in CEL, such as status.ready == true"))
					}
				}
			}
		})
	}
	return out
}

func (s *schemas) checkNamedKind(ctx context.Context, o *object, at, version, kind string) *diag.Finding {
	gvk := kschema.FromAPIVersionAndKind(version, kind)
	if where, gone := s.goneFor(o, gvk); gone && gvk.Group == "extensions" && !s.HasCRD(gvk.Group, kind) {
		_, hint := schema.Gone(gvk)
		f := o.at(at+".apiVersion", RuleAPIVersion, "Kubernetes serves no "+version+" "+kind+" any more"+where, "write "+hint)
		return &f
	}
	problems, err := s.Check(ctx, map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "a"}})
	if err != nil {
		return nil // the kind is not known
	}
	for _, p := range problems {
		if p.Type != schema.Version || p.Path == "apiVersion" {
			continue
		}
		field, hint := p.Path, p.Hint
		if right := versionOfPods(kind); right != "" {
			field, hint = "apiVersion", "write "+right
		}
		f := o.at(at+"."+field, RuleAPIVersion, p.Summary, hint)
		return &f
	}
	return nil
}

// versionOfPods is the apiVersion of one of Kubernetes' own kinds that make pods; "" for other kinds.
func versionOfPods(kind string) string {
	for name := range podSpecs {
		if group, is, _ := strings.Cut(name, "/"); is == kind {
			return strings.TrimPrefix(group+"/v1", "/")
		}
	}
	return ""
}
