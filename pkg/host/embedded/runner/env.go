package runner

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podInfo is what the downward API tells a pod of itself.
type podInfo struct {
	Name, Namespace, UID, ServiceAccount string
	Labels, Annotations                  map[string]string
}

// loopback is the address of every pod and node: all are processes of this machine.
const loopback = "127.0.0.1"

// environment resolves a container's env and envFrom in the kubelet's order. A later variable replaces an earlier one of the same name, and
// $(VAR) refers to earlier variables.
func environment(ctx context.Context, src *sources, pod podInfo, c *corev1.Container) (map[string]string, error) {
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		values, err := src.envFrom(ctx, pod.Namespace, c, from)
		if err != nil {
			return nil, err
		}
		for k, v := range values {
			env[from.Prefix+k] = v
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			env[e.Name] = expand(e.Value, env)
			continue
		}
		value, ok, err := envValue(ctx, src, pod, c, e)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", e.Name, err)
		}
		if ok {
			env[e.Name] = value
		}
	}
	return env, nil
}

// envValue resolves the valueFrom of one variable. ok is false if the source is optional and missing.
func envValue(ctx context.Context, src *sources, pod podInfo, c *corev1.Container, e corev1.EnvVar) (value string, ok bool, err error) {
	field := containerField(c) + ".env[" + e.Name + "].valueFrom"
	switch from := e.ValueFrom; {
	case from.FieldRef != nil:
		value, err = pod.field(field, from.FieldRef)
	case from.ResourceFieldRef != nil:
		value, err = resourceValue(field, c, from.ResourceFieldRef)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return src.value(ctx, objectRef{"Secret", pod.Namespace, ref.Name}, ref.Key, isTrue(ref.Optional))
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return src.value(ctx, objectRef{"ConfigMap", pod.Namespace, ref.Name}, ref.Key, isTrue(ref.Optional))
	default:
		err = refuse(field, "only fieldRef, resourceFieldRef, secretKeyRef and configMapKeyRef are known")
	}
	return value, err == nil, err
}

func isTrue(b *bool) bool { return b != nil && *b }

var subscript = regexp.MustCompile(`^metadata\.(labels|annotations)\['(.+)'\]$`)

// field returns a field of the pod, by its name in the downward API. in is the Deployment's field that refers to it, for the error.
func (p podInfo) field(in string, ref *corev1.ObjectFieldSelector) (string, error) {
	switch ref.FieldPath {
	case "metadata.name":
		return p.Name, nil
	case "metadata.namespace":
		return p.Namespace, nil
	case "metadata.uid":
		return p.UID, nil
	case "metadata.labels":
		return formatMap(p.Labels), nil
	case "metadata.annotations":
		return formatMap(p.Annotations), nil
	case "spec.serviceAccountName":
		return p.ServiceAccount, nil
	case "spec.nodeName":
		return nodeName(), nil
	case "status.podIP", "status.podIPs", "status.hostIP", "status.hostIPs":
		return loopback, nil
	}
	if m := subscript.FindStringSubmatch(ref.FieldPath); m != nil {
		if m[1] == "labels" {
			return p.Labels[m[2]], nil
		}
		return p.Annotations[m[2]], nil
	}
	return "", refuse(in+".fieldRef", "there is no field %s", ref.FieldPath)
}

// nodeName is the machine's host name, in place of a node's.
func nodeName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// formatMap formats labels or annotations as the downward API does.
func formatMap(m map[string]string) string {
	lines := make([]string, 0, len(m))
	for _, k := range sortedKeys(m) {
		lines = append(lines, k+"="+strconv.Quote(m[k]))
	}
	return strings.Join(lines, "\n")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// resourceValue returns a request or limit. Without a limit it is the capacity of the machine. in is the Deployment's field that refers to
// it, for the error.
func resourceValue(in string, c *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, ok := strings.Cut(ref.Resource, ".")
	list := c.Resources.Limits
	if kind == "requests" {
		list = c.Resources.Requests
	} else if kind != "limits" {
		ok = false
	}
	switch {
	case !ok:
		return "", refuse(in+".resourceFieldRef", "there is no resource %s", ref.Resource)
	case ref.ContainerName != "" && ref.ContainerName != c.Name:
		return "", refuse(in+".resourceFieldRef", "there is no container %s", ref.ContainerName)
	}
	quantity, found := list[corev1.ResourceName(name)]
	if !found {
		quantity = machineResource(corev1.ResourceName(name), kind)
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == string(corev1.ResourceCPU) { // in thousandths, so that half a CPU rounds up to 1
		return strconv.FormatInt(int64(math.Ceil(float64(quantity.MilliValue())/float64(divisor.MilliValue()))), 10), nil
	}
	return strconv.FormatInt(int64(math.Ceil(float64(quantity.Value())/float64(divisor.Value()))), 10), nil
}

func machineResource(name corev1.ResourceName, kind string) resource.Quantity {
	switch {
	case kind == "requests":
		return resource.MustParse("0")
	case name == corev1.ResourceCPU:
		return *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI)
	case name == corev1.ResourceMemory:
		return *resource.NewQuantity(machineMemory(), resource.BinarySI)
	}
	return resource.MustParse("0")
}

// machineMemory is the machine's memory in bytes, 0 if it cannot be read.
func machineMemory() int64 {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64) // an error leaves 0
			return kib << 10
		}
	}
	return 0
}

// expand replaces $(NAME) by the variable's value, as Kubernetes does. A reference to an unknown variable stays, and $$ becomes $.
func expand(text string, env map[string]string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
			continue
		case strings.HasPrefix(after, "("):
			if name, rest, closed := strings.Cut(after[1:], ")"); closed {
				if value, ok := env[name]; ok {
					b.WriteString(value)
				} else {
					b.WriteString("$(" + name + ")")
				}
				text = rest
				continue
			}
		}
		b.WriteByte('$')
		text = after
	}
}
