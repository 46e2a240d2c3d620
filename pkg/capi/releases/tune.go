package releases

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// tuningAnnotation records the tuning of a Deployment. By this record, an installation distinguishes a changed tuning from a change by
// hand, which it keeps.
const tuningAnnotation = "fleetctl.dev/tuning"

// tune applies the tuning to the Deployments of components.
func (s *Source) tune(components repository.Components) error {
	return repository.AlterComponents(components, func(objects []unstructured.Unstructured) ([]unstructured.Unstructured, error) {
		for i := range objects {
			if err := s.tuneDeployment(&objects[i]); err != nil {
				return nil, err
			}
		}
		return objects, nil
	})
}

// tuneDeployment applies and records the tuning of obj, and gives it the usual CPU request. It does nothing to other objects.
func (s *Source) tuneDeployment(obj *unstructured.Unstructured) error {
	if obj.GroupVersionKind() != kube.DeploymentKind {
		return nil
	}
	tuning := kube.Tuning{Manager: obj.GetName()}
	if at := slices.IndexFunc(s.options.Tuning, func(t kube.Tuning) bool { return t.Manager == obj.GetName() }); at >= 0 {
		tuning = s.options.Tuning[at]
	}
	if s.lacksCPU(obj, tuning) {
		tuning.Requests = maps.Clone(tuning.Requests)
		if tuning.Requests == nil {
			tuning.Requests = map[string]string{}
		}
		tuning.Requests[cpu] = s.options.CPURequest
	}
	record := tuning.String()
	if record == "" {
		return nil
	}
	if err := kube.Tune(obj, tuning); err != nil {
		return err
	}
	kube.AddAnnotations(obj, map[string]string{tuningAnnotation: record})
	return nil
}

const cpu = string(corev1.ResourceCPU)

// lacksCPU tells whether a Deployment is to get the usual CPU request: neither its release nor its tuning says how much CPU its manager
// gets. A limit counts, because it is the default of the request. A Deployment without a manager's container gets none.
func (s *Source) lacksCPU(obj *unstructured.Unstructured, tuning kube.Tuning) bool {
	if s.options.CPURequest == "" || tuning.Requests[cpu] != "" || tuning.Limits[cpu] != "" {
		return false
	}
	lacks := false
	err := kube.EditManager(obj, func(container map[string]any) error {
		_, requested, _ := unstructured.NestedFieldNoCopy(container, "resources", "requests", cpu)
		_, limited, _ := unstructured.NestedFieldNoCopy(container, "resources", "limits", cpu)
		lacks = !requested && !limited
		return nil
	})
	return err == nil && lacks
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
