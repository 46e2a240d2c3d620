package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// rbacGroup is the API group of roles and their bindings.
const rbacGroup = "rbac.authorization.k8s.io"

// everydayRoles are the ClusterRoles that people bind and that every cluster has: see "User-facing roles" in Kubernetes' documentation of
// RBAC.
var everydayRoles = []string{"admin", "cluster-admin", "edit", "view"}

// binding adds the references of a binding to its role and its ServiceAccounts.
func (c *referrer) binding() {
	role := c.fields.In("roleRef")
	switch name := role.Text("name"); {
	case role.Text("kind") == "Role":
		c.named(rbacGroup, "Role", "", name, "roleRef.name")
	case !strings.Contains(name, ":") && !slices.Contains(everydayRoles, name):
		c.named(rbacGroup, "ClusterRole", "", name, "roleRef.name")
	}
	for i, subject := range c.fields.List("subjects") {
		if namespace := subject.Text("namespace"); subject.Text("kind") == "ServiceAccount" && len(validation.IsDNS1123Label(namespace)) == 0 {
			c.named("", "ServiceAccount", namespace, subject.Text("name"), fmt.Sprintf("subjects[%d].name", i))
		}
	}
}

// nearestTo returns the name of an object that a reference may mean, or "".
func (s *resolver) nearestTo(ref reference, p place) string {
	names := s.names[known{place: p, group: ref.group, kind: ref.kind, namespace: ref.namespace}]
	if ref.kind == "ClusterRole" {
		names = append(slices.Clip(names), everydayRoles...)
	}
	return diag.Nearest(ref.name, names)
}

// meantRole reports a binding to a ClusterRole that is nowhere, if the namespace of the binding has a Role of this name. It returns nil for
// others, and for bindings of charts, which may come with the ClusterRole.
func (s *resolver) meantRole(p place, o *object, ref reference, where string) *diag.Finding {
	if ref.kind != "ClusterRole" || o.Kind != "RoleBinding" || o.Template != "" || s.strange[p] {
		return nil
	}
	if !slices.ContainsFunc(s.called(p, ref.name), func(role *object) bool {
		return role.Kind == "Role" && groupOf(role) == rbacGroup && role.Namespace == o.Namespace
	}) {
		return nil
	}
	f := o.missing(ref, where, "", false)
	f.Hint = "the namespace has a Role of this name: write kind: Role" + sayInComment + ref.rule + " reason"
	return &f
}
