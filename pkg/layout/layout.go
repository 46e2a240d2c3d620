// Package layout knows the place of everything in a fleet repo. Only this package knows the folders and the names of files. All paths have
// forward slashes.
package layout

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Layout are the places of a management cluster and its workload clusters in one cloud in the fleet repo.
type Layout struct {
	// Cloud is the folder below providers/ of the clusters.
	Cloud string
	// Home, if not empty, is the folder below providers/ of the management cluster's own configuration, which is another one than Cloud.
	Home string
	// Generation is the folder below that: a new generation of management cluster can stand beside the old one.
	Generation string
	// Path, if not empty, is the management cluster's own folder, if it is not the folder of its generation.
	Path string
}

// CleanPath is the path of a folder of the repo in its one form. People and Flux write such paths in several forms (./clusters/production/,
// or / for the top). "" stays "".
func CleanPath(dir string) string {
	if dir == "" {
		return ""
	}
	return path.Clean(strings.TrimPrefix(dir, "./"))
}

// Owned is the folder that is the management cluster's alone: that of its generation in the cloud, with all that it makes there.
func (l Layout) Owned() string { return l.generationDir() }

// homeDir is the folder of the generation that has the management cluster's own configuration.
func (l Layout) homeDir() string {
	return path.Join("providers", cmp.Or(l.Home, l.Cloud), l.Generation)
}

func (l Layout) generationDir() string { return path.Join("providers", l.Cloud, l.Generation) }

// Management is the folder that the management cluster's Flux applies first.
func (l Layout) Management() string {
	if l.Path != "" {
		return l.Path
	}
	return path.Join(l.homeDir(), "mgmt")
}

// IsHome tells whether the management cluster's own configuration stands in the same cloud as the clusters.
func (l Layout) IsHome() bool { return l.Home == "" }

// HandedOverDir is the folder, beside mgmt, with the records of what a management cluster has handed over. No Flux applies it.
const HandedOverDir = "handed-over"

// HandedOver is the record of what the management cluster has handed over to one that it made.
func (l Layout) HandedOver(to string) string {
	return path.Join(l.homeDir(), HandedOverDir, to+".yaml")
}

// Ended is the note that the management cluster called name, whose layout this is, has ended after it had handed its work over. It stands
// beside the records of what it has handed over: no management cluster makes itself.
func (l Layout) Ended(name string) string { return l.HandedOver(name) }

// Identity is the file that says which cluster the management cluster is. It is not YAML by its name, so that no Flux takes it for a
// manifest.
func (l Layout) Identity() string { return path.Join(l.homeDir(), identityFile) }

const identityFile = "management.id"

// Clusters is the folder of the environments' folders.
func (l Layout) Clusters() string { return path.Join(l.generationDir(), "clusters") }

// Environment is the folder of an environment's clusters.
func (l Layout) Environment(name string) string { return path.Join(l.Clusters(), name) }

// ClustersFile has the Flux Kustomization that applies an environment's folder.
func (l Layout) ClustersFile(environment string) string {
	return path.Join(l.Management(), l.ClustersName(environment)+".yaml")
}

// ClustersName is the name of the Flux Kustomization in ClustersFile. A dot is before the cloud because no environment has a dot in its
// name.
func (l Layout) ClustersName(environment string) string {
	if l.IsHome() {
		return "clusters-" + environment
	}
	return "clusters-" + environment + "." + l.Cloud
}

// Apps is the folder with what every cluster of an environment runs: its own Flux applies it.
func (l Layout) Apps(environment string) string {
	return path.Join(l.Environment(environment), CommonDir, "apps")
}

// FoldersFile has the Flux Kustomizations by which the folders of Scopes reach the clusters of an environment.
func (l Layout) FoldersFile(environment string) string {
	return path.Join(l.Apps(environment), FoldersName)
}

// EnvironmentChart is the file with the HelmChart of a flavour.
func (l Layout) EnvironmentChart(environment, flavour string) string {
	return path.Join(l.Environment(environment), "chart-"+flavour+".yaml")
}

// ChartName is the name of the HelmChart, in flux-system, of an environment's clusters of a flavour.
func ChartName(environment, flavour string) string { return environment + "-" + flavour }

// FlavourOf is the flavour of the HelmChart called name of an environment: the other way round. ok is false for any other name.
func FlavourOf(environment, name string) (flavour string, ok bool) {
	flavour, ok = strings.CutPrefix(name, environment+"-")
	return flavour, ok && flavour != ""
}

// SourceDir is the folder with nothing but the GitRepository of a channel. The management cluster applies it, and for each cluster that
// follows the channel itself a Flux Kustomization can, so that the one line in it moves both.
func (l Layout) SourceDir(channel string) string {
	return path.Join(l.Management(), "sources", channel)
}

// Cluster is the folder of one cluster.
func (l Layout) Cluster(environment, name string) string {
	return path.Join(l.Environment(environment), name)
}

// ChartsDir holds one chart per flavour of cluster.
const ChartsDir = "charts"

// CommonDir holds what an environment has for all its clusters; no cluster can be called so.
const CommonDir = "common"

// SourceFile is the one file of SourceDir.
func (l Layout) SourceFile(channel string) string {
	return path.Join(l.SourceDir(channel), "gitrepository.yaml")
}

// SyncFile says what a management cluster's Flux follows; see pkg/flux.
func (l Layout) SyncFile() string { return path.Join(l.Management(), "flux-system", "gotk-sync.yaml") }

// InChannels tells whether a path of the fleet repo is what environments run, each at the tag or branch of its channel. What the management
// clusters are themselves made of, the tags of the channels among it, is the branch's alone.
func InChannels(name string) bool {
	switch name {
	case "fleet.yaml", "fleet.lock":
		return false
	}
	parts := strings.SplitN(name, "/", 5)
	switch {
	case len(parts) < 4 || parts[0] != "providers":
		return true
	case len(parts) == 4:
		return parts[3] != identityFile
	}
	return parts[3] != "mgmt" && parts[3] != HandedOverDir
}

// Tenant is the folder of a tenant in an environment; with the environment "" the one with what it has in all of them.
func (l Layout) Tenant(environment, name string) string {
	return path.Join(TenantsDir(l.Cloud), cmp.Or(environment, CommonDir), name)
}

// TenantsDir is the folder of the tenants of a cloud.
func TenantsDir(cloud string) string { return path.Join("tenants", cloud) }

// TenantFile is the Flux Kustomization that gives a tenant to the clusters of an environment.
func (l Layout) TenantFile(environment, name string) string {
	return path.Join(l.Apps(environment), "tenants", name+".yaml")
}

// WorkloadFlux is the folder with Flux itself for the clusters of an environment.
func (l Layout) WorkloadFlux(environment string) string {
	return path.Join(l.Environment(environment), CommonDir, FluxDir)
}

// Sync is the folder with what connects the Flux of an environment's clusters to the fleet repo. The management cluster applies it to
// each of them, and decrypts what is encrypted there.
func (l Layout) Sync(environment string) string {
	return path.Join(l.Environment(environment), CommonDir, "sync")
}

// Credentials is the file with what the clusters of an environment read the fleet repo with, encrypted.
func (l Layout) Credentials(environment string) string {
	return path.Join(l.Sync(environment), "git-auth.sops.yaml")
}

// Files and folders that have one name wherever they stand.
const (
	// FluxFile stands beside a cluster.yaml and holds the Flux objects that work on that cluster.
	FluxFile = "flux.yaml"
	// AddonsDir holds what clusters need before anything else runs on them; below it cni has a folder for each choice of network.
	AddonsDir = "addons"
	// ComponentsFile holds the CRDs and controllers of Flux, in a folder FluxDir.
	ComponentsFile = "gotk-components.yaml"
	// FluxDir is where Flux itself stands: for the management cluster, and once for the clusters of each environment.
	FluxDir = "flux-system"
	// SourceFile is the source of the clusters of an environment.
	SourceFile = "source.yaml"
)

// CNIDir is the folder of a network that clusters can be given.
func CNIDir(name string) string { return path.Join(AddonsDir, "cni", name) }

// Scopes are the folders of what a cluster runs, beside its cluster.yaml and in CommonDir, in the order in which they are applied: what
// only the platform may own comes before what stands in a namespace.
func Scopes() []string { return []string{"non-namespaced", "namespaced"} }

const (
	// FoldersName is the name of FoldersFile.
	FoldersName = "folders.yaml"
	// KeepFile keeps a folder in Git that has nothing else in it.
	KeepFile = ".gitkeep"
)

// FeaturesDir has one folder per feature.
const FeaturesDir = "features"

// KustomizationNames are the file names that kustomize reads by themselves.
func KustomizationNames() []string {
	return []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}
}

// IsKustomization tells whether kustomize reads the file at a path by itself, for its name.
func IsKustomization(file string) bool {
	return slices.Contains(KustomizationNames(), path.Base(file))
}
