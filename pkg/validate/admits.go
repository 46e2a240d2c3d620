package validate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// allowedNamespaces are the namespaces that may use an identity of AWS, Azure or vSphere.
type allowedNamespaces struct {
	List     []string              `json:"list"`
	Selector *metav1.LabelSelector `json:"selector"`
}

// controllerIdentity tells whether an identity is the one that the provider of AWS makes if the repo does not declare it.
func controllerIdentity(kind, name string) bool {
	return kind == "AWSClusterControllerIdentity" && name == "default"
}

// checkAdmits reports an identity that does not admit the namespace of a cluster, or that builds on such an identity. The provider then
// refuses the cluster and says so only in a condition. checkAdmits ignores templates of clusters, because a cluster of their class may be
// in another namespace.
func (s *resolver) checkAdmits(p place, o *object, ref reference) diag.Findings {
	if ref.rule != RuleMissingID || ref.field != "spec.identityRef.name" {
		return nil
	}
	via, seen := "", map[*object]bool{}
	for next := &ref; next != nil; {
		identity := s.identityAt(p, *next)
		if identity == nil || seen[identity] {
			return nil
		}
		seen[identity] = true
		if wants := s.refuses(p, identity, o.Namespace); wants != "" {
			summary := fmt.Sprintf("%s %.120s%s does not admit namespace %.80s: %.300s", identity.Kind, identity.Name, via, o.Namespace, wants)
			hint := "take an identity that admits it, or let this one admit it"
			if file := identity.Source.File; file != "" {
				hint += fmt.Sprintf(", in %s, line %d", file, identity.Source.Line)
			}
			return diag.Findings{o.at(ref.field, RuleIdentityNS, summary, hint)}
		}
		via = fmt.Sprintf(", which %s %.120s builds on,", identity.Kind, identity.Name)
		next = nil
		for i := range identity.refs {
			if identity.refs[i].field == "spec.sourceIdentityRef.name" {
				next = &identity.refs[i]
			}
		}
	}
	return nil
}

// identityAt returns the identity that a reference names. It returns nil if the repo has no such identity or several, or if identities of
// this kind do not restrict namespaces.
func (s *resolver) identityAt(p place, ref reference) *object {
	if scaffold.IdentityProvider(ref.kind) == "" {
		return nil
	}
	var found *object
	for _, o := range s.called(p, ref.name) {
		switch {
		case o.Kind != ref.kind || o.Namespace != ref.namespace:
		case found != nil:
			return nil
		default:
			found = o
		}
	}
	return found
}

// refuses says why an identity does not admit a namespace. It returns "" if the identity admits the namespace, or if the repo does not
// tell.
func (s *resolver) refuses(p place, identity *object, namespace string) string {
	var says struct {
		Spec struct {
			Allowed  *allowedNamespaces    `json:"allowedNamespaces"`
			Selector *metav1.LabelSelector `json:"namespaceSelector"`
		} `json:"spec"`
	}
	if strings.Contains(string(identity.JSON), "${") || kjson.Unmarshal(identity.JSON, &says) != nil {
		return ""
	}
	allowed, field := says.Spec.Allowed, "allowedNamespaces"
	if identity.Kind == "OpenStackClusterIdentity" { // this kind admits all namespaces if it lacks the field
		allowed, field = &allowedNamespaces{Selector: says.Spec.Selector}, "namespaceSelector"
	}
	switch {
	case allowed == nil:
		return "it has no allowedNamespaces, and so admits none"
	case slices.Contains(allowed.List, namespace) && identity.Kind != "VSphereClusterIdentity": // this kind has no list
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(allowed.Selector)
	if err != nil {
		return "" // its schema or its provider reports that
	}
	if empty := allowed.Selector == nil || selector.Empty(); empty {
		if len(allowed.List) == 0 || identity.Kind == "VSphereClusterIdentity" {
			return "" // an empty selector admits all namespaces
		}
		return "its allowedNamespaces names " + strings.Join(allowed.List, ", ")
	}
	has := s.labelsOf(p, namespace)
	if len(has) == 0 || slices.ContainsFunc(has, func(set labels.Set) bool { return selector.Matches(set) }) {
		return ""
	}
	wants := "its " + field + " takes those with the labels " + selector.String()
	if len(allowed.List) > 0 {
		wants += ", and " + strings.Join(allowed.List, ", ")
	}
	return wants
}

// labelsOf returns the labels of a namespace: one set for each object that declares it. It returns none if the repo does not declare the
// namespace, or if Flux fills in the labels.
func (s *resolver) labelsOf(p place, name string) (out []labels.Set) {
	for _, o := range s.called(p, name) {
		if o.Kind != "Namespace" || o.APIVersion != "v1" {
			continue
		}
		var says struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		if strings.Contains(string(o.JSON), "${") || kjson.Unmarshal(o.JSON, &says) != nil {
			return nil
		}
		set := labels.Set{}
		maps.Copy(set, says.Metadata.Labels)
		set["kubernetes.io/metadata.name"] = name // the API server sets it on every namespace, whatever the manifest says
		out = append(out, set)
	}
	return out
}
