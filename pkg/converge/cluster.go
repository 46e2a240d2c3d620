package converge

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/following"
	"github.com/fleetctl/fleetctl/pkg/fromvault"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/resolve"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/standing"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// ensureHost makes the host or, where it runs, sees to it that it has its images. The manifests, which say which these are, are read
// meanwhile.
func (r *Run) ensureHost(ctx context.Context, read steps.Awaited[*resolve.Manifests], detail func(string)) error {
	s := r.Session
	// A node gets the images of the bundle once the manifests that name them are read.
	images := func(ctx context.Context) (host.ImageArchive, error) {
		m, err := read.Await(ctx)
		if err != nil {
			return nil, err
		}
		return m.Images, nil
	}
	st, err := s.Host.State(ctx)
	if err != nil {
		return err
	}
	if st != host.StateRunning {
		return r.createHost(ctx, images, detail)
	}
	if s.Bundle != nil && !s.Connected { // only the machine that made the host gives images to a connected one
		// A create that was killed after the API server came up may lack images; loading skips those that are there.
		archive, err := images(ctx)
		if err != nil {
			return err
		}
		if err := s.Host.LoadImages(ctx, archive, func(string) {}); err != nil {
			return err
		}
	}
	if err := r.hostDone(ctx); err != nil {
		return err
	}
	return steps.NothingToDo("it runs")
}

func (r *Run) createHost(ctx context.Context, images func(context.Context) (host.ImageArchive, error), detail func(string)) error {
	s := r.Session
	if err := s.Cluster.Save(s.Record()); err != nil {
		return err
	}
	o := host.CreateOptions{KubernetesVersion: s.Mgmt.KubernetesVersion, Fleet: s.Identity(), Detail: detail, Answers: r.Kubeconfig.Tell}
	if k := s.Mgmt.Host.Kind; k != nil {
		o.Image = k.Image
		for _, m := range k.ExtraMounts {
			o.ExtraMounts = append(o.ExtraMounts, host.Mount{HostPath: m.HostPath, ContainerPath: m.ContainerPath, ReadOnly: m.ReadOnly})
		}
	}
	if err := s.MountEngine(ctx, &o); err != nil {
		return err
	}
	if s.Bundle != nil {
		o.Images = images
		o.NodeImage = s.Bundle.Archive()
	}
	if err := s.Host.Create(ctx, o); err != nil {
		return err
	}
	r.Did()
	return r.hostDone(ctx)
}

// hostDone is what every run does once the host is there: let those go on who wait for its pods, and keep the way to it.
func (r *Run) hostDone(ctx context.Context) error {
	r.Pods.Tell(PodsRun{})
	kubeconfig, answered := r.Kubeconfig.Peek()
	if !answered {
		var err error
		if kubeconfig, err = r.Session.Host.Kubeconfig(ctx); err != nil {
			return err
		}
		r.Kubeconfig.Tell(kubeconfig)
	}
	return keepAccess(ctx, r.Session, kubeconfig)
}

// awaitAPI waits until objects can be made in the management cluster.
func (r *Run) awaitAPI(ctx context.Context, answer steps.Awaited[[]byte], _ func(string)) (*kube.Client, error) {
	kubeconfig, err := answer.Await(ctx)
	if err != nil {
		return nil, err
	}
	client, err := kube.New(kubeconfig, kube.Options{})
	if err != nil {
		return nil, err
	}
	if !r.GoesOn {
		if err := standing.RefuseAt(ctx, r.Session, client); err != nil {
			return nil, err
		}
	}
	return client, standing.Claim(ctx, r.Session, client, following.View{}) // nothing is done to it before
}

// keepAccess writes the private kubeconfig, and the user's own where they asked for it.
func keepAccess(ctx context.Context, s *session.Session, kubeconfig []byte) error {
	if err := s.Cluster.Save(s.Record()); err != nil {
		return err
	}
	if err := kube.WriteKubeconfig(s.Cluster.Path(management.KubeconfigFile), kubeconfig); err != nil {
		return err
	}
	if s.Opts.MergeKubeconfig == "" {
		return nil
	}
	return kube.MergeKubeconfig(ctx, s.Opts.MergeKubeconfig, management.ContextName(s.Mgmt.Name), kubeconfig)
}

// Installed is what installing the providers changed of those that were there.
type Installed struct {
	Upgraded []Upgraded
	Renewed  []Renewed
	Snapshot string // the file that was kept before an upgrade
}

func (r *Run) installProviders(
	ctx context.Context, client *kube.Client, m *resolve.Manifests, pods steps.Awaited[PodsRun], detail func(string),
) (*Installed, error) {
	done := &Installed{}
	if err := r.unlessHeld(ctx, client); err != nil {
		return done, err
	}
	manager, err := capi.New(client)
	if err != nil {
		return nil, err
	}
	result, err := fromvault.Install(ctx, r.Session, m.Versions, manager, capi.InstallOptions{
		Providers: m.Providers, Detail: detail,
		PodsRun: UntilPodsRun(pods), Halted: r.Session.StandbyOf != "", // none of them ever runs there before it takes over
		BeforeUpgrade: func(ctx context.Context, upgrades []releases.Upgrade) (err error) {
			r.Did() // also where it fails on the way
			done.Snapshot, err = keepSnapshot(ctx, r.Session, manager, upgrades, detail)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	if len(result.Installed) == 0 && !result.CertManager && len(result.Upgraded) == 0 && len(result.Renewed) == 0 {
		return done, steps.NothingToDo("they are installed and ready")
	}
	r.Did()
	done.Upgraded, done.Renewed = upgradedOf(result.Upgraded), renewedOf(result.Renewed)
	return done, nil
}

// UntilPodsRun waits until pods can run in the management cluster and their images are there.
func UntilPodsRun(pods steps.Awaited[PodsRun]) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := pods.Await(ctx)
		return err
	}
}

// unlessHeld leaves a step out where the controllers are stopped on purpose: that is no fault to mend, and nobody answers for them.
func (r *Run) unlessHeld(ctx context.Context, client *kube.Client) error {
	if r.Held == nil {
		return nil
	}
	held, err := r.Held(ctx, client)
	if err == nil && held {
		err = steps.NothingToDo(r.whyHeld())
	}
	return err
}

func (r *Run) installFlux(
	ctx context.Context, client *kube.Client, m *resolve.Manifests, pods steps.Awaited[PodsRun], detail func(string),
) ([]Upgraded, error) {
	if err := r.unlessHeld(ctx, client); err != nil {
		return nil, err
	}
	upgraded, err := fluxUpgrade(ctx, r.Session, flux.NewSystem(client))
	if err != nil {
		return nil, err
	}
	installed, err := InstallFlux(ctx, client, m.Flux, flux.InstallOptions{PodsRun: UntilPodsRun(pods), Detail: detail})
	if err != nil {
		return nil, err
	}
	if !installed {
		return nil, steps.NothingToDo("it is installed and ready")
	}
	r.Did()
	return upgraded, nil
}

// InstallFlux installs Flux on a cluster and tells whether there was anything to do.
func InstallFlux(ctx context.Context, client *kube.Client, components *flux.Components, opts flux.InstallOptions) (bool, error) {
	system := flux.NewSystem(client)
	there, err := system.Installed(ctx, components)
	if err != nil || there {
		return false, err
	}
	return true, system.Install(ctx, components, opts)
}

// connect gives Flux its credentials and the source to follow, and lets it go on where a teardown that was called off suspended it. It
// returns what a take-over keeps.
func (r *Run) connect(
	ctx context.Context, client *kube.Client, m *resolve.Manifests, p *following.Pushed, detail func(string),
) ([]string, error) {
	s, system := r.Session, flux.NewSystem(client)
	kept, err := p.Follow(ctx, client, m.Flux, detail)
	if err != nil {
		return nil, err
	}
	if err := s.Cluster.Save(s.Record()); err != nil { // with the identity that is in the repo now
		return nil, err
	}
	resumed, err := system.Resume(ctx)
	if err != nil {
		return nil, err
	}
	if synced, err := system.Synced(ctx, p.Revision); err == nil && synced && len(resumed) == 0 {
		return kept, steps.NothingToDo("it follows " + p.Access.Endpoint.Display)
	}
	r.Did()
	return kept, nil
}

// waitSynced returns when Flux has applied the revision that was pushed, and all that it applied is healthy.
func (r *Run) waitSynced(ctx context.Context, client *kube.Client, p *following.Pushed, detail func(string)) error {
	system := flux.NewSystem(client)
	if synced, err := system.Synced(ctx, p.Revision); err == nil && synced {
		return steps.NothingToDo("it has applied " + p.Revision[:min(len(p.Revision), 8)])
	}
	return system.WaitSynced(ctx, p.WaitOptions(detail))
}
