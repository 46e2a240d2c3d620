package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

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
	return mapping, m.explain(m.everywhere(kind, err))
}

// RESTMappings implements meta.RESTMapper.
func (m *mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	mappings, err := m.RESTMapper.RESTMappings(kind, versions...)
	return mappings, m.explain(m.everywhere(kind, err))
}

// noServer is the error of an answer that no API server gives.
type noServer struct {
	why string
	err error
}

func (n *noServer) Error() string { return "this is not the answer of an API server: " + n.why }
func (n *noServer) Unwrap() error { return n.err }

// everywhere refuses to believe that an API server does not have a kind that all have. Whoever asks takes "no such kind" for "no such
// objects", which would be wrong where something else answers in place of the API server. Its error is none of meta.IsNoMatchError.
func (m *mapper) everywhere(kind schema.GroupKind, err error) error {
	all := []string{"Namespace", "ConfigMap", "Secret", "Event"}
	if err != nil && meta.IsNoMatchError(err) && kind.Group == "" && slices.Contains(all, kind.Kind) {
		return &noServer{why: fmt.Sprintf("it has no %ss", kind.Kind)}
	}
	return err
}

// lateHint is the hint of discovery that has taken too long.
const lateHint = "the API server is very busy, or something else answers at that address: check `server:` in the kubeconfig, and run the " +
	"same command again"

// undecodable says of an error that an answer does not have the form of an answer of discovery.
func undecodable(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, form := errors.AsType[*json.UnmarshalTypeError](err)
	_, kind := errors.AsType[*apiutil.ErrResourceDiscoveryFailed](err) // explain knows the other causes
	return syntax || form || kind || errors.Is(err, io.ErrUnexpectedEOF)
}

// explain adds the API server and a hint to an error of discovery. It returns other errors unchanged: most say that there is no such kind.
func (m *mapper) explain(err error) error {
	op := "ask the API server " + m.host + " which kinds it has"
	if _, some := errors.AsType[*apiutil.ErrResourceDiscoveryFailed](err); !some && apierrors.IsNotFound(err) {
		err = &noServer{why: "it answers 404 Not Found"} // callers take a status of 404 for an object that does not exist
	}
	if refused, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return diag.Wrap(op, refusal(refused), statusHint(refused))
	}
	if late, ok := errors.AsType[*lateError](err); ok {
		return diag.Wrap(op, late, lateHint)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		if _, again := errors.AsType[*lostError](err); again {
			return diag.Wrap(op, failed, "the API server restarts, or something else answers at that address: check `server:` in the kubeconfig, "+
				"and run the same command again")
		}
		return diag.Wrap(op, failed, "")
	}
	if undecodable(err) {
		err = &noServer{why: err.Error(), err: err}
	}
	if other, ok := errors.AsType[*noServer](err); ok {
		return diag.Wrap(op, other, "something else may answer at that address: check `server:` in the kubeconfig, and the proxy settings "+
			"(HTTPS_PROXY, NO_PROXY)")
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
		return "the user of the kubeconfig has no permission for this request: use an administrator's kubeconfig, or bind the ClusterRole " +
			"system:discovery " +
			"to the user; a proxy before the API server can also refuse it"
	case code == http.StatusTooManyRequests:
		return "the API server, or a proxy before it, limits requests: run the same command again in a minute"
	case code >= http.StatusInternalServerError:
		return "the API server, or a proxy before it, has a problem: see its /readyz?verbose and its log, and run the same command again"
	}
	return ""
}
