package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/internal/apiserver"
)

// Create makes a missing host, starts a stopped one, and rebuilds a half-made one. It returns when the API server is ready and
// opts.Images are in the image store. Create looks for the control plane's images in opts.NodeImage first. It ignores Mounts and the
// node image's name, which are for hosts with nodes.
func (h *Host) Create(ctx context.Context, opts host.CreateOptions) error {
	if opts.Detail == nil {
		opts.Detail = func(string) {}
	}
	for again := 1; ; again++ {
		err := h.create(ctx, opts)
		if !errors.Is(err, errKilled) || again == starts || ctx.Err() != nil {
			return err
		}
		opts.Detail("its supervisor was killed: starting it again")
	}
}

// starts bounds how often one Create starts the supervisor again after it was killed.
const starts = 3

func (h *Host) create(ctx context.Context, opts host.CreateOptions) error {
	state, err := h.State(ctx)
	if err != nil {
		return err
	}
	switch state {
	case host.StateForeign:
		return h.foreignError()
	case host.StateRunning:
		return h.adopt(ctx, opts)
	case host.StateBroken:
		opts.Detail("removing the half-made management cluster")
		if _, err := h.Delete(ctx); err != nil {
			return err
		}
	case host.StateAbsent, host.StateStopped:
	}
	c, err := h.settle(opts)
	if err != nil {
		return err
	}
	if err := h.loadPrograms(ctx, c, opts); err != nil {
		return err
	}
	// No controller starts before the API server is ready, so their images are unpacked meanwhile.
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.start(gctx, opts) })
	group.Go(func() error { return host.LoadWanted(gctx, h, opts) })
	return group.Wait()
}

// Start starts a stopped host with its data and waits until the API server answers. It does not make a host. It returns the host's state.
func (h *Host) Start(ctx context.Context, detail func(string)) (host.State, error) {
	state, err := h.State(ctx)
	if err != nil || (state != host.StateStopped && state != host.StateRunning) {
		return state, err
	}
	if err := h.Create(ctx, host.CreateOptions{Detail: detail}); err != nil {
		return state, err
	}
	return host.StateRunning, nil
}

// settle writes and returns the host's configuration. An existing one only gets the mirrors and the issuer of h's options.
func (h *Host) settle(opts host.CreateOptions) (*config, error) {
	c, err := h.dir.readConfig()
	switch {
	case err == nil:
		sameMirrors := h.opts.Mirrors == nil || maps.Equal(h.opts.Mirrors, c.Mirrors)
		sameIssuer := h.opts.Issuer == nil || *h.opts.Issuer == c.Issuer
		if sameMirrors && sameIssuer {
			return c, nil
		}
		if !sameMirrors {
			c.Mirrors = h.opts.Mirrors
		}
		if !sameIssuer {
			c.Issuer = *h.opts.Issuer
		}
		return c, h.keep(c)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if h.opts.ImageDir == "" && h.opts.Programs == nil {
		return nil, errors.New("embedded host: no folder for images given")
	}
	c = &config{
		Name: h.name, Ephemeral: h.opts.Ephemeral, ImageDir: h.opts.ImageDir, Mirrors: h.opts.Mirrors, Programs: h.opts.Programs,
	}
	if h.opts.Issuer != nil {
		c.Issuer = *h.opts.Issuer
	}
	c.KubernetesVersion, c.Images = chooseImages(opts)
	return c, h.keep(c)
}

func (h *Host) keep(c *config) error {
	return diag.Wrap("write "+h.dir.path(configFile), h.dir.writeConfig(c),
		"point --state-dir or FLEETCTL_STATE_DIR at a folder that you can write")
}

func (h *Host) isEphemeral() (bool, error) {
	c, err := h.dir.readConfig()
	if err != nil {
		return false, err
	}
	return c.Ephemeral, nil
}

// start runs the supervisor and returns when the API server is ready.
func (h *Host) start(ctx context.Context, opts host.CreateOptions) error {
	opts.Detail("starting the control plane")
	if err := h.spawn(ctx); err != nil {
		return err
	}
	if opts.Answers == nil {
		return nil
	}
	kubeconfig, err := h.Kubeconfig(ctx)
	if err == nil {
		opts.Answers(kubeconfig)
	}
	return err
}

// errEnded means that the supervisor has ended.
var errEnded = errors.New("its supervisor has ended")

// adopt waits until a host that already runs, or is just starting, answers, and loads the images.
func (h *Host) adopt(ctx context.Context, opts host.CreateOptions) error {
	wait, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("not ready within %s", startTime))
	defer cancel()
	if err := h.dir.waitFree(wait, startingFile); err != nil {
		return diag.Wrap("wait for management cluster "+h.name, err, "see "+h.dir.path(supervisorLog))
	}
	if runs, err := h.dir.alive(); err != nil {
		return err
	} else if !runs { // it ended during the wait; the caller starts or rebuilds it
		return h.Create(ctx, opts)
	}
	kubeconfig, err := h.Kubeconfig(wait)
	if err != nil {
		return err
	}
	client, err := apiserver.New(kubeconfig)
	if err != nil {
		return err
	}
	// The host may be ending. Then no answer comes, and the caller has to start the host again.
	asking, ended := context.WithCancelCause(wait)
	defer ended(nil)
	go func() {
		if h.dir.waitFree(asking, aliveFile) == nil {
			ended(errEnded)
		}
	}()
	if err := client.Wait(asking); err != nil {
		if errors.Is(context.Cause(asking), errEnded) {
			return h.Create(ctx, opts)
		}
		return diag.Wrap("use management cluster "+h.name, err,
			"restart it with `fleetctl host stop` and `fleetctl host start`; see "+h.dir.path(supervisorLog))
	}
	if opts.Answers != nil {
		opts.Answers(kubeconfig)
	}
	return host.LoadWanted(ctx, h, opts)
}
