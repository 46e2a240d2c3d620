package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Administrator tells whether the kubeconfig's user may do everything in the cluster. Installing providers needs that, because they bring
// roles.
func (c *Client) Administrator(ctx context.Context) (bool, error) {
	review := authorization.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorization.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
		Spec: authorization.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorization.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
		},
	}
	if err := c.post(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review); err != nil {
		return false, fmt.Errorf("ask for our permissions at %s: %w", c.server, err)
	}
	return review.Status.Allowed, nil
}

// post sends an object, and decodes the answer into the same object.
func (c *Client) post(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("the API server answers %s", resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(object)
}

// NoContextError means that a kubeconfig has no context of the wanted name.
type NoContextError struct {
	Context string
	// Known are the names of the kubeconfig's contexts, sorted.
	Known []string
}

// Error names the context.
func (e *NoContextError) Error() string {
	if e.Context == "" {
		return "the kubeconfig has no current context"
	}
	return fmt.Sprintf("the kubeconfig has no context %q", e.Context)
}

// Extract reads kubeconfig files: path, or else $KUBECONFIG, or else the file in the home folder. It returns a kubeconfig with only the
// named context, or the current one if contextName is empty. Certificates are inlined, so that the result names no files.
func Extract(path, contextName string) ([]byte, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if contextName != "" {
		config.CurrentContext = contextName
	}
	if config.Contexts[config.CurrentContext] == nil {
		missing := &NoContextError{Context: config.CurrentContext}
		missing.Known = slices.Sorted(maps.Keys(config.Contexts))
		return nil, missing
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return nil, fmt.Errorf("extract context %q: %w", config.CurrentContext, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("inline certificates of context %q: %w", config.CurrentContext, err)
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return out, nil
}
