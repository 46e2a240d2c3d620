// Package v1alpha1 has the types of fleet.yaml. Loading is strict. The comments here document every field, and the JSON schema in
// docs/reference is generated from these types.
package v1alpha1

// APIVersion and Kind are the first two lines of every fleet.yaml. FileName is its path in the fleet repo.
const (
	APIVersion = "fleetctl.dev/v1alpha1"
	Kind       = "Fleet"
	FileName   = "fleet.yaml"
)

// Fleet declares one fleet: its Git repository, its management clusters and how Flux runs on them.
type Fleet struct {
	// APIVersion is fleetctl.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Fleet.
	Kind string `json:"kind"`
	// Metadata names the fleet.
	Metadata Metadata `json:"metadata"`
	// Spec is the wanted state of the fleet.
	Spec FleetSpec `json:"spec"`

	// source has the places of the fields in the file, for findings; nil if the fleet was not decoded.
	source *source
}

// Metadata names the fleet.
type Metadata struct {
	// Name of the fleet: a DNS label of at most 63 characters.
	Name string `json:"name"`
}

// FleetSpec is the wanted state of the fleet.
type FleetSpec struct {
	// Git says where the fleet repo is. Without a URL it is the folder of fleet.yaml, which fleetctl serves to Flux from this machine.
	Git Git `json:"git,omitzero"`
	// Flux configures Flux on the management clusters.
	Flux Flux `json:"flux,omitzero"`
	// Channels are the Git references that environments follow. There always is a channel main, the branch of spec.git.
	Channels []Channel `json:"channels,omitempty"`
	// Environments group workload clusters; each has a folder of its own.
	Environments []Environment `json:"environments,omitempty"`
	// Notifications report to people, or to a forge, what Flux on the management clusters does.
	Notifications []Notification `json:"notifications,omitempty"`
	// Snapshots say where backups of the management clusters are kept.
	Snapshots Snapshots `json:"snapshots,omitzero"`
	// Validate configures `fleetctl validate`: additional CRDs, and files to leave out.
	Validate Validation `json:"validate,omitzero"`
	// Releases say how commits are named, and where a promotion publishes its release notes.
	Releases Releases `json:"releases,omitzero"`
	// ManagementClusters run Cluster API and Flux.
	ManagementClusters []ManagementCluster `json:"managementClusters"`
	// Standbys are clusters that can take over from a lost management cluster.
	Standbys []Standby `json:"standbys,omitempty"`
}

// Standby is a second cluster with the same programs as a management cluster, but with its providers stopped. `fleetctl init --management
// NAME` makes it. `fleetctl standby activate NAME` makes it take over. It then replaces the other management cluster in this file, with
// the same settings, but with its own name and host.
type Standby struct {
	// Name of the standby: a DNS label of at most 40 characters. No management cluster may have the same name.
	Name string `json:"name"`
	// Of is the name of the management cluster from which it takes over.
	Of string `json:"of"`
	// Host of the standby. It must not be a workload cluster, because the lost management cluster would have made that.
	Host Host `json:"host,omitzero"`
}

// Validation configures validate for this repo. The result of validate reports what it has left out.
type Validation struct {
	// CRDs are folders and files of the repo with CustomResourceDefinitions. They take precedence over the CRDs of the providers and
	// others in the repo. The flag --crds takes precedence over them.
	CRDs []string `json:"crds,omitempty"`
	// Exclude are folders and files of the repo that validate does not check, as paths from the top of the repo. * matches any text in a
	// name, ** any folders. Flux still applies these files.
	Exclude []string `json:"exclude,omitempty"`
}

// Snapshots say where backup, bootstrap and restore keep snapshots of a management cluster. They are encrypted with the fleet's age keys.
type Snapshots struct {
	// To is a folder that outlives the management clusters, such as a mounted volume, relative to fleet.yaml; or oci://REGISTRY/PATH, a
	// repository of an OCI registry; or branch:NAME, a branch of the fleet repo with nothing else in it. Default: no snapshots are kept.
	To string `json:"to,omitempty"`
}

// Git says how Flux and fleetctl reach the fleet repo.
type Git struct {
	// URL of the repository: https://…, ssh://user@host/path or user@host:path. Empty means no remote.
	URL string `json:"url,omitempty"`
	// Branch that holds the fleet. Default: main.
	Branch string `json:"branch,omitempty"`
	// Username for the token of an https URL. Default: git.
	Username string `json:"username,omitempty"`
	// CAFile is a PEM file, relative to fleet.yaml, with the certificate authorities of an https URL. Default: the system's.
	CAFile string `json:"caFile,omitempty"`
	// KnownHosts are lines in the format of known_hosts with the host keys of an ssh URL. No other host keys are accepted.
	KnownHosts string `json:"knownHosts,omitempty"`
	// Interval at which Flux looks for new commits, as a Go duration. Default: 1m (10s without a remote).
	Interval string `json:"interval,omitempty"`
	// Forge is the kind of forge on the URL's host, for pull requests: github, gitlab or gitea (also for Forgejo). Default: by the host's
	// name.
	Forge ForgeType `json:"forge,omitempty"`
	// FluxUsername is the user name for Flux's own token (--flux-token-file), if it differs. Default: username.
	FluxUsername string `json:"fluxUsername,omitempty"`
	// SharePushToken allows init to give the token with which it pushes to workload clusters, if Flux has no token of its own
	// (--flux-token-file). An administrator of one workload cluster can then change the whole fleet. Default: false.
	SharePushToken bool `json:"sharePushToken,omitempty"`
}

// Flux configures the namespace flux-system.
type Flux struct {
	// Version of the Flux distribution (v2.9.5). Default: the one that this fleetctl was built with.
	Version string `json:"version,omitempty"`
	// Components to install. source-controller and kustomize-controller are required. Default: these two, helm-controller and
	// notification-controller.
	Components []string `json:"components,omitempty"`
	// NetworkPolicy installs policies that refuse connections from other namespaces. Default: true.
	NetworkPolicy *bool `json:"networkPolicy,omitempty"`
	// Registry of Flux's images. Default: ghcr.io/fluxcd.
	Registry string `json:"registry,omitempty"`
	// URL of a mirror of Flux's releases, with download/<version>/manifests.tar.gz below it. Default: Flux's own releases.
	URL string `json:"url,omitempty"`
}

// Channel is a Git reference that environments follow, for the definitions of their clusters, for the charts, and for the apps on them.
// It has exactly one of Branch and Tag. The channel main is the branch of spec.git and needs neither.
type Channel struct {
	// Name of the channel, and of its GitRepository on the management clusters: a DNS label.
	Name string `json:"name"`
	// Branch that the channel follows. Every commit there reaches its environments.
	Branch string `json:"branch,omitempty"`
	// Tag is the pattern of the channel's tags: v* means v0.1.0, v0.1.1 and so on. The present tag is only in the GitRepository in
	// providers/<cloud>/<generation>/mgmt/sources/<channel>, and `fleetctl promote` changes it there.
	Tag string `json:"tag,omitempty"`
}

// Environment is a group of workload clusters that change together.
type Environment struct {
	// Name of the environment and of its folder: a DNS label.
	Name string `json:"name"`
	// Channel that its clusters follow. Default: main.
	Channel string `json:"channel,omitempty"`
	// Production means that people depend on the environment. It then follows a channel of tags, if there is one, and tenants may only
	// read. Default: true for an environment called prod or production, or whose name begins with prod- or production-.
	Production *bool `json:"production,omitempty"`
}

// ManagementCluster is a cluster that runs Cluster API, its providers and Flux.
type ManagementCluster struct {
	// Name of the management cluster: a DNS label of at most 40 characters.
	Name string `json:"name"`
	// Parent is the management cluster that makes this one, as a workload cluster of the same name, in this or another fleet. This
	// management cluster runs on that workload cluster.
	Parent string `json:"parent,omitempty"`
	// Repository is a separate fleet repo for this management cluster, which must have a parent. The fleet in that repo shares neither
	// keys nor tokens with this one. This fleet makes the workload cluster on which the management cluster runs. `fleetctl bootstrap
	// --stand-alone` makes the first commit of that repo from the declarations here.
	Repository *Repository `json:"repository,omitempty"`
	// Host on which the management cluster runs.
	Host Host `json:"host,omitzero"`
	// KubernetesVersion of the management cluster itself (v1.36.3). Default: the host's.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Cloud is the folder under providers/ with its configuration. Default: the name of its first infrastructure provider, or none.
	Cloud string `json:"cloud,omitempty"`
	// Generation is the folder under providers/<cloud>/. A new generation can exist beside the old one. Default: v1.
	Generation string `json:"generation,omitempty"`
	// Path of its folder, from the top of the repo, if that is not providers/<cloud>/<generation>/mgmt. It is the folder that its Flux
	// applies first, with flux-system in it, such as clusters/production. With it, a repo that is older than fleetctl keeps its layout.
	Path string `json:"path,omitempty"`
	// CertManager makes the certificates of the providers' webhooks. fleetctl installs it if the cluster has none, and leaves an existing
	// one as it is.
	CertManager CertManager `json:"certManager,omitzero"`
	// Providers to install, with their versions. The core provider and the kubeadm bootstrap and control plane providers are added if
	// none of their type is listed.
	Providers []Provider `json:"providers,omitempty"`
	// Vault says how to log in to Vault, for variables of the providers. Only VAULT_ADDR says which server that is.
	Vault Vault `json:"vault,omitzero"`
	// Tuning sets parallelism and resources of the managers of its providers and of Flux. Other settings stay as released.
	Tuning []ManagerTuning `json:"tuning,omitempty"`
}

// Repository is the separate fleet repo of a management cluster.
type Repository struct {
	// Fleet is the name of the fleet in the repo. Default: the name of the management cluster.
	Fleet string `json:"fleet,omitempty"`
	// Git says where the repo is. It needs a URL, because the management cluster cannot fetch from this machine.
	Git Git `json:"git"`
	// Environments of this fleet that move to the repo, with their clusters and the apps on them.
	Environments []string `json:"environments,omitempty"`
}

// ManagerTuning sets parallelism and resources of one manager. `fleetctl init` applies it, and applies changes of it.
type ManagerTuning struct {
	// Manager is the name of its Deployment: capi-controller-manager, capd-controller-manager, kustomize-controller….
	Manager string `json:"manager"`
	// Flags of the manager whose values are numbers, by name without dashes: kube-api-qps, kube-api-burst, machine-concurrency; for Flux,
	// concurrent. The manager's --help, or the documentation of its project, explains them.
	Flags map[string]int `json:"flags,omitempty"`
	// Resources of the manager's container. An embedded host does not enforce them.
	Resources Resources `json:"resources,omitzero"`
}

// Resources of a container.
type Resources struct {
	// Requests are reserved for the container.
	Requests ResourceList `json:"requests,omitzero"`
	// Limits bound the container.
	Limits ResourceList `json:"limits,omitzero"`
}

// ResourceList has a Kubernetes quantity for each resource.
type ResourceList struct {
	// CPU in cores: 500m, 2.
	CPU string `json:"cpu,omitempty"`
	// Memory in bytes: 512Mi, 2Gi.
	Memory string `json:"memory,omitempty"`
}

// Host is the host of a management cluster.
type Host struct {
	// Type of the host: kind (a container on this machine), embedded (processes on this machine, Linux only), existing (an existing
	// cluster) or workload (the workload cluster that the parent makes). Default: workload with a parent; else kind if a container engine
	// answers; else embedded.
	Type HostType `json:"type,omitempty"`
	// Kind has the settings of a kind host.
	Kind *KindHost `json:"kind,omitempty"`
	// Embedded has the settings of an embedded host.
	Embedded *EmbeddedHost `json:"embedded,omitempty"`
	// Existing has the settings of an existing host.
	Existing *ExistingHost `json:"existing,omitempty"`
}

// EmbeddedHost are the settings of an embedded host.
type EmbeddedHost struct {
	// Mirrors replace registries of images. A change takes effect when `fleetctl init` next starts the host.
	Mirrors []RegistryMirror `json:"mirrors,omitempty"`
	// ServiceAccountIssuer is the https URL of the issuer of service accounts' tokens, at which clouds read the documents that `fleetctl
	// host issuer export` writes. Older tokens stay valid. A change takes effect when `fleetctl init` next starts the host. Default:
	// an issuer that only the cluster itself can read.
	ServiceAccountIssuer string `json:"serviceAccountIssuer,omitempty"`
}

// RegistryMirror replaces a container registry.
type RegistryMirror struct {
	// Registry in the names of images: registry.k8s.io, docker.io.
	Registry string `json:"registry"`
	// Mirror with the registry's images: host or host/path.
	Mirror string `json:"mirror"`
}

// KindHost are the settings of a kind host.
type KindHost struct {
	// Image of the node. Default: kindest/node at kubernetesVersion, or kind's own default.
	Image string `json:"image,omitempty"`
	// ExtraMounts are folders or sockets of this machine that appear in the node.
	ExtraMounts []Mount `json:"extraMounts,omitempty"`
}

// Mount is a folder or socket of this machine that appears in the node.
type Mount struct {
	// HostPath on this machine.
	HostPath string `json:"hostPath"`
	// ContainerPath in the node.
	ContainerPath string `json:"containerPath"`
	// ReadOnly makes the mount read-only.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// ExistingHost names an existing cluster.
type ExistingHost struct {
	// Kubeconfig is the path of its kubeconfig, relative to fleet.yaml. Default: the kubeconfig that kubectl uses.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context of the kubeconfig.
	Context string `json:"context"`
}

// CertManager says which cert-manager to install.
type CertManager struct {
	// Version of cert-manager (v1.21.1). If it is empty, `fleetctl init` chooses the version in the bundle, or else the one of fleetctl's
	// clusterctl, and writes it here. A newer version here is an upgrade, as for providers.
	Version string `json:"version,omitempty"`
	// URL of its manifest, for a mirror: …/<version>/cert-manager.yaml. Default: cert-manager's own releases.
	URL string `json:"url,omitempty"`
}

// ProviderType is a Cluster API provider type.
type ProviderType string

// The provider types that can be installed.
const (
	ProviderCore             ProviderType = "core"
	ProviderBootstrap        ProviderType = "bootstrap"
	ProviderControlPlane     ProviderType = "control-plane"
	ProviderInfrastructure   ProviderType = "infrastructure"
	ProviderIPAM             ProviderType = "ipam"
	ProviderAddon            ProviderType = "addon"
	ProviderRuntimeExtension ProviderType = "runtime-extension"
)

// Provider is one Cluster API provider.
type Provider struct {
	// Name in clusterctl: cluster-api, kubeadm, aws, azure, docker….
	Name string `json:"name"`
	// Type of the provider. Default: infrastructure.
	Type ProviderType `json:"type,omitempty"`
	// Version to install (v1.14.2). If it is empty, `fleetctl init` chooses a version and writes it here. The next init, or `fleetctl
	// upgrade apply`, upgrades to a newer version here.
	Version string `json:"version,omitempty"`
	// URL of the provider's components, for a provider that clusterctl does not know.
	URL string `json:"url,omitempty"`
	// Variables that the components need.
	Variables []Variable `json:"variables,omitempty"`
}

// Variable is a value that a provider's components need. At most one of Value, Env, File, Stdin, Command and Vault says where it comes
// from. Without any it is the environment variable of the same name.
type Variable struct {
	// Name in the provider's documentation: AWS_B64ENCODED_CREDENTIALS.
	Name string `json:"name"`
	// Value in clear. Do not use it for secrets, which do not belong in Git.
	Value *string `json:"value,omitempty"`
	// Env is the environment variable to read.
	Env string `json:"env,omitempty"`
	// File to read, relative to fleet.yaml; one final newline is dropped.
	File string `json:"file,omitempty"`
	// Stdin reads the value from the standard input of `fleetctl init`; one final newline is dropped. Only one variable of a management
	// cluster may have it.
	Stdin bool `json:"stdin,omitempty"`
	// Command whose standard output is the value; one final newline is dropped. It runs without a shell.
	Command []string `json:"command,omitempty"`
	// Vault reads the value from Vault, from a key-value engine or an engine that makes credentials.
	Vault *VaultSecret `json:"vault,omitempty"`
	// Base64 encodes the value, for components that expect that.
	Base64 bool `json:"base64,omitempty"`
}

// VaultSecret is a value in Vault. It has exactly one of Field and Text.
type VaultSecret struct {
	// Path as for `vault read` or `vault kv get`: aws/creds/fleet, secret/clouds/vsphere.
	Path string `json:"path"`
	// Field of the secret with the value.
	Field string `json:"field,omitempty"`
	// Text of the value, in which ${field} is replaced by a field of the secret.
	Text string `json:"text,omitempty"`
}

// VaultMethod is a way to log in to Vault.
type VaultMethod string

// The ways to log in to Vault.
const (
	VaultToken      VaultMethod = "token"
	VaultAppRole    VaultMethod = "approle"
	VaultKubernetes VaultMethod = "kubernetes"
	VaultJWT        VaultMethod = "jwt"
)

// VaultMethods returns all ways to log in to Vault.
func VaultMethods() []VaultMethod {
	return []VaultMethod{VaultToken, VaultAppRole, VaultKubernetes, VaultJWT}
}

// Vault says how fleetctl logs in to Vault. Credentials come from the environment: VAULT_TOKEN, VAULT_ROLE_ID and VAULT_SECRET_ID, or from
// a file.
type Vault struct {
	// Method of the login: token, approle, kubernetes or jwt. Default: token.
	Method VaultMethod `json:"method,omitempty"`
	// Mount of the method. Default: the method's name.
	Mount string `json:"mount,omitempty"`
	// Role to log in as, for kubernetes and jwt.
	Role string `json:"role,omitempty"`
	// Namespace of Vault. Default: VAULT_NAMESPACE, or none.
	Namespace string `json:"namespace,omitempty"`
	// CAFile is a PEM file, relative to fleet.yaml, with the certificate authorities of the server. Default: VAULT_CACERT, or the system's.
	CAFile string `json:"caFile,omitempty"`
	// TokenFile is a file, relative to fleet.yaml, with the token for the method token, as Vault's agent writes it. Default: VAULT_TOKEN,
	// or the file that VAULT_TOKEN_FILE names, or ~/.vault-token of `vault login`.
	TokenFile string `json:"tokenFile,omitempty"`
	// JWTEnv is the environment variable with the token for the method jwt, from a pipeline's identity provider. Default: VAULT_ID_TOKEN.
	JWTEnv string `json:"jwtEnv,omitempty"`
	// JWTFile is a file with the token for the methods jwt and kubernetes. Default for kubernetes: the token of the pod's service account.
	JWTFile string `json:"jwtFile,omitempty"`
}
