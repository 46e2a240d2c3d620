package validate

import (
	"regexp"
	"slices"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// place is a cluster: a management cluster, or one of its workload clusters.
type place struct{ mgmt, target string }

func (p place) String() string {
	if p.target == "" {
		return "management cluster " + p.mgmt
	}
	return "cluster " + p.target
}

// known identifies an object of a place, as references do.
type known struct {
	place                 place
	kind, namespace, name string
	// group is the API group of the kind, for references that have it.
	group string
}

// in returns the object that a reference leads to, in a place.
func (r reference) in(p place) known {
	return known{place: p, group: r.group, kind: r.kind, namespace: r.namespace, name: r.name}
}

// referable returns the chosen objects in each of their places, as references with a group identify them.
func referable(all []*object, chosen func(*object) bool) map[known]*object {
	out := map[known]*object{}
	for _, o := range all {
		if o.content != nil || !chosen(o) {
			continue
		}
		group, _, _ := strings.Cut(o.APIVersion, "/")
		for _, p := range o.places() {
			out[known{place: p, group: group, kind: o.Kind, namespace: o.Namespace, name: o.Name}] = o
		}
	}
	return out
}

// groupKind is a kind that references lead to.
type groupKind struct{ group, kind string }

// resolver knows which objects will exist in which place.
type resolver struct {
	run     *run
	objects map[known]bool
	names   map[known][]string // by a known without a name
	// clusters are the workload clusters, by their namespace.
	clusters map[known]bool
	// opaque are the places to which objects from outside of the repo are applied.
	opaque map[place]bool
	// strange are the places to which whole folders from outside of the repo are applied. unbound are those of them where the rights of no
	// tenant bound what such a folder brings.
	strange, unbound map[place]bool
	// read are the ConfigMaps of ClusterResourceSets that were already checked.
	read map[*render.Object]bool
	// around is the result of surround.
	around *surroundings
	// patterns are objects whose namespace or name is known only in part.
	patterns []known
	// wanted are the further kinds besides the kinds that are always followed.
	wanted map[groupKind]bool
	// applied are all objects. named has them by their names; it is filled when the first reference leads nowhere.
	applied []*object
	named   map[known][]*object
	// owners maps each object that can have one owner in Cluster API to the first object that claims it.
	owners map[known]*object
	// lacks maps findings to the missing objects.
	lacks map[said]known
	// scalers maps each object that an autoscaler is for to the first autoscaler. adders are what may add requests to containers.
	scalers map[scaledIn]*object
	adders  map[known]bool
	// scaled are the objects that an autoscaler of any kind names, by their places, namespaces and names alone.
	scaled map[known]bool
	// claims maps what an object has for itself alone to the first object that claims it.
	claims map[claim]*object
	// values are the values of HelmReleases that were already checked.
	values map[valuesIn]bool
}

// followed are the kinds of which resolver knows all objects.
var followed = map[string]bool{
	"Namespace": true, "Secret": true, "ConfigMap": true, "GitRepository": true, "HelmRepository": true, "OCIRepository": true, "Bucket": true,
	"HelmChart": true, "Kustomization": true, "HelmRelease": true, "AWSClusterRoleIdentity": true, "AWSClusterStaticIdentity": true,
	"AWSClusterControllerIdentity": true, "AzureClusterIdentity": true, "VSphereClusterIdentity": true, "OpenStackClusterIdentity": true,
	"VSphereFailureDomain": true,
	"ExternalArtifact":     true,
}

func (o *object) places() []place {
	if len(o.Targets) == 0 {
		return []place{{mgmt: o.ManagementCluster}}
	}
	out := make([]place, len(o.Targets))
	for i, t := range o.Targets {
		out[i] = place{o.ManagementCluster, t}
	}
	return out
}

// checkReferences reports references to missing objects. It ignores objects that nothing applies, because it is not known in which place
// they would be.
func (r *run) checkReferences(all []*object) diag.Findings {
	s := &resolver{
		run: r, objects: map[known]bool{}, names: map[known][]string{}, clusters: map[known]bool{}, opaque: map[place]bool{},
		strange: map[place]bool{}, unbound: map[place]bool{}, read: map[*render.Object]bool{},
		wanted: map[groupKind]bool{}, owners: map[known]*object{}, lacks: map[said]known{},
		scalers: map[scaledIn]*object{}, values: map[valuesIn]bool{}, claims: map[claim]*object{},
	}
	var applied []*object
	for _, o := range all {
		if o.content == nil {
			applied = append(applied, o)
			for i := range o.refs {
				if ref := &o.refs[i]; ref.rule == RuleClusterRef || ref.rule == RuleMissingObject {
					s.wanted[groupKind{ref.group, ref.kind}] = true
				}
			}
		}
	}
	s.applied = applied
	for _, o := range applied {
		s.learn(o)
	}
	s.findOpaque()
	var out diag.Findings
	for _, o := range applied {
		out = append(out, s.check(o)...)
		out = append(out, s.checkSelections(o)...)
		for _, p := range o.places() {
			out = append(out, slices.Concat(s.checkValues(p, o), s.checkScaled(p, o), s.checkBudget(p, o), s.checkClaims(p, o))...)
		}
	}
	return append(s.together(s.oncePerNamespace(out)), s.cycles(applied)...)
}

func (s *resolver) learn(o *object) {
	made := slices.Concat(makes(o), o.made)
	group, _, _ := strings.Cut(o.APIVersion, "/")
	for _, g := range []string{group, ""} {
		if s.wanted[groupKind{g, o.Kind}] {
			made = append(made, known{group: g, kind: o.Kind, namespace: o.Namespace, name: o.Name})
		}
	}
	for _, p := range o.places() {
		for _, k := range made {
			k.place = p
			if strings.Contains(k.namespace+k.name, anywhere) {
				s.patterns = append(s.patterns, k)
			} else if !s.objects[k] {
				s.objects[k] = true
				name := k.name
				k.name = ""
				s.names[k] = append(s.names[k], name)
			}
		}
		if o.Kind == "Cluster" && strings.HasPrefix(o.APIVersion, "cluster.x-k8s.io/") {
			s.clusters[known{place: p, namespace: o.Namespace, name: o.Name}] = true
		}
	}
}

// makes returns the object itself and, for a HelmRelease, the namespace that it makes.
func makes(o *object) []known {
	switch {
	case o.Kind == "HelmRelease":
		out := []known{{kind: o.Kind, namespace: o.Namespace, name: o.Name}}
		if name := o.createsNamespace(); name != "" {
			out = append(out, known{kind: "Namespace", name: name})
		}
		return out
	case !followed[o.Kind]:
		return nil
	case o.Kind == render.KindKustomization && !o.IsKustomization():
		return nil
	}
	return []known{{kind: o.Kind, namespace: o.Namespace, name: o.Name}}
}

// createsNamespace is the namespace that a HelmRelease makes for its objects on its own cluster; "" if it makes none.
func (o *object) createsNamespace() string {
	var says struct {
		Spec struct {
			TargetNamespace string `json:"targetNamespace"`
			KubeConfig      any    `json:"kubeConfig"`
			Install         struct {
				CreateNamespace bool `json:"createNamespace"`
			} `json:"install"`
		} `json:"spec"`
	}
	if kjson.Unmarshal(o.JSON, &says) != nil || !says.Spec.Install.CreateNamespace || says.Spec.KubeConfig != nil {
		return ""
	}
	return says.Spec.TargetNamespace
}

// findOpaque finds the places to which charts and sources from outside of the repo are applied. They may make namespaces.
func (s *resolver) findOpaque() {
	for _, rel := range s.run.rendered.Releases {
		if !rel.Rendered || rel.Outside != nil {
			for _, p := range (&object{Object: rel.Object}).places() {
				s.opaque[p] = true
			}
		}
	}
	if slices.ContainsFunc(s.run.rendered.Findings, func(f diag.Finding) bool { return f.Rule == render.RuleRemote }) {
		for k := range s.objects {
			s.opaque[k.place], s.strange[k.place] = true, true
		}
	}
	follows := map[string]bool{}
	for _, k := range s.run.rendered.Kustomizations {
		follows[k.ManagementCluster+"\x00"+k.Namespace+"/"+k.Name] = true
	}
	for k := range s.objects {
		if k.kind == "Kustomization" && !follows[k.place.mgmt+"\x00"+k.namespace+"/"+k.name] {
			s.opaque[k.place], s.strange[k.place] = true, true
		}
	}
	for _, o := range s.applied {
		if o.IsKustomization() && !follows[o.ManagementCluster+"\x00"+o.Namespace+"/"+o.Name] && !o.actsAsTenant() {
			for _, p := range o.places() {
				s.unbound[p] = true
			}
		}
	}
}

// actsAsTenant tells whether a Flux Kustomization applies its objects with the rights of a ServiceAccount of its namespace.
func (o *object) actsAsTenant() bool {
	var says struct {
		Spec struct {
			ServiceAccountName string `json:"serviceAccountName"`
		} `json:"spec"`
	}
	return kjson.Unmarshal(o.JSON, &says) == nil && says.Spec.ServiceAccountName != ""
}

// mayBeElsewhere tells whether the object that a reference of o names may come to a place from outside of this repo.
func (s *resolver) mayBeElsewhere(p place, o *object, ref reference) bool {
	switch ref.rule {
	case RuleMissingSecret, RuleMissingConfig, RuleMissingNS:
		return s.run.isForeign()
	case RuleMissingDepends:
		return s.unbound[p]
	case RuleMissingSource:
		if s.unbound[p] {
			return true
		}
		// Terraform, a cloud, or a chart may make the source with which the cluster's Flux begins.
		return s.run.isForeign() && (ref.kind == "GitRepository" || o.IsKustomization()) &&
			!slices.ContainsFunc(s.called(p, ref.name), func(other *object) bool { return other.Kind == ref.kind })
	}
	return false
}

// check reports the references of one object that lead nowhere, and its namespace if that is missing.
func (s *resolver) check(o *object) diag.Findings {
	var out diag.Findings
	refs := o.refs
	if o.Namespace != "" {
		refs = append(slices.Clip(refs), reference{rule: RuleMissingNS, kind: "Namespace", name: o.Namespace, field: "metadata.namespace"})
	}
	for _, ref := range refs {
		if f := o.misfit(ref); f != nil {
			out = append(out, f...)
			continue
		}
		for _, p := range o.places() {
			if s.there(p, ref) {
				out = append(out, s.leadsTo(p, o, ref)...)
				out = append(out, s.checkPort(p, o, ref)...)
				out = append(out, s.checkKey(p, o, ref)...)
				out = append(out, s.checkResources(p, o, ref)...)
				out = append(out, s.checkAdmits(p, o, ref)...)
				continue
			}
			if slices.ContainsFunc(s.run.gaps(), func(g *gap) bool { return g.mayHave(p, ref.namespace, ref.name) }) {
				continue
			}
			where := ""
			if p.target != "" || len(s.run.fleet.Spec.ManagementClusters) > 1 {
				where = " on " + p.String()
			}
			nearest := s.nearestTo(ref, p)
			if ref.rule == RuleMissingObject {
				if f := s.lacksBeside(p, o, ref, where, nearest); f != nil {
					s.lacks[sayingOf(*f)] = ref.in(p)
					out = append(out, *f)
					break
				}
				continue
			}
			f := o.missing(ref, where, nearest, s.mayBeElsewhere(p, o, ref))
			switch {
			case ref.rule == RuleClusterRef:
				s.explain(&f, p, o, ref)
			case ref.rule == RuleMissingNS && s.opaque[p]:
				f.Severity = diag.SeverityWarning
			}
			s.lacks[sayingOf(f)] = ref.in(p)
			out = append(out, f)
			break
		}
	}
	return out
}

// systemNamespaces exist in every cluster, or come with the components of providers.
var systemNamespaces = regexp.MustCompile(
	`^(default|kube-system|kube-public|kube-node-lease|flux-system|cert-manager|ca[a-z0-9-]*-system)$`)

// there tells whether the object that a reference names will exist in a place.
func (s *resolver) there(p place, ref reference) bool {
	k := ref.in(p)
	switch {
	case s.objects[k], slices.ContainsFunc(s.patterns, k.isOne), controllerIdentity(ref.kind, ref.name):
		return true
	case ref.rule == RuleMissingID && ref.kind == "Secret" && ref.field != "" && strings.HasPrefix(ref.namespace, "ca") &&
		strings.HasSuffix(ref.namespace, "-system"):
		return s.inSystem(p, ref)
	case ref.kind == "Namespace":
		names := s.names[known{place: p, kind: ref.kind}]
		return systemNamespaces.MatchString(ref.name) || s.opaque[p] && !isSlip(ref.name, diag.Nearest(ref.name, names))
	case ref.kind == "Secret":
		return s.madeSecret(p, ref)
	case ref.namespace == "flux-system" && ref.kind == "GitRepository":
		return ref.name == "flux-system" || s.isChannel(ref.name)
	case s.run.isForeign() && ref.rule == RuleMissingSource && ref.namespace == "flux-system" && ref.name == "flux-system":
		return ref.kind == "OCIRepository" || ref.kind == "Bucket" // of a FluxInstance that is made elsewhere
	case ref.namespace == "flux-system" && ref.kind == "Kustomization" && ref.name == "flux-system":
		return true
	}
	return false
}

// madeSecret tells whether a Secret that the repo does not have will be made: by fleetctl for the credentials of a source and for the
// fleet's key, by Cluster API for a cluster, or by the provider of Azure.
func (s *resolver) madeSecret(p place, ref reference) bool {
	if ref.namespace == "flux-system" && (ref.name == "flux-system" || ref.name == "sops-age") {
		return true
	}
	for _, suffix := range []string{"-kubeconfig", "-user-kubeconfig", "-ca", "-etcd", "-sa", "-proxy"} {
		if name, ok := strings.CutSuffix(ref.name, suffix); ok && s.clusters[known{place: p, namespace: ref.namespace, name: name}] {
			return true
		}
	}
	if name, ok := strings.CutSuffix(ref.name, "-azure-json"); ok { // the provider of Azure makes it, for each template of machines
		return slices.ContainsFunc(s.called(p, name), func(o *object) bool {
			return o.Namespace == ref.namespace &&
				strings.HasPrefix(o.Kind, "Azure")
		})
	}
	if name, ok := strings.CutSuffix(ref.name, "-kubeconfig"); ok {
		// The cluster's chart may be one that does not render here.
		return s.opaque[p] && s.objects[known{place: p, kind: "HelmRelease", namespace: ref.namespace, name: name}]
	}
	return false
}

// isChannel tells whether a source is the source of a channel. The first promotion writes it.
func (s *resolver) isChannel(name string) bool {
	for _, c := range s.run.fleet.Channels() {
		if c.Source() == name {
			return true
		}
	}
	return false
}

// isOne tells whether an object matches a pattern.
func (k known) isOne(pattern known) bool {
	return k.place == pattern.place && k.kind == pattern.kind && isLike(pattern.namespace, k.namespace) && isLike(pattern.name, k.name)
}
