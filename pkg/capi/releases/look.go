package releases

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Release is what there is to know of a version of a provider before it is installed.
type Release struct {
	// Contract of Cluster API that it implements; Fits tells that this fleetctl's Cluster API works with it.
	Contract string
	Fits     bool
	// Deployments that it runs as.
	Deployments []string
	// Stores are the versions in which it has its kinds stored, by the names of their CRDs.
	Stores map[string]string
}

// Release reads a version of a provider. Variables need no values for it.
func (s *Source) Release(ctx context.Context, p Provider) (*Release, error) {
	contract, err := s.Contract(ctx, p)
	if err != nil {
		return nil, err
	}
	components, err := s.load(ctx, p, true)
	if err != nil {
		return nil, err
	}
	r := &Release{Contract: contract, Fits: Fits(p.Type, contract), Stores: map[string]string{}}
	for _, obj := range components.Objs() {
		switch {
		case obj.GroupVersionKind() == kube.DeploymentKind:
			r.Deployments = append(r.Deployments, obj.GetName())
		case obj.GetKind() == "CustomResourceDefinition":
			if stored := storedBy(&obj); stored != "" {
				r.Stores[obj.GetName()] = stored
			}
		}
	}
	return r, nil
}

// storedBy is the version in which a CRD has its objects stored; "" where that cannot be read.
func storedBy(obj *unstructured.Unstructured) string {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd); err != nil {
		return ""
	}
	return kube.StorageVersion(crd)
}
