package hosts

import (
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/host/kind"
)

// Traits describe a declared host to a workflow, before the host exists.
type Traits struct {
	// Containers says that the nodes are containers of this machine's container engine.
	Containers bool
	// Processes says that the host's pods are processes of this machine, with its network and its files, and that only this machine reaches
	// the host.
	Processes bool
	// Elsewhere says that fleetctl did not make the host, and somebody else looks after it. Only a record tells how to reach it.
	Elsewhere bool
	// TakesImages says that fleetctl may load images into the nodes. Other hosts have the images, or pull them from a registry.
	TakesImages bool
	// KubernetesVersion of the host ("v1.36.3"), if nobody chooses one and no API server can be asked.
	KubernetesVersion string
	// NodeImage is the container image of a node. It is empty for a host that needs none.
	NodeImage string
	// CPURequest is the CPU request of managers whose release requests none, as a Kubernetes quantity. It is empty where managers are left
	// as released.
	CPURequest string
}

// TraitsOf returns the traits of a declared host with a Kubernetes version such as "v1.36.3". "" means the host's default version. A type
// that is not known has the traits of no kind.
func TraitsOf(declared v1alpha1.Host, kubernetesVersion string) Traits {
	if k, ok := kinds[declared.Type]; ok {
		return k.traits(declared, kubernetesVersion)
	}
	return Traits{KubernetesVersion: latest()}
}

// KubernetesVersions are the versions of Kubernetes that the kinds of hosts have if nobody chooses one, for completion. They may repeat.
func KubernetesVersions() []string {
	var versions []string
	for _, t := range v1alpha1.HostTypes() {
		versions = append(versions, TraitsOf(v1alpha1.Host{Type: t}, "").KubernetesVersion)
	}
	return versions
}

// latest is the Kubernetes version of the newest node image that is known.
func latest() string {
	_, version, _ := strings.Cut(kind.NodeImage(""), ":")
	return version
}
