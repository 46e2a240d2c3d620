package validate

import (
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// space is a namespace of a place.
type space struct {
	place
	namespace string
}

// surroundings say which unknown objects may exist in a namespace, beside those of the repo.
type surroundings struct {
	labelled map[space]map[string][]labelled
	services map[space][]*object
	// releases has the HelmReleases whose charts were not rendered, or are from outside of the repo, by the namespace of their objects: the
	// names of the releases and of their charts.
	releases map[space][]string
	// open are namespaces with an object from which a controller may make other objects.
	open map[space]bool
	// grants are the resources that a program in the namespace may create; "*" stands for all. The empty namespace stands for all namespaces.
	grants map[space]map[string]bool
}

// surround returns the surroundings in all namespaces. It finds them once.
func (s *resolver) surround() *surroundings {
	if s.around != nil {
		return s.around
	}
	a := &surroundings{
		labelled: map[space]map[string][]labelled{}, services: map[space][]*object{}, releases: map[space][]string{}, open: map[space]bool{},
		grants: map[space]map[string]bool{},
	}
	s.around = a
	for _, rel := range s.run.rendered.Releases {
		if rel.Rendered && rel.Outside == nil { // the controllers of a stranger's chart make objects that nobody knows
			continue
		}
		for _, p := range (&object{Object: rel.Object}).places() {
			at := space{p, rel.ReleaseNamespace}
			a.releases[at] = append(a.releases[at], namesOf(rel.Object.JSON, rel.ReleaseName)...)
		}
	}
	for _, o := range s.applied {
		what, found := labelledBy(o)
		quiet, granted := isQuiet(o), grantsOf(o)
		for _, p := range o.places() {
			at := space{p, o.Namespace}
			if what != "" {
				if a.labelled[at] == nil {
					a.labelled[at] = map[string][]labelled{}
				}
				a.labelled[at][what] = append(a.labelled[at][what], found)
			}
			if o.Kind == "Service" && groupOf(o) == "" {
				a.services[at] = append(a.services[at], o)
			}
			a.open[at] = a.open[at] || !quiet
			for _, resource := range granted {
				if a.grants[at] == nil {
					a.grants[at] = map[string]bool{}
				}
				a.grants[at][resource] = true
			}
		}
	}
	return a
}

// namesOf returns the names that a chart may use in the names of its objects.
func namesOf(release []byte, name string) []string {
	var content map[string]any
	_ = kjson.Unmarshal(release, &content) // its schema reports wrong types
	f := mapping.Fields(content)
	chart := f.Text("spec", "chart", "spec", "chart")
	out := []string{name, f.Text("spec", "chartRef", "name"), chart[strings.LastIndex(chart, "/")+1:]}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// quietGroups are the API groups from whose objects no controller makes objects that people refer to by name.
var quietGroups = []string{
	"", "apps", "autoscaling", "autoscaling.k8s.io", "batch", "cert-manager.io", "cilium.io", "coordination.k8s.io", "discovery.k8s.io",
	"external-secrets.io", "keda.sh", "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "scheduling.k8s.io",
	"snapshot.storage.k8s.io", "storage.k8s.io", "traefik.io",
}

// quietKinds are such kinds in other groups.
var quietKinds = []string{
	"AlertmanagerConfig", "GRPCRoute", "HTTPRoute", "PodMonitor", "Probe", "PrometheusRule", "ReferenceGrant", "ScrapeConfig",
	"ServiceMonitor", "TCPRoute", "TLSRoute", "UDPRoute",
}

// isQuiet tells whether no controller makes further, unknown objects from an object in its namespace. For HelmReleases and Kustomizations,
// the objects that they apply count instead.
func isQuiet(o *object) bool {
	group := groupOf(o)
	return makers[o.Kind] != nil || slices.Contains(quietKinds, o.Kind) || slices.Contains(quietGroups, group) ||
		strings.HasSuffix(group, ".toolkit.fluxcd.io") && o.Kind != "ImageUpdateAutomation"
}

// grantsOf returns the resources that a role lets a program of the cluster create. The object is the role, or a binding to a role that
// every cluster has.
func grantsOf(o *object) (out []string) {
	if groupOf(o) != "rbac.authorization.k8s.io" {
		return nil
	}
	var content map[string]any
	_ = kjson.Unmarshal(o.JSON, &content) // its schema reports wrong types
	f := mapping.Fields(content)
	for _, rule := range f.List("rules") {
		verbs, _ := rule["verbs"].([]any)
		resources, _ := rule["resources"].([]any)
		if !slices.Contains(verbs, any("create")) && !slices.Contains(verbs, any("*")) {
			continue
		}
		for _, resource := range resources {
			if name, ok := resource.(string); ok {
				out = append(out, name)
			}
		}
	}
	if slices.Contains([]string{"cluster-admin", "admin", "edit"}, f.Text("roleRef", "name")) &&
		slices.ContainsFunc(f.List("subjects"), func(subject mapping.Fields) bool { return subject.Text("kind") == "ServiceAccount" }) {
		out = append(out, "*")
	}
	return out
}

// knows tells whether the repo declares all objects of a kind in a namespace. It returns false if controllers, or charts or folders from
// outside of the repo, may make further objects, and for a namespace that existed before the fleet.
func (s *resolver) knows(p place, namespace, kind string) bool {
	a, at := s.surround(), space{p, namespace}
	if namespace == "" || s.strange[p] || systemNamespaces.MatchString(namespace) || len(a.releases[at]) > 0 || a.open[at] ||
		!s.objects[known{place: p, kind: "Namespace", name: namespace}] {
		return false
	}
	if (kind == "Secret" || kind == "ConfigMap") && s.opaque[p] { // operators copy them from namespace to namespace
		return false
	}
	resource := strings.ToLower(kind) + "s"
	for _, granted := range []map[string]bool{a.grants[at], a.grants[space{p, ""}]} {
		if granted[resource] || granted["*"] {
			return false
		}
	}
	return true
}

// mayBeOfChart tells whether a chart from outside of the repo may have made an object of this name.
func (s *resolver) mayBeOfChart(at space, name string) bool {
	return slices.ContainsFunc(s.surround().releases[at], func(made string) bool {
		return strings.Contains(name, made) || strings.Contains(made, name)
	})
}
