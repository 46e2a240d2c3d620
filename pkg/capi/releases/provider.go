package releases

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ProviderType is a Cluster API provider type.
type ProviderType string

// The provider types, as fleet.yaml spells them.
const (
	Core             ProviderType = "core"
	Bootstrap        ProviderType = "bootstrap"
	ControlPlane     ProviderType = "control-plane"
	Infrastructure   ProviderType = "infrastructure"
	IPAM             ProviderType = "ipam"
	Addon            ProviderType = "addon"
	RuntimeExtension ProviderType = "runtime-extension"
)

// Provider is one Cluster API provider.
type Provider struct {
	// Name is the provider's name in clusterctl: cluster-api, kubeadm, aws, docker….
	Name string
	// Type is the type of the provider. Empty means Infrastructure.
	Type ProviderType
	// Version is the version to install (v1.14.2). Source.Resolve fills in an empty version.
	Version string
	// URL is the address of the components of a provider that clusterctl does not know.
	URL string
}

// String returns for example "infrastructure provider aws v2.9.1", without the version if it is empty.
func (p Provider) String() string {
	text := fmt.Sprintf("%s provider %s", cmp.Or(p.Type, Infrastructure), p.Name)
	if p.Version != "" {
		text += " " + p.Version
	}
	return text
}

// Label returns the provider's name in clusterctl's inventory and repositories: "infrastructure-aws".
func (p Provider) Label() string { return clusterctlv1.ManifestLabel(p.Name, p.ClusterctlType()) }

// ClusterctlType returns clusterctl's name of the type.
func (p Provider) ClusterctlType() clusterctlv1.ProviderType {
	switch p.Type {
	case Core:
		return clusterctlv1.CoreProviderType
	case Bootstrap:
		return clusterctlv1.BootstrapProviderType
	case ControlPlane:
		return clusterctlv1.ControlPlaneProviderType
	case Infrastructure, "":
		return clusterctlv1.InfrastructureProviderType
	case IPAM:
		return clusterctlv1.IPAMProviderType
	case Addon:
		return clusterctlv1.AddonProviderType
	case RuntimeExtension:
		return clusterctlv1.RuntimeExtensionProviderType
	}
	return clusterctlv1.ProviderTypeUnknown
}

// TypeOf is the inverse of ClusterctlType.
func TypeOf(t clusterctlv1.ProviderType) ProviderType {
	for _, own := range []ProviderType{Core, Bootstrap, ControlPlane, Infrastructure, IPAM, Addon, RuntimeExtension} {
		if (Provider{Type: own}).ClusterctlType() == t {
			return own
		}
	}
	return ProviderType(t)
}

// WithDefaults returns providers with their types filled in, in clusterctl's order. It adds the core provider and the kubeadm bootstrap and
// control plane providers if no provider of their type is listed.
func WithDefaults(providers []Provider) []Provider {
	all := slices.Clone(providers)
	for i := range all {
		all[i].Type = cmp.Or(all[i].Type, Infrastructure)
	}
	for _, standard := range []Provider{
		{Name: config.ClusterAPIProviderName, Type: Core},
		{Name: config.KubeadmBootstrapProviderName, Type: Bootstrap},
		{Name: config.KubeadmControlPlaneProviderName, Type: ControlPlane},
	} {
		if !slices.ContainsFunc(all, func(p Provider) bool { return p.Type == standard.Type }) {
			all = append(all, standard)
		}
	}
	slices.SortStableFunc(all, func(a, b Provider) int {
		return cmp.Or(cmp.Compare(a.ClusterctlType().Order(), b.ClusterctlType().Order()), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Known returns the providers that clusterctl can find, for completion and for suggesting a name.
func Known() ([]Provider, error) {
	reader := config.NewMemoryReader()
	client, err := newConfig(reader, nil, nil)
	if err != nil {
		return nil, err
	}
	list, err := client.Providers().List()
	if err != nil {
		return nil, fmt.Errorf("list the providers that are known: %w", err)
	}
	known := make([]Provider, 0, len(list))
	for _, p := range list {
		known = append(known, Provider{Name: p.Name(), Type: TypeOf(p.Type()), URL: p.URL()})
	}
	return known, nil
}

// providersBook lists all providers with their documentation.
const providersBook = "https://cluster-api.sigs.k8s.io/reference/providers"

// DocumentationURL returns the URL of the page about a provider: its needs, its variables, and how to make its credentials.
func (p Provider) DocumentationURL() string {
	if p.Type != Infrastructure && p.Type != "" {
		return providersBook
	}
	switch p.Name {
	case config.AWSProviderName:
		return "https://cluster-api-aws.sigs.k8s.io/getting-started"
	case config.AzureProviderName:
		return "https://capz.sigs.k8s.io/getting-started"
	case config.GCPProviderName:
		return "https://cluster-api-gcp.sigs.k8s.io/prerequisites"
	case config.VSphereProviderName:
		return "https://github.com/kubernetes-sigs/cluster-api-provider-vsphere/blob/main/docs/getting_started.md"
	case config.OpenStackProviderName:
		return "https://cluster-api-openstack.sigs.k8s.io/getting-started"
	case config.DOProviderName:
		return "https://github.com/kubernetes-sigs/cluster-api-provider-digitalocean/blob/main/docs/getting-started.md"
	case config.HetznerProviderName:
		return "https://syself.com/docs/caph/getting-started/introduction"
	case config.Metal3ProviderName:
		return "https://book.metal3.io/capm3/introduction"
	case config.NutanixProviderName:
		return "https://opendocs.nutanix.com/capx/latest/getting_started/"
	case config.OCIProviderName:
		return "https://oracle.github.io/cluster-api-provider-oci/gs/gs.html"
	case config.ProxmoxProviderName:
		return "https://github.com/ionos-cloud/cluster-api-provider-proxmox/blob/main/docs/Usage.md"
	case config.KubevirtProviderName:
		return "https://github.com/kubernetes-sigs/cluster-api-provider-kubevirt#readme"
	case config.DockerProviderName:
		return "https://cluster-api.sigs.k8s.io/user/quick-start"
	}
	return providersBook
}

// ErrUnknownProvider says that neither clusterctl nor fleet.yaml tells where the components of a provider are.
var ErrUnknownProvider = errors.New("no provider of that name is known")

// CheckKnown returns an error for a provider that clusterctl does not know and that has no URL. The error matches ErrUnknownProvider.
func CheckKnown(p Provider) error {
	if p.URL != "" {
		return nil
	}
	known, err := Known()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(known, func(k Provider) bool { return k.Name == p.Name && k.ClusterctlType() == p.ClusterctlType() }) {
		return nil
	}
	return unknownProvider(p, known)
}

// unknownProvider returns the error for an unknown provider. Its hint has the nearest name of the provider's type, or the type of a
// provider with this name.
func unknownProvider(p Provider, known []Provider) error {
	hint := "check the name against " + providersBook + ", or give the url of its components in fleet.yaml"
	var names []string
	for _, k := range known {
		if k.ClusterctlType() == p.ClusterctlType() {
			names = append(names, k.Name)
		} else if k.Name == p.Name {
			hint = fmt.Sprintf("%s is a provider of the type %s; %s", p.Name, k.Type, hint)
		}
	}
	if nearest := cmp.Or(makerOf(p.Name, names), diag.Nearest(p.Name, names)); nearest != "" {
		hint = "did you mean " + nearest + "? Otherwise " + hint
	}
	return diag.Wrap("find "+p.String(), ErrUnknownProvider, hint)
}

// makerOf returns the known provider that makes the clusters of a flavour: aws makes those of aws-eks. The docker provider also makes
// clusters in memory. It returns "" if there is none.
func makerOf(flavour string, known []string) string {
	if flavour == "in-memory" && slices.Contains(known, config.DockerProviderName) {
		return config.DockerProviderName
	}
	for _, name := range known {
		if strings.HasPrefix(flavour, name+"-") {
			return name
		}
	}
	return ""
}
