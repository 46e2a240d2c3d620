package releases

import (
	"bytes"
	"context"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// RenderedFile has the objects that Install of pkg/capi would apply for one provider or for cert-manager.
type RenderedFile struct {
	// Name is <label>/<version>/<file>.
	Name    string
	Content []byte
}

// Render returns the objects that Install of pkg/capi would apply for providers, with variables filled in. It leaves out Secrets, because
// they contain the variables with credentials.
func (s *Source) Render(ctx context.Context, providers []Provider) ([]RenderedFile, error) {
	certs, version, err := s.CertManagerObjects(ctx)
	if err != nil {
		return nil, err
	}
	content, err := encode(certs)
	if err != nil {
		return nil, err
	}
	out := []RenderedFile{{Name: path.Join(CertManager, version, certManagerFile), Content: content}}
	for _, p := range providers {
		components, err := s.load(ctx, p, false)
		if err != nil {
			return nil, err
		}
		if content, err = encode(kube.Pointers(components.Objs())); err != nil {
			return nil, err
		}
		out = append(out, RenderedFile{Name: path.Join(p.Label(), components.Version(), "components.yaml"), Content: content})
	}
	return out, nil
}

func encode(objects []*unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for _, obj := range objects {
		if obj.GetKind() == "Secret" {
			continue
		}
		content, err := kube.YAML(obj.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(content)
	}
	return out.Bytes(), nil
}
