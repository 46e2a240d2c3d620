package scaffold

import (
	"cmp"
	"path"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// The possible roles of a tenant's people in their namespace. They are cluster roles of every Kubernetes cluster.
const (
	RoleAdmin = "admin"
	RoleView  = "view"
)

// TenantOptions declare a tenant in one environment.
type TenantOptions struct {
	// Name of the tenant and of its namespace: a DNS label.
	Name string
	// Group of the tenant's people at the clusters' identity provider. Default: the tenant's name.
	Group string
	// Layout and Environment say where the files go.
	Layout      layout.Layout
	Environment string
	// Production makes view the default of Role. Otherwise the default is admin.
	Production bool
	Role       string
}

// TenantFiles returns the files of a tenant: a namespace with a quota, limits, a network policy that denies all traffic, and a service
// account for Flux; the RoleBinding of the tenant's group in the environment; and the Flux Kustomization with which the environment's
// clusters apply them. Errors: bad names.
func TenantFiles(opts TenantOptions) ([]manifest.File, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	role := RoleAdmin
	if opts.Production {
		role = RoleView
	}
	dir, common := opts.Layout.Tenant(opts.Environment, opts.Name), opts.Layout.Tenant("", opts.Name)
	data := struct {
		Tenant, Environment, Group, Role, Path, Common string
		Production                                     bool
	}{
		opts.Name, opts.Environment, cmp.Or(opts.Group, opts.Name), cmp.Or(opts.Role, role), dir,
		path.Join("../..", layout.CommonDir, opts.Name), opts.Production,
	}
	var out []manifest.File
	add := func(template, target string) error {
		content, err := execute("tenant/"+template, data)
		out = append(out, manifest.File{Path: target, Content: content})
		return err
	}
	for _, name := range []string{
		"kustomization.yaml", "namespace.yaml", "quota.yaml", "limits.yaml", "network-policy.yaml",
		"service-account.yaml",
	} {
		if err := add(name, path.Join(common, name)); err != nil {
			return nil, err
		}
	}
	for template, target := range map[string]string{
		"environment.yaml": path.Join(dir, "kustomization.yaml"), "role-binding.yaml": path.Join(dir, "role-binding.yaml"),
		"apply.yaml": opts.Layout.TenantFile(opts.Environment, opts.Name),
	} {
		if err := add(template, target); err != nil {
			return nil, err
		}
	}
	return sorted(out), nil
}

func (o TenantOptions) check() error {
	if err := CheckLayout(o.Layout); err != nil {
		return err
	}
	if err := CheckName("environment", o.Environment, 40); err != nil {
		return err
	}
	if err := CheckName("tenant", o.Name, 50); err != nil {
		return err
	}
	switch o.Name {
	case "default", "flux-system", "kube-system", "kube-public", "kube-node-lease":
		return diag.Usage("choose another name", "tenant %q would use a namespace of the platform", o.Name)
	}
	switch o.Role {
	case "", RoleAdmin, RoleView, "edit":
		return nil
	}
	return diag.Usage("give one of admin, edit, view", "unknown role %q", o.Role)
}
