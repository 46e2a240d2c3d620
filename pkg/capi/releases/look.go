package releases

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Release has the facts about a version of a provider that matter before its installation.
type Release struct {
	// Contract is the contract of Cluster API that it implements. Fits means that this fleetctl's Cluster API works with it.
	Contract string
	Fits     bool
	// Deployments are the names of its Deployments.
	Deployments []string
	// Stores are the storage versions of its kinds, by the names of their CRDs.
	Stores map[string]string
}

// Release returns the facts about a version of a provider. Variables need no values for this.
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

// storedBy returns the storage version of a CRD, or "" if the CRD cannot be read.
func storedBy(obj *unstructured.Unstructured) string {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd); err != nil {
		return ""
	}
	return kube.StorageVersion(crd)
}
