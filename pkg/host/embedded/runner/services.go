package runner

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Resolve returns the address, HOST:PORT, of the process behind a Service. host is the Service's ClusterIP or DNS name, and port one of its
// ports. Resolve waits until Run knows the cluster's Services. It fails if no Deployment is behind the Service, or if its process does not
// run. The error names what is missing.
func (r *Runner) Resolve(ctx context.Context, host, port string) (string, error) {
	if !r.manager.GetCache().WaitForCacheSync(ctx) {
		return "", fmt.Errorf("resolve %s: the runner has not started: %w", host, context.Cause(ctx))
	}
	number, ok := portNumber(port)
	if !ok {
		return "", fmt.Errorf("resolve %s: %q is not a port", host, port)
	}
	service, err := r.serviceAt(ctx, host)
	if err != nil {
		return "", err
	}
	if service.Namespace == metaDefault && service.Name == "kubernetes" {
		return serverAddress(r.config.Host)
	}
	address, owner, err := r.behind(ctx, service, number)
	if err != nil {
		return "", err
	}
	if !r.runs(owner) {
		return "", diag.Errorf("look at its log: fleetctl host logs",
			"the process of Deployment %s, behind Service %s/%s, does not run", owner, service.Namespace, service.Name)
	}
	return address, nil
}

const metaDefault = "default"

// serverAddress is the API server's address, for the Service kubernetes.
func serverAddress(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	if u.Port() == "" {
		return net.JoinHostPort(u.Hostname(), "443"), nil
	}
	return u.Host, nil
}

// serviceAt finds a Service by ClusterIP or DNS name.
func (r *Runner) serviceAt(ctx context.Context, host string) (*corev1.Service, error) {
	if net.ParseIP(host) == nil {
		key, ok := serviceName(host)
		if !ok {
			return nil, fmt.Errorf("resolve %s: it is neither an address nor the name of a Service", host)
		}
		service := &corev1.Service{}
		if err := r.client.Get(ctx, key, service); err != nil {
			return nil, fmt.Errorf("resolve %s: %w", host, err)
		}
		return service, nil
	}
	services := &corev1.ServiceList{}
	if err := r.client.List(ctx, services); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", host, err)
	}
	for i := range services.Items {
		if s := &services.Items[i]; s.Spec.ClusterIP == host || slices.Contains(s.Spec.ClusterIPs, host) {
			return s, nil
		}
	}
	return nil, fmt.Errorf("resolve %s: no Service has this ClusterIP", host)
}

// serviceName parses NAME.NAMESPACE.svc, with or without the cluster's domain.
func serviceName(host string) (types.NamespacedName, bool) {
	host = strings.TrimSuffix(strings.TrimSuffix(host, "."), ".cluster.local")
	parts := strings.Split(host, ".")
	if len(parts) == 3 && parts[2] == "svc" {
		return types.NamespacedName{Namespace: parts[1], Name: parts[0]}, true
	}
	return types.NamespacedName{}, false
}

// behind returns the address of the container's port behind a Service's port, and the Deployment's name.
func (r *Runner) behind(ctx context.Context, s *corev1.Service, port int32) (string, types.NamespacedName, error) {
	name := s.Namespace + "/" + s.Name
	i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port })
	if i < 0 {
		return "", types.NamespacedName{}, fmt.Errorf("service %s has no port %d", name, port)
	}
	deployment, err := r.selected(ctx, s)
	if err != nil {
		return "", types.NamespacedName{}, err
	}
	owner := client.ObjectKeyFromObject(deployment)
	target := s.Spec.Ports[i].TargetPort
	if target == (intstr.IntOrString{}) {
		target = intstr.FromInt32(port)
	}
	container, ok := containerPort(&deployment.Spec.Template.Spec, target)
	if !ok {
		return "", owner, fmt.Errorf("service %s leads to port %s, which Deployment %s does not have", name, target.String(), owner)
	}
	actual, err := r.machinePort(owner, container)
	return net.JoinHostPort(loopback, strconv.Itoa(int(actual))), owner, err
}

// selected is the Deployment whose pods the Service's selector selects.
func (r *Runner) selected(ctx context.Context, s *corev1.Service) (*appsv1.Deployment, error) {
	if len(s.Spec.Selector) == 0 {
		return nil, diag.Errorf("use --host kind", "service %s/%s has no selector: the embedded host cannot follow it", s.Namespace, s.Name)
	}
	all := &appsv1.DeploymentList{}
	if err := r.client.List(ctx, all, client.InNamespace(s.Namespace)); err != nil {
		return nil, err
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	for i := range all.Items {
		d := &all.Items[i]
		if selector.Matches(labels.Set(d.Spec.Template.Labels)) && len(d.Spec.Template.Spec.Containers) > 0 && wantedReplicas(d) > 0 {
			return d, nil
		}
	}
	return nil, fmt.Errorf("no Deployment is behind Service %s/%s", s.Namespace, s.Name)
}

// containerPort is the number of the container's port that a Service or probe refers to by number or name.
func containerPort(pod *corev1.PodSpec, target intstr.IntOrString) (int32, bool) {
	if target.Type == intstr.Int {
		return target.IntVal, true
	}
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			if p.Name == target.StrVal {
				return p.ContainerPort, true
			}
		}
	}
	return portNumber(target.StrVal)
}

// machinePort is the machine's port for a port of a Deployment's container. Before the first plan, machinePort assumes that a flag can move
// the port, as for most programs, and returns the port that the program will then get.
func (r *Runner) machinePort(owner types.NamespacedName, container int32) (int32, error) {
	r.mu.Lock()
	rec := r.records[owner]
	r.mu.Unlock()
	if rec != nil {
		if actual, fixed := rec.fixedPort(container); fixed {
			return actual, nil
		}
	}
	return r.ports.get(owner.String(), container)
}

var (
	serviceURL  = regexp.MustCompile(`^http://([a-z0-9-]+\.[a-z0-9-]+\.svc(?:\.cluster\.local)?\.?)(?::(\d+))?(/.*)?$`)
	serviceHost = regexp.MustCompile(`^([a-z0-9-]+\.[a-z0-9-]+\.svc(?:\.cluster\.local)?\.?)(?::(\d+))?$`)
	addressFlag = regexp.MustCompile(`(?i)addr(ess)?$`)
)

// rewriteService replaces a Service's DNS name by the address of its process, in an http URL or in the value of a flag for an address. It
// does not touch names elsewhere and https URLs, because a certificate may be issued for the name. It does not touch the name of a
// Service that does not exist yet. ref is the Service, even then.
func (r *Runner) rewriteService(ctx context.Context, flag, value string) (rewritten string, ref types.NamespacedName, err error) {
	m, prefix := serviceURL.FindStringSubmatch(value), "http://"
	if m == nil && addressFlag.MatchString(flag) {
		m, prefix = serviceHost.FindStringSubmatch(value), ""
	}
	if m == nil {
		return value, ref, nil
	}
	ref, ok := serviceName(m[1])
	if !ok {
		return value, ref, nil
	}
	port := int32(80)
	if n, ok := portNumber(m[2]); ok {
		port = n
	}
	service := &corev1.Service{}
	if err := r.client.Get(ctx, ref, service); err != nil {
		return value, ref, client.IgnoreNotFound(err)
	}
	address, _, err := r.behind(ctx, service, port)
	if err != nil {
		return value, ref, nil //nolint:nilerr // the name stays until there is a Deployment
	}
	path := ""
	if len(m) > 3 {
		path = m[3]
	}
	return prefix + address + path, ref, nil
}
