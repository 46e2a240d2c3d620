// Package kube talks to Kubernetes API servers. It has one client with one REST mapper per cluster, server-side apply in stages, waits
// that watch, and reasons why an object is not healthy.
package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// FieldManager is the name under which fleetctl owns the fields that it applies.
const FieldManager = "fleetctl"

// Key is the namespace and name of an object. The namespace is empty for cluster-scoped objects.
type Key = types.NamespacedName

// ParseKey parses the result of Key.String: NAMESPACE/NAME.
func ParseKey(full string) Key {
	namespace, name, _ := strings.Cut(full, "/")
	return Key{Namespace: namespace, Name: name}
}

// Object is a typed or unstructured object that Client reads and writes.
type Object = client.Object

// ObjectList is a list of Objects of one kind.
type ObjectList = client.ObjectList

// InNamespace narrows a List to one namespace.
type InNamespace = client.InNamespace

// MatchingLabels narrows a List to the objects with all of these labels.
type MatchingLabels = client.MatchingLabels

// Options are the options of New. The zero value suits commands.
type Options struct {
	// Context of the kubeconfig to use. Default: its current context.
	Context string
	// UserAgent of the requests. Default: fleetctl.
	UserAgent string
	// Timeout of a single request. It does not apply to watches. Default: 30s.
	Timeout time.Duration
	// MostBytes bounds a single answer, because an answer of an untrusted API server could fill the memory. In a list, each object counts as
	// 512 bytes at least. MostBytes does not apply to watches. Default: 1 GiB.
	MostBytes int
	// AddToScheme registers more types that the client decodes into Go structs. Every other type works as unstructured.
	AddToScheme []func(*runtime.Scheme) error
}

// Client is a connection to one cluster. It runs discovery only when needed, and only once, so all code should share one Client per
// cluster. It is safe for concurrent use.
type Client struct {
	client.WithWatch

	config    *rest.Config
	http      *http.Client
	discovery *discovery.DiscoveryClient
	refused   *atomic.Bool // whether the API server has refused a login
	mappings  *sync.Map    // has a *meta.RESTMapping for each schema.GroupVersionKind that mappingOf was asked for
}

// New returns a client for the cluster in kubeconfig. It sends no request, so only the first use of the client shows whether the cluster
// answers.
func New(kubeconfig []byte, opts Options) (*Client, error) {
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, diag.Wrap("read kubeconfig", err, "")
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: opts.Context}
	config, err := clientcmd.NewNonInteractiveClientConfig(*loaded, opts.Context, overrides, nil).ClientConfig()
	if err != nil {
		return nil, diag.Wrap("use kubeconfig", err, "")
	}
	return NewForConfig(config, opts)
}

// NewForConfig returns a client as New does, for a rest.Config.
func NewForConfig(config *rest.Config, opts Options) (*Client, error) {
	silenceLibraries()
	config = rest.CopyConfig(config)
	config.QPS = -1 // the server throttles by priority and fairness
	config.UserAgent = opts.UserAgent
	if config.UserAgent == "" {
		config.UserAgent = FieldManager
	}
	config.Timeout = 0 // a timeout here would also end watches; roundTimeout bounds the other requests
	config.WarningHandler = rest.NoWarnings{}
	timeout := cmp.Or(opts.Timeout, 30*time.Second)
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, diag.Wrap("use kubeconfig", err, "")
	}
	refused := &atomic.Bool{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		next = &refusals{next, refused}
		return bound(sameorigin.Bind(next, server), timeout, cmp.Or(opts.MostBytes, mostBytes))
	})
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", sameorigin.Display(config.Host), err)
	}
	scheme, err := newScheme(opts.AddToScheme)
	if err != nil {
		return nil, err
	}
	kinds, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", sameorigin.Display(config.Host), err)
	}
	explained := &mapper{kinds, sameorigin.Display(config.Host)}
	c, err := client.NewWithWatch(config, client.Options{HTTPClient: httpClient, Scheme: scheme, Mapper: explained})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", sameorigin.Display(config.Host), err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", sameorigin.Display(config.Host), err)
	}
	learning := &prompt{c, sameorigin.Display(config.Host), &sync.Map{}}
	return &Client{
		WithWatch: learning, config: config, http: httpClient, discovery: disco, refused: refused, mappings: &sync.Map{},
	}, nil
}

// WithScheme returns a client that also knows the types that add registers. It shares cluster, connections and REST mapper with c.
func (c *Client) WithScheme(add ...func(*runtime.Scheme) error) (*Client, error) {
	scheme, err := newScheme(add)
	if err != nil {
		return nil, err
	}
	wider, err := client.NewWithWatch(c.config, client.Options{HTTPClient: c.http, Scheme: scheme, Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", c.Host(), err)
	}
	knowing := *c
	knowing.WithWatch = &prompt{wider, c.Host(), &sync.Map{}}
	return &knowing, nil
}

// As returns a client for the same cluster that impersonates another user. The API server must allow the kubeconfig's user to impersonate.
// As fails if the kubeconfig already impersonates a user.
func (c *Client) As(user string, groups ...string) (*Client, error) {
	config := c.Config()
	if config.Impersonate.UserName != "" {
		return nil, diag.Errorf("use a kubeconfig of the cluster's administrator",
			"impersonate %s on %s: the kubeconfig already impersonates %s", user, c.Host(), config.Impersonate.UserName)
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return NewForConfig(config, Options{UserAgent: config.UserAgent})
}

// Config returns a copy of the connection's configuration. It contains credentials.
func (c *Client) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Host returns the address of the API server without credentials, for messages.
func (c *Client) Host() string { return sameorigin.Display(c.config.Host) }

// ServerVersion returns the version of the API server ("v1.36.3").
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	var info version.Info
	err := c.ask(ctx, "its version", "/version", &info)
	return info.GitVersion, err
}

// ask decodes the API server's answer at a path that does not belong to an object. what describes the answer in the error.
func (c *Client) ask(ctx context.Context, what, path string, into any) error {
	answer := c.discovery.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx)
	body, err := answer.Raw()
	if err != nil {
		err = answer.Error() // this error has the server's message
	} else {
		err = json.Unmarshal(body, into)
	}
	op := "ask the API server " + c.Host() + " for " + what
	if refused, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return diag.Wrap(op, refusal(refused), statusHint(refused))
	}
	return diag.Wrap(op, err, "")
}

// APIGroups returns the names of the API groups that the server has, without the core group.
func (c *Client) APIGroups(ctx context.Context) ([]string, error) {
	var list metav1.APIGroupList
	if err := c.ask(ctx, "its API groups", "/apis", &list); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list.Groups))
	for _, g := range list.Groups {
		names = append(names, g.Name)
	}
	return names, nil
}

// Exists tells whether the object of kind gvk named key exists. It returns false if the server does not know the kind.
func (c *Client) Exists(ctx context.Context, gvk schema.GroupVersionKind, key Key) (bool, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	err := c.Get(ctx, key, obj)
	switch {
	case err == nil:
		return true, nil
	case IsAbsent(err):
		return false, nil
	}
	return false, fmt.Errorf("get %s %s: %w", gvk.Kind, key, err)
}

// newScheme returns a scheme with the kinds that fleetctl reads as Go types: the built-in kinds, CRDs and Cluster API's core kinds, and
// those of add.
func newScheme(add []func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	all := append([]func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme,
	}, add...)
	for _, register := range all {
		if err := register(scheme); err != nil {
			return nil, fmt.Errorf("register API types: %w", err)
		}
	}
	return scheme, nil
}

// SecretValue returns the value of one key in the data of a Secret. It fails if the Secret lacks this key.
func (c *Client) SecretValue(ctx context.Context, key Key, field string) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", key, err)
	}
	value, ok := secret.Data[field]
	if !ok {
		return nil, fmt.Errorf("get Secret %s: it has no key %q", key, field)
	}
	return value, nil
}

// IsAbsent tells whether err means that the object, or its kind, does not exist.
func IsAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// IsObjectAbsent tells whether err means that the object does not exist, although its kind does.
func IsObjectAbsent(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsNotFound(err) {
		return false
	}
	details := status.ErrStatus.Details
	// If the kind does not exist, the server answers that the path does not exist.
	return details == nil || !slices.ContainsFunc(details.Causes,
		func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// IsUnreachable tells whether err means that no API server answers at the address.
func IsUnreachable(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsTimeout(err) ||
		errors.Is(err, context.DeadlineExceeded)
}

// IsLost tells whether err means that no server listens at the address, or that the connection broke. The server may have stopped, or may
// not have started yet.
func IsLost(err error) bool {
	if _, again := errors.AsType[*lostError](err); again {
		return true
	}
	return err != nil &&
		(utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err))
}

// Lost tells whether err means that this client's API server no longer answers. It is false for errors about another server.
func (c *Client) Lost(err error) bool {
	return IsLost(err) && c.asked(err)
}

// Unanswered tells whether err means that this client's API server did not answer: it cannot be reached, the connection broke, or it took
// too long. It is false for errors about another server.
func (c *Client) Unanswered(err error) bool {
	return (IsLost(err) || IsUnreachable(err)) && c.asked(err)
}

// Answered tells whether err is the answer of an API server, such as a refused login: then the server is not gone, whatever else is wrong.
// Errors of other packages tell so by a method Answered.
func Answered(err error) bool {
	if _, is := errors.AsType[*apierrors.StatusError](err); is {
		return true
	}
	answer, is := errors.AsType[interface {
		error
		Answered() bool
	}](err)
	return is && answer.Answered()
}

// RefusedLogin tells whether err means that this client's API server does not accept the credential. It is false as long as only another
// server has refused a login. A client that As has made counts as the client that it was made from.
func (c *Client) RefusedLogin(err error) bool {
	return apierrors.IsUnauthorized(err) && c.refused.Load()
}

// asked tells whether err is about a request to this client's API server.
func (c *Client) asked(err error) bool {
	request, ok := errors.AsType[*url.Error](err)
	if !ok {
		return false
	}
	asked, err := url.Parse(request.URL)
	return err == nil && asked.Host == c.hostAndPort()
}

// Awaits tells whether what, the text of progress.Waits, is about this client's API server.
func (c *Client) Awaits(what string) bool { return strings.HasSuffix(what, "://"+c.hostAndPort()) }

// hostAndPort returns the host of the API server with its port, as the URLs of requests have it.
func (c *Client) hostAndPort() string {
	ours, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return ""
	}
	return ours.Host
}
