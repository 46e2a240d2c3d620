package v1alpha1

import "slices"

// Defaults are the versions that SetDefaults fills in. They are the versions that this fleetctl embeds. An empty version fills nothing in.
type Defaults struct {
	// FluxVersion is for spec.flux.version.
	FluxVersion string
	// CAPIVersion is for the core provider and the kubeadm providers, which are released together.
	CAPIVersion string
}

const (
	// DefaultBranch is the default of spec.git.branch.
	DefaultBranch     = "main"
	defaultUsername   = "git"
	defaultGeneration = "v1"
	defaultRegistry   = "ghcr.io/fluxcd"

	defaultInterval      = "1m"
	defaultLocalInterval = "10s"
)

// The providers of Cluster API itself.
const (
	CoreProviderName    = "cluster-api"
	KubeadmProviderName = "kubeadm"
)

// DefaultFluxComponents returns the default of spec.flux.components.
func DefaultFluxComponents() []string {
	return []string{"source-controller", "kustomize-controller", "helm-controller", "notification-controller"}
}

// SetDefaults fills in the empty fields of f with the defaults in the fields' documentation. A second call changes nothing.
func SetDefaults(f *Fleet, versions Defaults) {
	setDefault(&f.APIVersion, APIVersion)
	setDefault(&f.Kind, Kind)

	git := &f.Spec.Git
	setDefault(&git.Branch, DefaultBranch)
	setDefault(&git.Username, defaultUsername)
	if git.Scheme() == GitLocal {
		setDefault(&git.Interval, defaultLocalInterval)
	}
	setDefault(&git.Interval, defaultInterval)

	flux := &f.Spec.Flux
	setDefault(&flux.Version, versions.FluxVersion)
	setDefault(&flux.Registry, defaultRegistry)
	if len(flux.Components) == 0 {
		flux.Components = DefaultFluxComponents()
	}
	if flux.NetworkPolicy == nil {
		flux.NetworkPolicy = new(true)
	}
	for i := range f.Spec.ManagementClusters {
		setClusterDefaults(&f.Spec.ManagementClusters[i], versions)
	}
	for i := range f.Spec.Standbys {
		setDefault(&f.Spec.Standbys[i].Host.Type, HostKind)
	}
}

func setClusterDefaults(m *ManagementCluster, versions Defaults) {
	if m.Parent != "" {
		setDefault(&m.Host.Type, HostWorkload)
	}
	setDefault(&m.Host.Type, HostKind)
	setDefault(&m.Generation, defaultGeneration)
	setDefault(&m.Cloud, m.defaultCloud())
	for i := range m.Providers {
		setDefault(&m.Providers[i].Type, ProviderInfrastructure)
	}
	// Added providers go to the end, so that the listed ones keep their index: findings refer to it.
	for _, own := range []Provider{
		{Name: CoreProviderName, Type: ProviderCore},
		{Name: KubeadmProviderName, Type: ProviderBootstrap},
		{Name: KubeadmProviderName, Type: ProviderControlPlane},
	} {
		if !slices.ContainsFunc(m.Providers, func(p Provider) bool { return p.Type == own.Type }) {
			m.Providers = append(m.Providers, own)
		}
		for i := range m.Providers {
			if p := &m.Providers[i]; p.Type == own.Type && p.Name == own.Name && p.URL == "" {
				setDefault(&p.Version, versions.CAPIVersion)
			}
		}
	}
}

func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
