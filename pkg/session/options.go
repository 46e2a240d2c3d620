package session

import (
	"time"

	"github.com/fleetctl/fleetctl/pkg/change"
)

// Provider is a provider named on the command line: name and, if pinned there, version.
type Provider struct{ Name, Version string }

// Options say what `fleetctl init` is to make. What fleet.yaml already says wins over what a flag would only default;
// a flag that contradicts fleet.yaml is an error.
type Options struct {
	// Dir is the folder of the fleet repo; it may be empty or missing.
	Dir string
	// Cluster names the management cluster; it may be empty where the fleet has just one.
	Cluster string
	// Fleet, GitURL, Branch, Environment, KubernetesVersion, NodeImage and Providers go into a new fleet.yaml.
	Fleet, GitURL, Branch, Environment, KubernetesVersion, NodeImage string
	Providers                                                        []Provider
	// HostType, Context and Kubeconfig choose the host in a new fleet.yaml.
	HostType, Context, Kubeconfig string
	// Bundle is an offline bundle (folder or .tar.zst); with it no network is needed.
	Bundle string
	Git    change.Credentials
	// FluxToken is one that may only read, for Flux on the management cluster and on workload clusters. Empty: it keeps the one that it has;
	// where it has none, the management cluster gets Git.Token, and workload clusters only where fleet.yaml agrees (spec.git.sharePushToken).
	FluxToken string
	// FluxUsername goes with FluxToken; empty: what fleet.yaml says, else the one that goes with Git.Token.
	FluxUsername string
	// AgeKeyFile has the private key that the fleet repo's secrets are encrypted with; empty: the state folder's, or a new one.
	AgeKeyFile string
	// NoVerify leaves out the Git hooks that may refuse the commit or the push.
	NoVerify bool
	// Timeout bounds the whole run; 0 is no bound.
	Timeout time.Duration
	// SkipPreflight names preflight checks whose failure is accepted.
	SkipPreflight []string
	// MergeKubeconfig is the user's kubeconfig that gets a context for the cluster; empty: none does.
	MergeKubeconfig string
	// NoCommands keeps commands that the fleet repo names from being run, and tokens from being sent to a server that it alone names.
	NoCommands bool
	// TakeOverFlux points a Flux that follows something else at the fleet repo; what it applied before is kept.
	TakeOverFlux bool
	// UpgradeOnly refuses a fleet and a management cluster that are not there yet.
	UpgradeOnly bool
	// FormerIsGone agrees that the management cluster that the fleet repo had before does not act any more, nor anything that it made.
	FormerIsGone bool
	// Ephemeral marks a cluster that a pipeline made and will tear down.
	Ephemeral bool
	// Sources are all that fleet.yaml may have values come from; nil: it says so itself.
	Sources *Sources
}
