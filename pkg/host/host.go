// Package host declares what all kinds of hosts of a management cluster have in common: kind, embedded, and an existing cluster. Only a
// host's own package depends on its kind.
package host

import (
	"context"
	"io"
	"net/netip"
)

// State of a host.
type State string

// The states of a host.
const (
	StateAbsent  State = "absent"  // there is no host of that name
	StateRunning State = "running" // ours; its API server answers, or is about to
	StateStopped State = "stopped" // ours and complete, but stopped, for example by a reboot: Create starts it again
	StateBroken  State = "broken"  // ours, but half made, because a Create was killed: Create rebuilds it
	StateForeign State = "foreign" // fleetctl has not made the host of that name
)

// CreateOptions describe the host to make.
type CreateOptions struct {
	// KubernetesVersion is the wanted version ("v1.36.3"). Empty lets the host choose.
	KubernetesVersion string
	// Fleet is the identity of the host's fleet. A Marked host keeps it.
	Fleet string
	// Image overrides the node image.
	Image string
	// ExtraMounts are made in the node, as by docker's -v.
	ExtraMounts []Mount
	// Images, if not nil, returns the images to load into the nodes, or nil for none. Create calls it once, when the nodes can take images,
	// which is before the control plane is ready, and again only if it has to start over. It may block until the images are known. Its
	// error ends Create.
	Images func(ctx context.Context) (ImageArchive, error)
	// NodeImage, if not nil, has the node image, which Create loads if the engine lacks it.
	NodeImage ImageArchive
	// Answers, if not nil, is called once, when the API server is ready for an administrator. That may be long before Create returns: pods
	// may not run yet, and images may still be loading. It must not block.
	Answers func(kubeconfig []byte)
	// Detail, if not nil, is called with each line of progress, also by several goroutines at once.
	Detail func(string)
}

// ImageArchive is a set of container images that can be streamed.
type ImageArchive interface {
	// Names are the full references of the archive's images, sorted.
	Names() []string
	// WriteArchive streams the images that refs name, or all without refs, as one archive for `ctr images import`, `docker load` and
	// `podman load`. It verifies digests. If one is wrong, it fails before the archive is complete.
	WriteArchive(ctx context.Context, w io.Writer, refs ...string) error
}

// AnnotationIndex is the annotation of an archive's image whose reference has the digest of an index ("repository@sha256:…", of an image
// for several platforms). Its value is the index itself, which proves that the index contains the image. The image's own digest does not
// prove that.
const AnnotationIndex = "dev.fleetctl.image.index"

// Digests is an ImageArchive that also knows the digest of each image's manifest ("sha256:…"; "" for an image that it does not have).
// With the digest, a host notices that it has another image of the same name, and loads the archive's.
type Digests interface {
	Digest(ref string) string
}

// Mount is a folder or socket of this machine that appears in the node.
type Mount struct {
	HostPath, ContainerPath string
	ReadOnly                bool
}

// Host runs one management cluster. All methods first look at the present state, so they can be called again after a kill.
//
// Name, State, Kubeconfig and Gateway only look, and several goroutines may call them at once, also beside one of the other methods. Of
// Create, Start, LoadImages, Delete and Stop of a Stopper, the caller runs one at a time, except that Create itself may load images
// meanwhile. A method whose ctx ends returns soon, with the reason of ctx in the error's tree (errors.Is). If a host cannot be used as it
// is, the error has a hint (diag.Hint) that says what to do.
type Host interface {
	// Name of the management cluster.
	Name() string
	// State returns the host's state. It changes nothing. The error, with the state "", says that the state cannot be found out: the engine
	// or the API server does not answer, or a file cannot be read. An error never means StateAbsent.
	State(ctx context.Context) (State, error)
	// Create makes a missing host, starts a stopped one and rebuilds a half-made one. It returns when the API server is ready and the images
	// are loaded. It leaves a running host as it is, except that it loads images. For StateForeign it changes nothing and returns an error.
	// After another error the host may be in any other state: the next Create goes on from there, and Delete removes it.
	Create(ctx context.Context, opts CreateOptions) error
	// Start starts a stopped host, waits until its API server is ready, and returns the new state. It makes nothing: a half-made host
	// becomes StateBroken, and a missing one stays StateAbsent. detail may be nil; it is called with each line of progress.
	Start(ctx context.Context, detail func(string)) (State, error)
	// LoadImages loads the images of an archive that the nodes lack. A nil archive has none. The host has to run, unless the archive is
	// nil. After an error some of the images may be loaded; the next LoadImages loads the others. A host that takes no images returns an
	// error for an archive with images. detail is as for Start.
	LoadImages(ctx context.Context, images ImageArchive, detail func(string)) error
	// Delete removes all that Create made, also of a half-made host. A missing host is no error, and StateForeign is one. leftovers names,
	// for a person, what Delete could not remove or does not remove because fleetctl has not made it; err says why it could not. Delete can
	// be called again.
	Delete(ctx context.Context) (leftovers []string, err error)
	// Kubeconfig for clients on this machine, as administrator, with one context and without names of files. It has a credential. The host
	// need not run, but a host that has never run has none, which is an error.
	Kubeconfig(ctx context.Context) ([]byte, error)
	// Gateway is the address at which the cluster's pods reach this machine, and the address on which a server for them has to listen. The
	// error of a host whose pods do not reach this machine has a hint.
	Gateway(ctx context.Context) (Gateway, error)
}

// LoadWanted calls opts.Images and loads the images into h. Without opts.Images it does nothing.
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

// Gateway says how the cluster's pods reach this machine.
type Gateway struct {
	// Listen is the local address to bind.
	Listen netip.Addr
	// Host is the name or address that pods use.
	Host string
}

// Neighbours says which programs of an Exposed host other users of this machine reach without a credential.
type Neighbours struct {
	// Private means that programs listen on a private loopback, which other users do not reach, except for ports that are always open.
	Private bool
	// Reason says why Private is false, if that is known.
	Reason string
	// Open are the programs that other users reach.
	Open []Listener
}

// Listener is a program that waits for connections at an address of this machine.
type Listener struct {
	Program string
	Address netip.AddrPort
}

// String names the program and the address.
func (l Listener) String() string { return l.Program + " at " + l.Address.String() }
