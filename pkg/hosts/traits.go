package hosts

import (
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/host/kind"
)

// Traits are what a workflow has to know of a declared host before there is one.
type Traits struct {
	// Containers tells that its nodes are containers of this machine's engine.
	Containers bool
	// Processes says that the host's pods are processes of this machine, with its network and its files, and that only this machine reaches
	// the host.
	Processes bool
	// Elsewhere tells that fleetctl did not make the host: only a record says how it is reached, and others look after it.
	Elsewhere bool
	// TakesImages tells that images may be put into its nodes. Others' nodes bring theirs, or a registry does.
	TakesImages bool
	// KubernetesVersion to assume where nobody chooses one and there is none to ask ("v1.36.3").
	KubernetesVersion string
	// NodeImage is the container image that it is made of; empty where it needs none.
	NodeImage string
}

// TraitsOf a declared host of that Kubernetes version, which may be empty.
func TraitsOf(declared v1alpha1.Host, kubernetesVersion string) Traits {
	if k, ok := kinds[declared.Type]; ok {
		return k.traits(declared, kubernetesVersion)
	}
	return Traits{KubernetesVersion: latest()}
}

// latest is the Kubernetes version of the newest node image that is known.
func latest() string {
	_, version, _ := strings.Cut(kind.NodeImage(""), ":")
	return version
}
