package hosts

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/host/existing"
	"github.com/fleetctl/fleetctl/pkg/host/kind"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// place is the input of a new host: the name of its management cluster, its declaration in fleet.yaml, the state folder of the management
// cluster, and the folder to which a new host unpacks images.
type place struct {
	name     string
	declared v1alpha1.Host
	cluster  state.Cluster
	imageDir string
}

// kindOfHost describes a kind of host.
type kindOfHost struct {
	// make returns the host, and changes nothing.
	make func(context.Context, place) (host.Host, error)
	// traits returns the traits of a declared host with a Kubernetes version, which may be empty.
	traits func(declared v1alpha1.Host, kubernetesVersion string) Traits
	// remember completes a declaration from the record on this machine. It is nil if name and state folder are enough.
	remember func(*state.Record, *v1alpha1.Host)
}

// kinds has every type of host that fleet.yaml may declare.
var kinds = map[v1alpha1.HostType]kindOfHost{
	v1alpha1.HostKind:     {make: makeKind, traits: traitsOfKind},
	v1alpha1.HostEmbedded: {make: makeEmbedded, traits: traitsOfEmbedded},
	v1alpha1.HostExisting: {make: makeExisting, traits: traitsOfExisting, remember: rememberExisting},
	v1alpha1.HostWorkload: {make: makeWorkload, traits: traitsOfWorkload},
}

func makeKind(ctx context.Context, p place) (host.Host, error) {
	return kind.New(ctx, p.name, kind.Options{StateDir: p.cluster.Path(kindDir)})
}

// kindCPURequest keeps the managers of a kind host alive while the machine is busy. The managers of Cluster API and cert-manager request no
// CPU, and all such pods of a node together have 2 CPU shares; the API server, etcd and Flux have over 1,200. On a busy machine, a manager
// then loses its lease or fails its liveness probe, and its restart makes the machine busier. The request is small because a node with 2
// CPUs has to hold the managers of all providers.
const kindCPURequest = "25m"

func traitsOfKind(declared v1alpha1.Host, kubernetesVersion string) Traits {
	image := kind.NodeImage(kubernetesVersion)
	if declared.Kind != nil && declared.Kind.Image != "" {
		image = declared.Kind.Image
	}
	return Traits{Containers: true, TakesImages: true, KubernetesVersion: latest(), NodeImage: image, CPURequest: kindCPURequest}
}

// makeEmbedded never makes an ephemeral host, which would end with this command: see docs/embedded.md.
func makeEmbedded(_ context.Context, p place) (host.Host, error) {
	return embedded.New(p.name, embedded.Options{
		StateDir: p.cluster.Path(embeddedDir), ImageDir: p.imageDir,
		Mirrors: mirrorsOf(p.declared.Embedded), Issuer: issuerOf(p.declared.Embedded),
	})
}

func traitsOfEmbedded(v1alpha1.Host, string) Traits {
	return Traits{Processes: true, TakesImages: true, KubernetesVersion: embedded.DefaultKubernetesVersion}
}

func makeExisting(_ context.Context, p place) (host.Host, error) {
	if p.declared.Existing == nil {
		return nil, diag.Errorf(
			"add `existing: {context: NAME}` to its host in fleet.yaml, or give --kubeconfig or --context if the command has these flags",
			"nothing says how to reach the management cluster %s", p.name)
	}
	return existing.New(p.name, existing.Options{
		Kubeconfig: p.declared.Existing.Kubeconfig, Context: p.declared.Existing.Context,
	})
}

// traitsOfExisting say that images may be put into the nodes. If that is not possible, the host says why.
func traitsOfExisting(v1alpha1.Host, string) Traits {
	return Traits{Elsewhere: true, TakesImages: true, KubernetesVersion: latest()}
}

func rememberExisting(r *state.Record, declared *v1alpha1.Host) {
	declared.Existing = &v1alpha1.ExistingHost{Kubeconfig: r.KubeconfigSource, Context: r.Context}
}

func makeWorkload(_ context.Context, p place) (host.Host, error) {
	return existing.New(p.name, existing.Options{Kubeconfig: p.cluster.Path(WorkloadKubeconfigFile), Context: p.name})
}

func traitsOfWorkload(v1alpha1.Host, string) Traits {
	return Traits{Elsewhere: true, KubernetesVersion: latest()}
}
