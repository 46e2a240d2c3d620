package kind

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// restartWait is how long a restarted node may take until its API server answers.
const restartWait = 3 * time.Minute

// Create makes a missing cluster, starts a stopped one, and rebuilds one that a killed Create left half made. It returns when the API
// server is ready and opts.Images are in the node. When ctx ends it returns at once. The next Create cleans up after the interrupted call
// of kind.
func (h *Host) Create(ctx context.Context, opts host.CreateOptions) error {
	if opts.Detail == nil {
		opts.Detail = func(string) {}
	}
	if err := h.awaitCreation(ctx); err != nil {
		return err
	}
	state, containers, err := h.look(ctx)
	if err != nil {
		return err
	}
	if state == host.StateStopped {
		if state, err = h.start(ctx, containers, opts.Detail); err != nil {
			return err
		}
	}
	switch state {
	case host.StateForeign:
		return h.foreignError(containers)
	case host.StateRunning, host.StateStopped:
		return h.adopt(ctx, opts)
	case host.StateBroken:
		opts.Detail("removing the half-made cluster")
		if err := h.removeNodes(ctx, containers); err != nil {
			return err
		}
	case host.StateAbsent:
	}
	return h.build(ctx, opts)
}

// servicesScript asks the API server for readiness through its Service, as pods do. The Service has the first address of kind's default
// Service subnet. An accepted connection alone would not be enough, because a server outside of the cluster may have that address.
const servicesScript = `until kubectl --kubeconfig /etc/kubernetes/admin.conf --server https://10.96.0.1:443 --request-timeout 2s get --raw /readyz \
	>/dev/null 2>&1; do sleep 0.2; done`

// awaitServices returns when kube-proxy has set up Services in the node, seconds after kind has ended. A controller that starts earlier
// does not reach the API server, and may wait for half a minute before it tries again.
func (h *Host) awaitServices(ctx context.Context) error {
	if _, err := h.exec(ctx, servicesScript); err != nil {
		return fmt.Errorf("wait for kube-proxy in node %s: %w", h.controlPlane(), err)
	}
	return nil
}

// Start starts the containers of a stopped cluster and waits until its API server answers. It makes nothing.
func (h *Host) Start(ctx context.Context, detail func(string)) (host.State, error) {
	if detail == nil {
		detail = func(string) {}
	}
	state, containers, err := h.look(ctx)
	if err == nil && state == host.StateStopped {
		state, err = h.start(ctx, containers, detail)
	}
	if err != nil || state != host.StateRunning {
		return state, err
	}
	return state, h.adopt(ctx, host.CreateOptions{Detail: detail})
}

// start starts the containers. It returns StateBroken if kind had not completed the cluster.
func (h *Host) start(ctx context.Context, containers []engine.Container, detail func(string)) (host.State, error) {
	detail("starting the stopped node")
	var stopped []engine.Container
	for _, c := range containers {
		if !c.Running || c.Status == "paused" {
			stopped = append(stopped, c)
		}
	}
	if err := h.engine.Start(ctx, stopped...); err != nil {
		return "", diag.Wrap("", err, h.rebuildHint())
	}
	complete, err := h.complete(ctx)
	if err != nil {
		return "", err
	}
	if !complete {
		return host.StateBroken, nil
	}
	return host.StateRunning, nil
}

func (h *Host) rebuildHint() string {
	return fmt.Sprintf(`see "%[1]s logs %[2]s"; "%[1]s restart %[2]s" may help, else run "fleetctl teardown" and "fleetctl init" again`,
		h.engine.Name(), h.controlPlane())
}

// adopt waits until an existing cluster answers, and loads the images.
func (h *Host) adopt(ctx context.Context, opts host.CreateOptions) error {
	wait, cancel := context.WithTimeoutCause(ctx, restartWait, fmt.Errorf("no answer within %s", restartWait))
	defer cancel()
	kubeconfig, err := h.Kubeconfig(wait)
	if err == nil {
		err = waitReady(wait, kubeconfig)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		// After a reboot the node may have another address. kind's entrypoint adapts to it in most cases.
		return diag.Wrap("use kind cluster "+h.name, err, h.rebuildHint())
	}
	if opts.Answers != nil {
		opts.Answers(kubeconfig)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return host.LoadWanted(groupCtx, h, opts) })
	group.Go(func() error { return h.awaitServices(groupCtx) })
	group.Go(func() error {
		h.prefer(groupCtx, opts.Detail)
		return nil
	})
	return group.Wait()
}

// config is kind's configuration: one node with fleetctl's mark.
func (h *Host) config(image string, opts host.CreateOptions) *v1alpha4.Cluster {
	mounts := []v1alpha4.Mount{{HostPath: markSource, ContainerPath: markTarget, Readonly: true}}
	if h.owner != "" {
		mounts = append(mounts, v1alpha4.Mount{HostPath: markSource, ContainerPath: ownerTarget + string(h.owner), Readonly: true})
	}
	if opts.Fleet != "" {
		mounts = append(mounts, v1alpha4.Mount{HostPath: markSource, ContainerPath: fleetTarget + segment(opts.Fleet), Readonly: true})
	}
	for _, m := range opts.ExtraMounts {
		mounts = append(mounts, v1alpha4.Mount{HostPath: m.HostPath, ContainerPath: m.ContainerPath, Readonly: m.ReadOnly})
	}
	config := &v1alpha4.Cluster{
		Name:  h.name,
		Nodes: []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: image, ExtraMounts: mounts}},
	}
	tune(config)
	return config
}

// defaultRepository is the repository of kind's node images.
const defaultRepository = "kindest/node"

// NodeImage is the node image for a Kubernetes version, or kind's default image for "". It has a tag and no digest, because an image that
// an engine loads from an archive has no digest.
func NodeImage(kubernetesVersion string) string {
	if kubernetesVersion == "" {
		image, _, _ := strings.Cut(defaults.Image, "@")
		return image
	}
	return defaultRepository + ":v" + strings.TrimPrefix(kubernetesVersion, "v")
}

// nodeImage returns the node image to use; empty lets kind choose. It first loads the image into the engine if opts has it.
func (h *Host) nodeImage(ctx context.Context, opts host.CreateOptions) (string, error) {
	image := opts.Image
	if image == "" && opts.KubernetesVersion != "" {
		image = NodeImage(opts.KubernetesVersion)
	}
	if opts.NodeImage == nil {
		return image, nil
	}
	if image == "" {
		names := opts.NodeImage.Names()
		i := slices.IndexFunc(names, isNodeImage)
		if i < 0 {
			return "", diag.Errorf("make the bundle with --kubernetes-version, or name its node image with --node-image",
				"the bundle has no node image %s", defaultRepository)
		}
		image = names[i]
	}
	has, err := h.engine.HasImage(ctx, image)
	if err != nil || has {
		return image, err
	}
	ref, ok := findRef(opts.NodeImage.Names(), image)
	if !ok {
		return image, nil // kind pulls it
	}
	opts.Detail("loading node image " + image)
	err = pipe(ctx, func(w io.Writer) error { return opts.NodeImage.WriteArchive(ctx, w, ref) },
		func(r io.Reader) error { return h.engine.LoadImages(ctx, r) })
	return image, err
}

// isNodeImage tells whether a full reference is to one of kind's own node images.
func isNodeImage(ref string) bool {
	rest, ok := strings.CutPrefix(ref, "docker.io/"+defaultRepository)
	return ok && strings.ContainsAny(rest[:min(len(rest), 1)], ":@")
}

// findRef finds a reference in the names of an archive, which may include Docker's registry.
func findRef(names []string, ref string) (string, bool) {
	i := slices.IndexFunc(names, func(name string) bool { return engine.FullReference(name) == engine.FullReference(ref) })
	if i < 0 {
		return "", false
	}
	return names[i], true
}

// recordOurs writes the record before kind makes anything: the owner of the nodes, and the network, if it does not exist yet. Delete may
// remove only such a network.
func (h *Host) recordOurs(ctx context.Context) error {
	now, err := h.state.read()
	if err != nil {
		return err
	}
	now.Owner = string(h.owner)
	name := h.engine.NetworkName()
	_, exists, err := h.engine.Network(ctx, name)
	if err != nil {
		return err
	}
	if !exists {
		now.Network = name
	}
	return h.state.write(now)
}
