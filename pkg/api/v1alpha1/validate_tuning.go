package v1alpha1

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// knownManager is a manager that fleetctl knows: the provider that installs it, and its flags for tuning.
type knownManager struct {
	name         string
	providerType ProviderType // "" for a component of Flux
	provider     string
	flags        []string
}

// Flags that several managers have.
var (
	clientFlags       = []string{"kube-api-qps", "kube-api-burst"}
	clusterCacheFlags = []string{"clustercache-concurrency", "clustercache-client-qps", "clustercache-client-burst"}
	capiFlags         = append(slices.Clone(clientFlags), clusterCacheFlags...)
	fluxFlags         = append(slices.Clone(clientFlags), "concurrent")
)

// knownManagers returns the managers and flags of these releases: Cluster API v1.11 to v1.14, its providers for AWS v2.13, Azure v1.23,
// Google Cloud v1.13 and vSphere v1.14, and Flux v2.9. Add the new flags of later releases here.
func knownManagers() []knownManager {
	all := []knownManager{
		{"capi-controller-manager", ProviderCore, CoreProviderName, slices.Concat(capiFlags, concurrencies(
			"cluster", "clusterclass", "clusterresourceset", "clustertopology", "extensionconfig", "machine", "machinedeployment",
			"machinehealthcheck", "machinepool", "machineset"))},
		{
			"capi-kubeadm-bootstrap-controller-manager", ProviderBootstrap, KubeadmProviderName,
			slices.Concat(capiFlags, concurrencies("kubeadmconfig")),
		},
		{
			"capi-kubeadm-control-plane-controller-manager", ProviderControlPlane, KubeadmProviderName,
			slices.Concat(capiFlags, concurrencies("kubeadmcontrolplane")),
		},
		{"capd-controller-manager", ProviderInfrastructure, "docker", slices.Concat(capiFlags, concurrencies(
			"devcluster", "devmachine", "devmachinepool", "devmachinetemplate", "dockercluster", "dockermachine", "dockermachinepool",
			"dockermachinetemplate"))},
		{"capa-controller-manager", ProviderInfrastructure, "aws", concurrencies("awscluster", "awsmachine", "instance-state")},
		{
			"capz-controller-manager", ProviderInfrastructure, "azure",
			concurrencies("azurecluster", "azuremachine", "azuremachinepool", "azuremachinepoolmachine"),
		},
		{"capg-controller-manager", ProviderInfrastructure, "gcp", concurrencies("gcpcluster", "gcpmachine", "gkeconfig")},
		{"capv-controller-manager", ProviderInfrastructure, "vsphere", slices.Concat(capiFlags, concurrencies(
			"providerserviceaccount", "servicediscovery", "vspherecluster", "vsphereclusteridentity", "vspheredeploymentzone", "vspheremachine",
			"vspheremachinetemplate", "vspherevm"))},
	}
	for _, component := range FluxComponents() {
		m := knownManager{name: component, flags: fluxFlags}
		if component == "kustomize-controller" {
			m.flags = append(slices.Clone(fluxFlags), "concurrent-ssa")
		}
		all = append(all, m)
	}
	return all
}

func concurrencies(of ...string) []string {
	flags := make([]string, 0, len(of))
	for _, what := range of {
		flags = append(flags, what+"-concurrency")
	}
	return flags
}

// tuningFlag matches the conventional names of tuning flags. It is for managers that fleetctl does not know.
var tuningFlag = regexp.MustCompile(
	`^[a-z0-9]([a-z0-9-]*-)?(concurrency|concurrent|concurrent-reconciles|qps|burst)$|^(concurrent|qps|burst)(-[a-z0-9-]+)?$`)

func (v *validator) tuning(at string, m *ManagementCluster, flux Flux) {
	for i, t := range m.Tuning {
		v.managerTuning(itemPath(at, i), t, m, flux)
	}
	unique(v, m.Tuning, func(i int) string { return itemPath(at, i) + ".manager" }, "manager",
		func(t ManagerTuning) string { return t.Manager })
}

func (v *validator) managerTuning(at string, t ManagerTuning, m *ManagementCluster, flux Flux) {
	v.label(at+".manager", t.Manager, maxLabel)
	known, elsewhere := managersOf(m, flux)
	i := slices.IndexFunc(known, func(k knownManager) bool { return k.name == t.Manager })
	switch {
	case t.Manager == "":
	case i >= 0:
		v.flags(at+".flags", t, known[i].flags)
	case elsewhere && !slices.ContainsFunc(knownManagers(), func(k knownManager) bool { return k.name == t.Manager }):
		v.flags(at+".flags", t, nil) // init looks for its Deployment among those of the provider
	default:
		names := make([]string, 0, len(known))
		for _, k := range known {
			names = append(names, k.name)
		}
		v.oneOf(at+".manager", "manager", t.Manager, names)
	}
	if len(t.Flags) == 0 && t.Resources == (Resources{}) && !v.broken(at+".flags") {
		v.warnf(RuleUnused, at, "add flags or resources, or remove it", "it changes nothing of %.80s", t.Manager)
	}
	for _, amount := range []struct{ field, value string }{
		{"requests.cpu", t.Resources.Requests.CPU},
		{"requests.memory", t.Resources.Requests.Memory},
		{"limits.cpu", t.Resources.Limits.CPU},
		{"limits.memory", t.Resources.Limits.Memory},
	} {
		if amount.value != "" && !quantity.MatchString(amount.value) {
			v.errorf(RuleValue, at+".resources."+amount.field, "write it like 500m, 2 or 512Mi", "%.40q is not an amount", amount.value)
		}
	}
}

// quantity matches a Kubernetes quantity, but not one with an exponent, which is unusual for CPU and memory.
var quantity = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$`)

// managersOf returns the known managers of the providers and Flux components that the management cluster installs. elsewhere means that it
// also installs managers that fleetctl does not know.
func managersOf(m *ManagementCluster, flux Flux) (known []knownManager, elsewhere bool) {
	cluster := ManagementCluster{Providers: slices.Clone(m.Providers)}
	setClusterDefaults(&cluster, Defaults{})
	components := flux.Components
	if len(components) == 0 {
		components = DefaultFluxComponents()
	}
	all := knownManagers()
	for _, p := range cluster.Providers {
		i := slices.IndexFunc(all, func(k knownManager) bool { return k.providerType == p.Type && k.provider == p.Name })
		elsewhere = elsewhere || i < 0 || p.URL != ""
		if i >= 0 {
			k := all[i]
			if p.URL != "" { // a fork may have other flags
				k.flags = nil
			}
			known = append(known, k)
		}
	}
	for _, k := range all {
		if k.providerType == "" && slices.Contains(components, k.name) {
			known = append(known, k)
		}
	}
	// The Azure provider also installs Azure Service Operator, a manager that is not in the list.
	elsewhere = elsewhere || slices.ContainsFunc(known, func(k knownManager) bool { return k.provider == "azure" })
	return known, elsewhere
}

// flags checks the names and values of flags. If known is nil, names must follow the convention.
func (v *validator) flags(at string, t ManagerTuning, known []string) {
	for _, name := range slices.Sorted(maps.Keys(t.Flags)) {
		here := fieldPath(at, name)
		switch {
		case strings.HasPrefix(name, "-"):
			v.errorf(RuleValue, here, "write "+strings.TrimLeft(name, "-"), "write the name of a flag without dashes")
		case known != nil:
			v.oneOf(here, "flag of "+t.Manager, name, known)
		case !tuningFlag.MatchString(name):
			v.errorf(RuleValue, here, "flags for tuning are called …-concurrency, …-qps and …-burst, or begin with concurrent",
				"unknown flag of %s %.60q", t.Manager, name)
		}
		if t.Flags[name] < 1 {
			v.errorf(RuleValue, here, "remove it to use the manager's own value", "%d is less than 1", t.Flags[name])
		}
	}
}
