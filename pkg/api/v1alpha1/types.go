// Package v1alpha1 is fleet.yaml: what a fleet is made of. Loading is strict; every field is documented here, and the JSON
// schema in docs/reference is generated from these types.
package v1alpha1

// APIVersion and Kind are the first two lines of every fleet.yaml. FileName is where it stands, at the top of the fleet repo.
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

	// source is where the fields were read, for findings; nil if the fleet was not decoded.
	source *source
}

// Metadata names the fleet.
type Metadata struct {
	// Name of the fleet: a DNS label of at most 63 characters.
	Name string `json:"name"`
}

// FleetSpec is the wanted state of the fleet.
type FleetSpec struct {
	// Git says where the fleet repo is. Without a URL it is the folder that fleet.yaml stands in, which fleetctl serves to Flux
	// from this machine.
	Git Git `json:"git,omitzero"`
	// Flux says which parts of Flux run on the management clusters.
	Flux Flux `json:"flux,omitzero"`
	// Channels are the Git references that environments follow. The channel main is always there: it is the branch of spec.git.
	Channels []Channel `json:"channels,omitempty"`
	// Environments group workload clusters; each has a folder of its own.
	Environments []Environment `json:"environments,omitempty"`
	// Notifications tell people, or a forge, what Flux on the management clusters does.
	Notifications []Notification `json:"notifications,omitempty"`
	// Snapshots of what the management clusters manage.
	Snapshots Snapshots `json:"snapshots,omitzero"`
	// Validate says what `fleetctl validate` knows besides, and what it leaves out.
	Validate Validation `json:"validate,omitzero"`
	// ManagementClusters run Cluster API and Flux.
	ManagementClusters []ManagementCluster `json:"managementClusters"`
	// Standbys wait to take over from a management cluster that is lost.
	Standbys []Standby `json:"standbys,omitempty"`
}

// Standby is a second cluster with all that a management cluster has, and with its providers stopped. `fleetctl init --management NAME` makes it, `fleetctl standby
// activate NAME` has it take over: then it stands in the place of the other one in this file, with all but the name and the host as that had them.
type Standby struct {
	// Name of the standby, which no management cluster has: a DNS label of at most 40 characters.
	Name string `json:"name"`
	// Of is the management cluster that it takes over from.
	Of string `json:"of"`
	// Host is what carries it: never a workload cluster, which the lost management cluster would have made.
	Host Host `json:"host,omitzero"`
}

// Validation tunes validate for this repo. What it leaves out it says in its result.
type Validation struct {
	// CRDs are folders and files of the repo with CustomResourceDefinitions, which win over those of the providers and the others in the repo. --crds wins
	// over them.
	CRDs []string `json:"crds,omitempty"`
	// Exclude are folders and files of the repo in which validate finds nothing, from the top of the repo: * stands for anything in a name, ** for any
	// folders. Flux applies them all the same.
	Exclude []string `json:"exclude,omitempty"`
}

// Snapshots say where backup, bootstrap and restore keep what a management cluster manages, encrypted with the fleet's age keys.
type Snapshots struct {
	// To is a folder that outlives the management clusters, such as a mounted volume, relative to fleet.yaml; oci://REGISTRY/PATH, a repository of an
	// OCI registry; or branch:NAME, a branch of the fleet repo that holds nothing else. Default: none is kept.
	To string `json:"to,omitempty"`
}

// Git is the fleet repo as Flux and fleetctl reach it.
type Git struct {
	// URL of the repository: https://…, ssh://user@host/path or user@host:path. Empty: no remote at all.
	URL string `json:"url,omitempty"`
	// Branch that holds the fleet. Default: main.
	Branch string `json:"branch,omitempty"`
	// Username that goes with the token of an https URL. Default: git.
	Username string `json:"username,omitempty"`
	// CAFile is a PEM file, relative to fleet.yaml, with the certificate authorities of an https URL. Default: the system's.
	CAFile string `json:"caFile,omitempty"`
	// KnownHosts are lines as in known_hosts, which pin the host keys of an ssh URL.
	KnownHosts string `json:"knownHosts,omitempty"`
	// Interval at which Flux looks for new commits, as a Go duration. Default: 1m (10s without a remote).
	Interval string `json:"interval,omitempty"`
	// Forge is what runs on the URL's host, for pull requests: github, gitlab or gitea (Forgejo too). Default: by the host's name.
	Forge ForgeType `json:"forge,omitempty"`
	// FluxUsername goes with a token that Flux reads with (--flux-token-file), where that one has another name. Default: username.
	FluxUsername string `json:"fluxUsername,omitempty"`
	// SharePushToken agrees that workload clusters hold the token that init pushes with, where it is given none for Flux alone
	// (--flux-token-file). Who rules one of them may then change the whole fleet. Default: false.
	SharePushToken bool `json:"sharePushToken,omitempty"`
}

// Flux chooses what runs in the flux-system namespace.
type Flux struct {
	// Version of the Flux distribution (v2.9.5). Default: the one that this fleetctl was built with.
	Version string `json:"version,omitempty"`
	// Components to install; source-controller and kustomize-controller must be among them. Default: those two, helm-controller
	// and notification-controller.
	Components []string `json:"components,omitempty"`
	// NetworkPolicy installs the policies that close the flux-system namespace to other namespaces. Default: true.
	NetworkPolicy *bool `json:"networkPolicy,omitempty"`
	// Registry that Flux's images come from. Default: ghcr.io/fluxcd.
	Registry string `json:"registry,omitempty"`
	// URL of a mirror of Flux's releases, which has download/<version>/manifests.tar.gz below it. Default: Flux's own releases.
	URL string `json:"url,omitempty"`
}

// Channel is what environments follow in Git, for everything: the definitions of their clusters, the charts, and what runs on them.
// Exactly one of Branch and Tag says what it is; the channel main is the branch of spec.git and needs neither.
type Channel struct {
	// Name of the channel, and of its GitRepository on the management clusters: a DNS label.
	Name string `json:"name"`
	// Branch that it follows: every commit there reaches its environments.
	Branch string `json:"branch,omitempty"`
	// Tag is the pattern of the tags that it goes through: v* stands for v0.1.0, v0.1.1 and so on. Which of them it is at stands in one
	// place only, the GitRepository in providers/<cloud>/<generation>/mgmt/sources/<channel>, and `fleetctl promote` moves it.
	Tag string `json:"tag,omitempty"`
}

// Environment is a group of workload clusters that change together.
type Environment struct {
	// Name of the environment and of its folder: a DNS label.
	Name string `json:"name"`
	// Channel that its clusters follow. Default: main.
	Channel string `json:"channel,omitempty"`
	// Production says that people depend on it: it follows a channel of tags where there is one, and a tenant may look and not change.
	// Default: true for an environment called prod or production, or whose name begins with prod- or production-.
	Production *bool `json:"production,omitempty"`
}

// ManagementCluster is a cluster that runs Cluster API, its providers and Flux.
type ManagementCluster struct {
	// Name of the management cluster: a DNS label of at most 40 characters.
	Name string `json:"name"`
	// Parent is the management cluster that makes this one, as a workload cluster of the same name in its own part of the fleet, or in
	// another fleet. That workload cluster then carries it.
	Parent string `json:"parent,omitempty"`
	// Repository is a fleet repo of its own, for one with a parent: what is declared there is another fleet, which shares neither keys nor tokens with this
	// one. This fleet makes the cluster that it runs on. `fleetctl bootstrap --stand-alone` makes the repository's first commit of what is declared here.
	Repository *Repository `json:"repository,omitempty"`
	// Host is what carries it.
	Host Host `json:"host,omitzero"`
	// KubernetesVersion of the management cluster itself (v1.36.3). Default: the host's.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Cloud is the folder under providers/ that holds its configuration. Default: the name of its first infrastructure provider,
	// or none.
	Cloud string `json:"cloud,omitempty"`
	// Generation is the folder under providers/<cloud>/: a new generation can stand beside the old one. Default: v1.
	Generation string `json:"generation,omitempty"`
	// Path of its own folder, from the top of the repo, where that is another one than providers/<cloud>/<generation>/mgmt: the one that its Flux
	// applies first, which has flux-system in it (clusters/production). So the layout of a repo that was there before fleetctl stays as it is.
	Path string `json:"path,omitempty"`
	// CertManager makes the certificates of the providers' webhooks. It is installed where the cluster has none; somebody else's is left alone.
	CertManager CertManager `json:"certManager,omitzero"`
	// Providers to install, with their versions. The core provider and the kubeadm bootstrap and control plane providers are
	// added where none of their type is listed.
	Providers []Provider `json:"providers,omitempty"`
	// Vault says how to log in to the Vault that variables of its providers come from. Which server that is, VAULT_ADDR says alone.
	Vault Vault `json:"vault,omitzero"`
	// Tuning is how hard the managers of its providers and of Flux work. What it leaves out stays as it was released.
	Tuning []ManagerTuning `json:"tuning,omitempty"`
}

// Repository is the fleet repo of a management cluster that has one of its own.
type Repository struct {
	// Fleet is the name of that fleet. Default: the name of the management cluster.
	Fleet string `json:"fleet,omitempty"`
	// Git is where it is. It has a remote: the management cluster cannot fetch from this machine.
	Git Git `json:"git"`
	// Environments of this fleet that go there: what they run, and the clusters that the parent has made in them.
	Environments []string `json:"environments,omitempty"`
}

// ManagerTuning is how hard one manager works and what it may take for it. `fleetctl init` applies it, and changes with it.
type ManagerTuning struct {
	// Manager is the name of its Deployment: capi-controller-manager, capd-controller-manager, kustomize-controller….
	Manager string `json:"manager"`
	// Flags are numbers that it is started with, by the names that it has for them, without dashes: kube-api-qps, kube-api-burst,
	// machine-concurrency; of Flux, concurrent. Its --help, or the documentation of its project, says what they mean.
	Flags map[string]int `json:"flags,omitempty"`
	// Resources that its container asks for, and may take. An embedded host enforces none.
	Resources Resources `json:"resources,omitzero"`
}

// Resources of a container.
type Resources struct {
	// Requests are kept for it.
	Requests ResourceList `json:"requests,omitzero"`
	// Limits it cannot go beyond.
	Limits ResourceList `json:"limits,omitzero"`
}

// ResourceList is an amount of each resource, as Kubernetes writes them.
type ResourceList struct {
	// CPU in cores: 500m, 2.
	CPU string `json:"cpu,omitempty"`
	// Memory in bytes: 512Mi, 2Gi.
	Memory string `json:"memory,omitempty"`
}

// HostType is a kind of host.
type HostType string

// The host types.
const (
	HostKind     HostType = "kind"
	HostEmbedded HostType = "embedded"
	HostExisting HostType = "existing"
	HostWorkload HostType = "workload"
)

// Host is what carries a management cluster.
type Host struct {
	// Type of the host: kind (a container on this machine), embedded (processes on this machine, Linux only), existing (a
	// cluster that is already there) or workload (the cluster that parent makes). Default: workload where there is a parent; kind where
	// a container engine answers, else embedded.
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
	// Mirrors are asked for images in place of their registries. A change counts when the host is started the next time.
	Mirrors []RegistryMirror `json:"mirrors,omitempty"`
	// ServiceAccountIssuer is the https address at which clouds read who issues its service accounts' tokens, where what `fleetctl host issuer
	// export` writes is published. Tokens of the time before stay good. A change counts when the host is started the next time. Default: none
	// that anybody outside could read.
	ServiceAccountIssuer string `json:"serviceAccountIssuer,omitempty"`
}

// RegistryMirror stands in for a container registry.
type RegistryMirror struct {
	// Registry as images name it: registry.k8s.io, docker.io.
	Registry string `json:"registry"`
	// Mirror is where its images are: host or host/path.
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
	// ReadOnly mounts it so.
	ReadOnly bool `json:"readOnly,omitempty"`
}

// ExistingHost names a cluster that is already there.
type ExistingHost struct {
	// Kubeconfig is the path of its kubeconfig, relative to fleet.yaml. Default: the one that kubectl would use.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	// Context in it.
	Context string `json:"context"`
}

// CertManager says which cert-manager to install.
type CertManager struct {
	// Version of cert-manager (v1.21.1). `fleetctl init` writes the one it chose where this is empty: the bundle's, or the one that this fleetctl's clusterctl
	// would install. A newer one here is upgraded to as the providers are.
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
	// Name as clusterctl knows it: cluster-api, kubeadm, aws, azure, docker….
	Name string `json:"name"`
	// Type of the provider. Default: infrastructure.
	Type ProviderType `json:"type,omitempty"`
	// Version to install (v1.14.2). `fleetctl init` writes the one it chose where this is empty; a newer one here is what the next init, or `fleetctl upgrade
	// apply`, upgrades to.
	Version string `json:"version,omitempty"`
	// URL of the provider's components, for one that clusterctl does not know.
	URL string `json:"url,omitempty"`
	// Variables that its components need.
	Variables []Variable `json:"variables,omitempty"`
}

// Variable is a value that a provider's components need. Exactly one of Value, Env, File, Stdin, Command and Vault says where it comes
// from; none of them: the environment variable of the same name.
type Variable struct {
	// Name as the provider's documentation has it: AWS_B64ENCODED_CREDENTIALS.
	Name string `json:"name"`
	// Value in clear; not for secrets, which do not belong in Git.
	Value *string `json:"value,omitempty"`
	// Env is the environment variable to read.
	Env string `json:"env,omitempty"`
	// File to read, relative to fleet.yaml; one final newline is dropped.
	File string `json:"file,omitempty"`
	// Stdin takes what `fleetctl init` reads from its standard input; one final newline is dropped. One variable of a management
	// cluster may have it.
	Stdin bool `json:"stdin,omitempty"`
	// Command whose standard output is the value; one final newline is dropped. No shell is involved.
	Command []string `json:"command,omitempty"`
	// Vault has it: in a key-value engine, or in one that makes a credential when it is asked.
	Vault *VaultSecret `json:"vault,omitempty"`
	// Base64 encodes what comes from there, for components that want it so.
	Base64 bool `json:"base64,omitempty"`
}

// VaultSecret is where in Vault a value is. Exactly one of Field and Text says what of it.
type VaultSecret struct {
	// Path as `vault read`, or `vault kv get`, takes it: aws/creds/fleet, secret/clouds/vsphere.
	Path string `json:"path"`
	// Field of the secret that is the value.
	Field string `json:"field,omitempty"`
	// Text that is the value, with ${field} for the fields in it.
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

// VaultMethods are all of them.
func VaultMethods() []VaultMethod {
	return []VaultMethod{VaultToken, VaultAppRole, VaultKubernetes, VaultJWT}
}

// Vault is how fleetctl logs in to Vault. What is secret of it comes from the environment: VAULT_TOKEN, VAULT_ROLE_ID and VAULT_SECRET_ID.
type Vault struct {
	// Method to log in by: token, approle, kubernetes or jwt. Default: token.
	Method VaultMethod `json:"method,omitempty"`
	// Mount of that method. Default: its name.
	Mount string `json:"mount,omitempty"`
	// Role to log in as, for kubernetes and jwt.
	Role string `json:"role,omitempty"`
	// Namespace of Vault. Default: VAULT_NAMESPACE, or none.
	Namespace string `json:"namespace,omitempty"`
	// CAFile is a PEM file, relative to fleet.yaml, with the certificate authorities of the server. Default: VAULT_CACERT, or the system's.
	CAFile string `json:"caFile,omitempty"`
	// JWTEnv is the environment variable with the token for the method jwt, which a pipeline's identity provider made. Default:
	// VAULT_ID_TOKEN.
	JWTEnv string `json:"jwtEnv,omitempty"`
	// JWTFile has the token for the methods jwt and kubernetes. Default for kubernetes: that of the pod's service account.
	JWTFile string `json:"jwtFile,omitempty"`
}
