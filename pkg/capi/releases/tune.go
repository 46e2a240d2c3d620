package releases

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// tuningAnnotation records the tuning of a Deployment. By this record, an installation distinguishes a changed tuning from a change by
// hand, which it keeps.
const tuningAnnotation = "fleetctl.dev/tuning"

// tune applies the tuning to the Deployments of components.
func tune(components repository.Components, tuning []kube.Tuning) error {
	return repository.AlterComponents(components, func(objects []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
		for i := range objects {
			obj := &objects[i]
			at := slices.IndexFunc(tuning, func(t kube.Tuning) bool {
				return obj.GroupVersionKind() == kube.DeploymentKind && t.Manager == obj.GetName()
			})
			if at < 0 {
				continue
			}
			if err := kube.Tune(obj, tuning[at]); err != nil {
				return nil, err
			}
			kube.AddAnnotations(obj, map[string]string{tuningAnnotation: tuning[at].String()})
		}
		return objects, nil
	})
}

// SameTuning tells whether two Deployments record the same tuning.
func SameTuning(there, wanted *unstructured.Unstructured) bool {
	return there.GetAnnotations()[tuningAnnotation] == wanted.GetAnnotations()[tuningAnnotation]
}

// CheckTuning returns an error that names every manager in the tuning that neither the providers nor others have.
func (s *Source) CheckTuning(ctx context.Context, providers []Provider, others []string) error {
	if len(s.options.Tuning) == 0 {
		return nil
	}
	managers := slices.Clone(others)
	for _, p := range providers {
		components, err := s.load(ctx, p, false)
		if err != nil {
			return err
		}
		for _, key := range kube.DeploymentKeys(kube.Pointers(components.Objs())) {
			managers = append(managers, key.Name)
		}
	}
	var unknown []string
	for _, t := range s.options.Tuning {
		if !slices.Contains(managers, t.Manager) {
			unknown = append(unknown, t.Manager)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(managers)
	hint := "known managers: " + strings.Join(managers, ", ")
	if nearest := diag.Nearest(unknown[0], managers); nearest != "" {
		hint = "did you mean " + nearest + "?"
	}
	return diag.Errorf(hint, "tune %s: neither the providers nor Flux have a Deployment of that name",
		strings.Join(unknown, ", "))
}
