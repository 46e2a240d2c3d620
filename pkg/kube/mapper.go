package kube

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// mapper is a REST mapper with better errors. They name the API server, the cause and what to do. The errors of discovery name neither the
// server nor, for most refusals, the status.
type mapper struct {
	meta.RESTMapper
	host string
}

// KindFor implements meta.RESTMapper.
func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kind, err := m.RESTMapper.KindFor(resource)
	return kind, m.explain(err)
}

// KindsFor implements meta.RESTMapper.
func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	kinds, err := m.RESTMapper.KindsFor(resource)
	return kinds, m.explain(err)
}

// ResourceFor implements meta.RESTMapper.
func (m *mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	resource, err := m.RESTMapper.ResourceFor(input)
	return resource, m.explain(err)
}

// ResourcesFor implements meta.RESTMapper.
func (m *mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	resources, err := m.RESTMapper.ResourcesFor(input)
	return resources, m.explain(err)
}

// RESTMapping implements meta.RESTMapper.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	return mapping, m.explain(err)
}

// RESTMappings implements meta.RESTMapper.
func (m *mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	mappings, err := m.RESTMapper.RESTMappings(kind, versions...)
	return mappings, m.explain(err)
}

// explain adds the API server and a hint to an error of discovery. It returns other errors unchanged: most say that there is no such kind.
func (m *mapper) explain(err error) error {
	op := "ask the API server " + m.host + " which kinds it has"
	if refused, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return diag.Wrap(op, refusal(refused), statusHint(refused))
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return diag.Wrap(op, failed, "")
	}
	return err
}

// unexplained is client-go's message if the server's answer has no message that client-go can read.
const unexplained = "unknown"

// refusal returns a refused request as an error with the server's message, or else with the status.
func refusal(refused *apierrors.StatusError) error {
	status := refused.ErrStatus
	if status.Message != "" && status.Message != unexplained {
		return refused
	}
	return &statusText{fmt.Sprintf("it answers %d %s", status.Code, http.StatusText(int(status.Code))), refused}
}

// statusText is an error with another text.
type statusText struct {
	text string
	err  error
}

func (s *statusText) Error() string { return s.text }
func (s *statusText) Unwrap() error { return s.err }

// statusHint returns what to do about a refusal that concerns the whole server. It returns "" if the status does not tell.
func statusHint(refused *apierrors.StatusError) string {
	switch code := int(refused.ErrStatus.Code); {
	case code == http.StatusUnauthorized:
		return "the API server does not accept the credential of the kubeconfig: it may have expired; get a new kubeconfig"
	case code == http.StatusForbidden:
		return "the user of the kubeconfig has no permission for this request: use an administrator's kubeconfig, or bind the ClusterRole system:discovery " +
			"to the user; a proxy before the API server can also refuse it"
	case code == http.StatusTooManyRequests:
		return "the API server, or a proxy before it, limits requests: run the same command again in a minute"
	case code >= http.StatusInternalServerError:
		return "the API server, or a proxy before it, has a problem: see its /readyz?verbose and its log, and run the same command again"
	}
	return ""
}
