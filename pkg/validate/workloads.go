package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// podSpecs are the paths of the pod templates in the kinds that make pods.
var podSpecs = map[string][]string{
	"/Pod":                   {"spec"},
	"/ReplicationController": {"spec", "template", "spec"},
	"apps/DaemonSet":         {"spec", "template", "spec"},
	"apps/Deployment":        {"spec", "template", "spec"},
	"apps/ReplicaSet":        {"spec", "template", "spec"},
	"apps/StatefulSet":       {"spec", "template", "spec"},
	"batch/CronJob":          {"spec", "jobTemplate", "spec", "template", "spec"},
	"batch/Job":              {"spec", "template", "spec"},
}

// groupOf is the API group of an object; "" for the core group.
func groupOf(o *object) string {
	group, _, grouped := strings.Cut(o.APIVersion, "/")
	if !grouped {
		return ""
	}
	return group
}

// kubernetes adds the references of an object of Kubernetes' own kinds to objects in its namespace.
func (c *referrer) kubernetes(group string) {
	if spec := podSpecs[group+"/"+c.Kind]; spec != nil {
		c.pods(strings.Join(spec, "."))
	}
	switch group + "/" + c.Kind {
	case "apps/StatefulSet":
		c.beside("Service", "spec.serviceName")
		c.ofClass("storage.k8s.io", "StorageClass", "spec.volumeClaimTemplates[].spec.storageClassName")
	case "networking.k8s.io/Ingress":
		c.ingress()
		c.ofClass("networking.k8s.io", "IngressClass", "spec.ingressClassName")
	case "/PersistentVolumeClaim":
		c.ofClass("storage.k8s.io", "StorageClass", "spec.storageClassName")
	case "admissionregistration.k8s.io/ValidatingWebhookConfiguration", "admissionregistration.k8s.io/MutatingWebhookConfiguration":
		c.served("webhooks[].clientConfig.service")
	case "apiregistration.k8s.io/APIService":
		c.served("spec.service")
	case "autoscaling/HorizontalPodAutoscaler":
		c.scaled("spec.scaleTargetRef")
	case "autoscaling.k8s.io/VerticalPodAutoscaler":
		c.scaled("spec.targetRef")
	case "keda.sh/ScaledObject":
		c.scaled("spec.scaleTargetRef")
	case "rbac.authorization.k8s.io/RoleBinding", "rbac.authorization.k8s.io/ClusterRoleBinding":
		c.binding()
	}
	if group == "gateway.networking.k8s.io" && strings.HasSuffix(c.Kind, "Route") {
		c.route()
	}
	c.selections(group)
}

// beside adds a reference to an object of the core group in the object's own namespace.
func (c *referrer) beside(kind, path string) {
	eachAt(c.fields, path, func(at string, value any) {
		if name, ok := value.(string); ok {
			c.named("", kind, "", name, at)
		}
	})
}

// named adds a reference to an object, if the name has no variable, and if Kubernetes does not make the object in every namespace.
func (c *referrer) named(group, kind, namespace, name, at string) {
	if kind == "ServiceAccount" && name == "default" || kind == "ConfigMap" && name == "kube-root-ca.crt" {
		return // every namespace has these objects
	}
	c.put(reference{rule: RuleMissingObject, group: group, kind: kind, namespace: namespace, name: name, field: at})
}

// ofClass adds a reference to an object of the whole cluster, such as a StorageClass. The repo seldom has all of them.
func (c *referrer) ofClass(group, kind, path string) {
	eachAt(c.fields, path, func(at string, value any) {
		if name, ok := value.(string); ok {
			c.named(group, kind, "", name, at)
		}
	})
}

// served adds references to the Services that answer for an API server.
func (c *referrer) served(path string) {
	eachAt(c.fields, path, func(at string, value any) {
		inner, _ := value.(map[string]any)
		service := mapping.Fields(inner)
		c.named("", "Service", service.Text("namespace"), service.Text("name"), at+".name")
	})
}

// optional adds the reference in a mapping, unless the mapping has optional: true.
func (c *referrer) optional(kind, path, name string) {
	eachAt(c.fields, path, func(at string, value any) {
		inner, _ := value.(map[string]any)
		if optional, _ := inner["optional"].(bool); !optional {
			before := len(c.refs)
			c.named("", kind, "", mapping.Fields(inner).Text(name), at+"."+name)
			c.key(before, mapping.Fields(inner).Text("key"), at+".key")
		}
	})
}

// pods adds the references of a pod template.
func (c *referrer) pods(spec string) {
	c.beside("ServiceAccount", spec+".serviceAccountName")
	c.beside("PersistentVolumeClaim", spec+".volumes[].persistentVolumeClaim.claimName")
	c.beside("Secret", spec+".imagePullSecrets[].name")
	for _, volume := range []struct{ kind, path, name string }{
		{"ConfigMap", ".volumes[].configMap", "name"},
		{"Secret", ".volumes[].secret", "secretName"},
		{"ConfigMap", ".volumes[].projected.sources[].configMap", "name"},
		{"Secret", ".volumes[].projected.sources[].secret", "name"},
	} {
		c.optional(volume.kind, spec+volume.path, volume.name)
		c.items(volume.kind, spec+volume.path, volume.name)
	}
	c.ofClass("scheduling.k8s.io", "PriorityClass", spec+".priorityClassName")
	for _, list := range []string{".initContainers[]", ".containers[]"} {
		c.optional("ConfigMap", spec+list+".envFrom[].configMapRef", "name")
		c.optional("Secret", spec+list+".envFrom[].secretRef", "name")
		c.optional("ConfigMap", spec+list+".env[].valueFrom.configMapKeyRef", "name")
		c.optional("Secret", spec+list+".env[].valueFrom.secretKeyRef", "name")
	}
}

// ingress adds the Services that an Ingress leads to, and its certificates unless cert-manager makes them.
func (c *referrer) ingress() {
	backend := func(at string, value any) {
		inner, _ := value.(map[string]any)
		service := mapping.Fields(inner)
		c.named("", "Service", "", service.Text("name"), at+".name")
		c.port(service.In("port")["name"], at+".port.name")
		c.port(service.In("port")["number"], at+".port.number")
	}
	eachAt(c.fields, "spec.defaultBackend.service", backend)
	eachAt(c.fields, "spec.rules[].http.paths[].backend.service", backend)
	for name := range c.fields.In("metadata", "annotations") {
		if strings.HasPrefix(name, "cert-manager.io/") || strings.Contains(name, "acme") {
			return
		}
	}
	c.beside("Secret", "spec.tls[].secretName")
}

// route adds the Services that a route of the Gateway API leads to.
func (c *referrer) route() {
	for _, path := range []string{
		"spec.rules[].backendRefs[]", "spec.rules[].filters[].requestMirror.backendRef",
		"spec.rules[].backendRefs[].filters[].requestMirror.backendRef",
	} {
		eachAt(c.fields, path, func(at string, value any) {
			inner, _ := value.(map[string]any)
			to := mapping.Fields(inner)
			if kind := to.Text("kind"); to.Text("group") != "" || kind != "" && kind != "Service" {
				return
			}
			c.named("", "Service", to.Text("namespace"), to.Text("name"), at+".name")
			c.port(to["port"], at+".port")
		})
	}
}

// port says which port of the Service of the last reference is meant.
func (c *referrer) port(value any, at string) {
	if n := len(c.refs); n > 0 && value != nil && strings.HasPrefix(at, strings.TrimSuffix(c.refs[n-1].field, "name")) {
		c.refs[n-1].port, c.refs[n-1].portField = fmt.Sprint(value), at
	}
}

// scaled adds the reference of an autoscaler to an object of Kubernetes' own kinds.
func (c *referrer) scaled(path string) {
	eachAt(c.fields, path, func(at string, value any) {
		inner, _ := value.(map[string]any)
		to := mapping.Fields(inner)
		group, _, grouped := strings.Cut(to.Text("apiVersion"), "/")
		kind := to.Text("kind")
		if !grouped && group == "" && kind == "" { // a field of KEDA
			group, kind = "apps", "Deployment"
		}
		if group == "apps" && slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"}, kind) {
			c.named(group, kind, "", to.Text("name"), at+".name")
		}
	})
}
