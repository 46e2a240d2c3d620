// Package host is the seam to what carries a management cluster: kind, embedded, or an existing cluster. Nothing outside
// a host's own package asks which one it has.
package host

import (
	"context"
	"io"
	"net/netip"
)

// State is what a look at the world says of a host.
type State string

// The states of a host.
const (
	StateAbsent  State = "absent"  // nothing of that name exists
	StateRunning State = "running" // ours, its API server answers or is about to
	StateStopped State = "stopped" // ours, whole, but stopped (a reboot): Create starts it again
	StateBroken  State = "broken"  // ours, but half made (a killed create): Create rebuilds it
	StateForeign State = "foreign" // something of that name that is not ours
)

// CreateOptions says what to make.
type CreateOptions struct {
	// KubernetesVersion is the wanted version ("v1.36.3"); empty leaves it to the host.
	KubernetesVersion string
	// Fleet is the identity of the fleet that it is made for; a host that can keeps it where it shows also while it does not run.
	Fleet string
	// Image overrides the node image.
	Image string
	// ExtraMounts are made in the node, as docker's -v does it.
	ExtraMounts []Mount
	// Images, if not nil, is called once, while the control plane starts and as soon as the nodes take images, for those that
	// go into them; it may wait for them to be known. No images is nil.
	Images func(ctx context.Context) (ImageArchive, error)
	// NodeImage, if not nil, is loaded into the engine first where the engine lacks the node image.
	NodeImage ImageArchive
	// Answers, if not nil, is called once, as soon as the API server is ready for an administrator, which may be long before
	// Create returns: objects can be made, while pods may not run yet and images are still being loaded. It must not block.
	Answers func(kubeconfig []byte)
	// Detail, if not nil, is told what is going on; by several goroutines at once.
	Detail func(string)
}

// ImageArchive is a set of container images that can be streamed.
type ImageArchive interface {
	// Names are the full image references in it, sorted.
	Names() []string
	// WriteTo streams those named by refs (all if none) as one archive that `ctr images import`, `docker load` and
	// `podman load` take. It verifies digests as it reads and fails before the archive is complete if one is wrong.
	WriteArchive(ctx context.Context, w io.Writer, refs ...string) error
}

// AnnotationIndex stands at an image of an archive that goes by the digest of an index ("repository@sha256:…", of an image for several
// platforms): the index itself, which proves that this one is in it. The image's own digest says nothing of the other.
const AnnotationIndex = "dev.fleetctl.image.index"

// Digests is what an ImageArchive may also do: tell the digest of an image's manifest ("sha256:…"), "" for one that it does not
// have. With it a host loads an image also where it has another one of that name.
type Digests interface {
	Digest(ref string) string
}

// Mount is a folder or socket of this machine that appears in the node.
type Mount struct {
	HostPath, ContainerPath string
	ReadOnly                bool
}

// Host carries one management cluster. All methods look at the world first and can be called again after a kill.
type Host interface {
	// Name of the management cluster.
	Name() string
	// State looks; it changes nothing.
	State(ctx context.Context) (State, error)
	// Create makes the host, starts it if it is stopped, rebuilds it if it is half made, and returns when its API server is ready.
	// It returns an error for StateForeign.
	Create(ctx context.Context, opts CreateOptions) error
	// Start starts what is stopped, waits until its API server is ready, and makes nothing: what was stopped half made is
	// StateBroken afterwards, and what does not exist is StateAbsent.
	Start(ctx context.Context, detail func(string)) (State, error)
	// LoadImages puts those images into the nodes that they lack.
	LoadImages(ctx context.Context, images ImageArchive, detail func(string)) error
	// Delete removes all that Create made; absent is no error. It returns what it could not remove.
	Delete(ctx context.Context) (leftovers []string, err error)
	// Kubeconfig for clients on this machine.
	Kubeconfig(ctx context.Context) ([]byte, error)
	// Gateway is the address of this machine that pods of the cluster can reach, and on which a server for them should
	// listen.
	Gateway(ctx context.Context) (Gateway, error)
}

// LoadWanted puts the images that opts ask for into h, once they are known. None asked for is no error.
func LoadWanted(ctx context.Context, h Host, opts CreateOptions) error {
	if opts.Images == nil {
		return nil
	}
	images, err := opts.Images(ctx)
	if err != nil {
		return err
	}
	return h.LoadImages(ctx, images, opts.Detail)
}

// Gateway is how the cluster's pods reach this machine.
type Gateway struct {
	// Listen is the local address to bind.
	Listen netip.Addr
	// Host is the name or address that pods use.
	Host string
}

// Neighbours is what other users of this machine reach of a host whose programs are processes of this machine, without a credential.
type Neighbours struct {
	// Private tells that programs listen where those do not reach them, but for what always is in the open.
	Private bool
	// Reason is why not, where that is known.
	Reason string
	// Open is what they reach.
	Open []Listener
}

// Listener is a program that waits for connections at an address of this machine.
type Listener struct {
	Program string
	Address netip.AddrPort
}

// String names both.
func (l Listener) String() string { return l.Program + " at " + l.Address.String() }
