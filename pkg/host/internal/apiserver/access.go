package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"

	authorization "k8s.io/api/authorization/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Administrator tells whether the kubeconfig's user may do everything in the cluster, which is what installing providers
// with their roles takes.
func (c *Client) Administrator(ctx context.Context) (bool, error) {
	client, err := kubernetes.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return false, fmt.Errorf("use kubeconfig: %w", err)
	}
	review := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorization.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"},
	}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, meta.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask for our permissions at %s: %w", c.server, err)
	}
	return answer.Status.Allowed, nil
}

// NoContextError says that a kubeconfig has no context of the wanted name.
type NoContextError struct {
	Context string
	// Known are the names of the contexts that it has, sorted.
	Known []string
}

// Error names the context.
func (e *NoContextError) Error() string {
	if e.Context == "" {
		return "the kubeconfig has no current context"
	}
	return fmt.Sprintf("the kubeconfig has no context %q", e.Context)
}

// Extract reads kubeconfig files (path, else $KUBECONFIG, else the one in the home folder) and returns one that contains
// only the named context (the current one if empty), with certificates inlined so that it stands alone.
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
