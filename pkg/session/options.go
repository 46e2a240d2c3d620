package session

import (
	"time"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
)

// Provider is a provider named on the command line: name and, if pinned there, version.
type Provider struct{ Name, Version string }

// Options say what `fleetctl init` is to make. What fleet.yaml already says wins over what a flag would only default;
// a flag that contradicts fleet.yaml is an error.
type Options struct {
	// Dir is the folder of the fleet repo. It may be empty, or not exist.
	Dir string
	// Cluster names the management cluster. It may be empty if the fleet has just one.
	Cluster string
	// Fleet, GitURL, Branch, Environment, KubernetesVersion, NodeImage and Providers go into a new fleet.yaml.
	Fleet, GitURL, Branch, Environment, KubernetesVersion, NodeImage string
	Providers                                                        []Provider
	// HostType, Context and Kubeconfig choose the host in a new fleet.yaml.
	HostType, Context, Kubeconfig string
	// Bundle is an offline bundle (folder or .tar.zst); with it no network is needed.
	Bundle string
	Git    change.Credentials
	// RemoteFlags are those flags of RemoteFlags that are on the command line. They are refused if they have no effect. Values from the
	// environment and the configuration file are for many fleets, so they are not among them.
	RemoteFlags []string
	// FluxToken may only read the fleet repo. Flux on the management cluster and on workload clusters gets it. If it is empty, each Flux
	// keeps the token that it has. A management cluster without one gets Git.Token, and so do workload clusters if fleet.yaml agrees
	// (spec.git.sharePushToken).
	FluxToken string
	// FluxUsername goes with FluxToken. Default: the username that fleet.yaml declares, or else the username of Git.Token.
	FluxUsername string
	// AgeKeyFile has the private key that decrypts the fleet repo's secrets. Default: the key in the state folder, or a new key.
	AgeKeyFile string
	// SecretFiles are the files with tokens that flags name. Whoever made these options has read them; checks look at who else can.
	SecretFiles []string
	// NoVerify leaves out the Git hooks that may refuse the commit or the push.
	NoVerify bool
	// Timeout bounds the whole run. 0 means no bound.
	Timeout time.Duration
	// SkipPreflight names preflight checks whose failure is accepted.
	SkipPreflight []string
	// MergeKubeconfig is the user's kubeconfig, which gets a context for the cluster. If it is empty, no kubeconfig gets one.
	MergeKubeconfig string
	// NoCommands forbids running commands that the fleet repo names, and sending tokens to a server that only the fleet repo names.
	NoCommands bool
	// CreateRepo makes the repository at the remote, private and empty, if it does not exist. Forge is the kind of forge there, and goes into
	// a new fleet.yaml. Default: the forge that fleet.yaml declares, or that the host's name suggests.
	CreateRepo bool
	Forge      v1alpha1.ForgeType
	// TakeOverFlux points a Flux that follows something else at the fleet repo. Objects that it applied before stay.
	TakeOverFlux bool
	// UpgradeOnly refuses to make a new fleet or a new management cluster.
	UpgradeOnly bool
	// FormerIsGone agrees that the fleet repo's earlier management cluster, and everything that it made, no longer acts.
	FormerIsGone bool
	// Ephemeral marks a cluster that a pipeline makes and tears down.
	Ephemeral bool
	// Sources limits where the values of fleet.yaml may come from. nil means that fleet.yaml itself decides.
	Sources *Sources
}
