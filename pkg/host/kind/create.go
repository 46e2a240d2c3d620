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

// restartWait is how long a node that was stopped may take until its API server answers.
const restartWait = 3 * time.Minute

// Create makes the cluster, starts it when a reboot stopped it, rebuilds it when a killed create left it half made, and
// returns when its API server is ready and opts.Images are in its node. It returns promptly when the context ends; the
// next Create cleans up what kind was doing then.
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

// servicesScript asks the API server whether it is ready through its Service, as pods do. Its address is the first of kind's default
// Service subnet. That something accepts a connection there is not enough: it may be a stranger, out there.
const servicesScript = `until kubectl --kubeconfig /etc/kubernetes/admin.conf --server https://10.96.0.1:443 --request-timeout 2s get --raw /readyz \
	>/dev/null 2>&1; do sleep 0.2; done`

// awaitServices returns once kube-proxy has programmed the node for Services, seconds after kind is done. A controller that starts
// before does not reach the API server, and may well wait for half a minute before it tries again.
func (h *Host) awaitServices(ctx context.Context) error {
	if _, err := h.exec(ctx, servicesScript); err != nil {
		return fmt.Errorf("wait for kube-proxy in node %s: %w", h.controlPlane(), err)
	}
	return nil
}

// Start starts the containers of a stopped cluster and waits until it answers. It makes nothing.
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

// start starts the containers and tells whether the cluster in them had been completed.
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

// adopt makes sure that a cluster of ours answers, and has the images.
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
		// After a reboot the node may have another address, which kind's entry point mends, mostly.
		return diag.Wrap("use kind cluster "+h.name, err, h.rebuildHint())
	}
	if opts.Answers != nil {
		opts.Answers(kubeconfig)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return host.LoadWanted(groupCtx, h, opts) })
	group.Go(func() error { return h.awaitServices(groupCtx) })
	return group.Wait()
}

// config is what we ask of kind: one node that carries our mark.
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

// defaultRepository is where kind publishes node images.
const defaultRepository = "kindest/node"

// NodeImage is the image of a node for a Kubernetes version, and for none the one that kind takes where nobody chooses; by its tag,
// since what an engine loads from an archive has no digest.
func NodeImage(kubernetesVersion string) string {
	if kubernetesVersion == "" {
		image, _, _ := strings.Cut(defaults.Image, "@")
		return image
	}
	return defaultRepository + ":v" + strings.TrimPrefix(kubernetesVersion, "v")
}

// nodeImage is the image to use; empty leaves it to kind. It is loaded into the engine first if opts brings it.
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

// findRef finds a reference among those of an archive, which may spell out Docker's registry.
func findRef(names []string, ref string) (string, bool) {
	i := slices.IndexFunc(names, func(name string) bool { return engine.FullReference(name) == engine.FullReference(ref) })
	if i < 0 {
		return "", false
	}
	return names[i], true
}

// recordOurs remembers, before kind makes them, as whom the nodes are made, and whether its network was not there: then Delete may remove it.
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
