package lifecycle

import (
	"context"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/steps"
)

// ensureHost makes the host or, where it runs, sees to it that it has its images.
func (s *session) ensureHost(ctx context.Context, detail func(string)) error {
	st, err := s.host.State(ctx)
	if err != nil {
		return err
	}
	if st != host.StateRunning {
		return s.createHost(ctx, detail)
	}
	if s.bundle != nil && !s.connected { // whose host is another machine's to give images to
		// A create that was killed after the API server came up may lack images; loading skips those that are there.
		images, err := s.bundleImages(ctx)
		if err != nil {
			return err
		}
		if err := s.host.LoadImages(ctx, images, func(string) {}); err != nil {
			return err
		}
	}
	if err := s.hostDone(ctx); err != nil {
		return err
	}
	return steps.NothingToDo("it runs")
}

func (s *session) createHost(ctx context.Context, detail func(string)) error {
	if err := s.cluster.Save(s.record()); err != nil {
		return err
	}
	o := host.CreateOptions{KubernetesVersion: s.mgmt.KubernetesVersion, Fleet: s.identity(), Detail: detail, Answers: s.api.answer}
	if k := s.mgmt.Host.Kind; k != nil {
		o.Image = k.Image
		for _, m := range k.ExtraMounts {
			o.ExtraMounts = append(o.ExtraMounts, host.Mount{HostPath: m.HostPath, ContainerPath: m.ContainerPath, ReadOnly: m.ReadOnly})
		}
	}
	if err := s.mountEngine(ctx, &o); err != nil {
		return err
	}
	if s.bundle != nil {
		o.Images = s.bundleImages
		o.NodeImage = s.bundle.Archive()
	}
	if err := s.host.Create(ctx, o); err != nil {
		return err
	}
	s.did()
	return s.hostDone(ctx)
}

// hostDone is what every run does once the host is there: let those go on who wait for its pods, and keep the way to it.
func (s *session) hostDone(ctx context.Context) error {
	close(s.podsRun)
	kubeconfig, err := s.kubeconfig(ctx)
	if err != nil {
		return err
	}
	s.api.answer(kubeconfig)
	return s.keepAccess(ctx, kubeconfig)
}

// kubeconfig is the one that came with the API server's first answer, else the host is asked.
func (s *session) kubeconfig(ctx context.Context) ([]byte, error) {
	select {
	case <-s.api.came:
		return s.api.kubeconfig, nil
	default:
		return s.host.Kubeconfig(ctx)
	}
}

// apiAnswer is the news that the API server of the management cluster answers, which comes long before pods can run.
type apiAnswer struct {
	once       sync.Once
	came       chan struct{}
	kubeconfig []byte
}

func newAPIAnswer() *apiAnswer { return &apiAnswer{came: make(chan struct{})} }

// answer takes the news; the first counts.
func (a *apiAnswer) answer(kubeconfig []byte) {
	a.once.Do(func() {
		a.kubeconfig = kubeconfig
		close(a.came)
	})
}

// awaitAPI waits until objects can be made in the management cluster.
func (s *session) awaitAPI(ctx context.Context, _ func(string)) (err error) {
	if err := wait(ctx, s.api.came); err != nil {
		return err
	}
	if s.client, err = kube.New(s.api.kubeconfig, kube.Options{}); err != nil {
		return err
	}
	journal, err := s.refuseHandedOver(ctx, s.client)
	if err != nil {
		return err
	}
	if err := s.refuseForgottenAt(ctx, s.client, journal); err != nil {
		return err
	}
	return s.claimCluster(ctx, s.client) // nothing is done to it before
}

// awaitPods waits until pods can run in the management cluster and their images are there.
func (s *session) awaitPods(ctx context.Context) error { return wait(ctx, s.podsRun) }

// wait waits for news, or for the end of ctx.
func wait(ctx context.Context, news <-chan struct{}) error {
	select {
	case <-news:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// keepAccess writes the private kubeconfig, and the user's own where they asked for it.
func (s *session) keepAccess(ctx context.Context, kubeconfig []byte) error {
	if err := s.cluster.Save(s.record()); err != nil {
		return err
	}
	if err := kube.WriteKubeconfig(s.cluster.Path(management.KubeconfigFile), kubeconfig); err != nil {
		return err
	}
	if s.opts.MergeKubeconfig == "" {
		return nil
	}
	return kube.MergeKubeconfig(ctx, s.opts.MergeKubeconfig, management.ContextName(s.mgmt.Name), kubeconfig)
}

func (s *session) installProviders(ctx context.Context, detail func(string)) error {
	manager, err := capi.New(s.client)
	if err != nil {
		return err
	}
	result, err := s.installWith(ctx, manager, capi.InstallOptions{
		Providers: s.plan.providers, Detail: detail,
		PodsRun: s.awaitPods,
		BeforeUpgrade: func(ctx context.Context, upgrades []capi.Upgrade) error {
			s.did() // also where it fails on the way
			return s.keepSnapshot(ctx, manager, upgrades, detail)
		},
	})
	if err != nil {
		return err
	}
	if len(result.Installed) == 0 && !result.CertManager && len(result.Upgraded) == 0 && len(result.Renewed) == 0 {
		return steps.NothingToDo("they are installed and ready")
	}
	s.did()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upgraded = upgradedOf(result.Upgraded)
	s.renewed = renewedOf(result.Renewed)
	return nil
}

func (s *session) installFlux(ctx context.Context, detail func(string)) error {
	installed, err := installFlux(ctx, s.client, s.plan.flux, flux.InstallOptions{PodsRun: s.awaitPods, Detail: detail})
	if err != nil {
		return err
	}
	if !installed {
		return steps.NothingToDo("it is installed and ready")
	}
	s.did()
	return nil
}

// installFlux installs Flux on a cluster and tells whether there was anything to do.
func installFlux(ctx context.Context, client *kube.Client, components *flux.Components, opts flux.InstallOptions) (bool, error) {
	system := flux.NewSystem(client)
	there, err := system.Installed(ctx, components)
	if err != nil || there {
		return false, err
	}
	return true, system.Install(ctx, components, opts)
}

// connect gives Flux its credentials and the source to follow, and lets it go on where a teardown that was called off suspended it.
func (s *session) connect(ctx context.Context, detail func(string)) error {
	system := flux.NewSystem(s.client)
	if err := s.follow(ctx, system, detail); err != nil {
		return err
	}
	if err := s.cluster.Save(s.record()); err != nil { // with the identity that is in the repo now
		return err
	}
	resumed, err := system.Resume(ctx)
	if err != nil {
		return err
	}
	if synced, err := system.Synced(ctx, s.revision); err == nil && synced && len(resumed) == 0 {
		return steps.NothingToDo("it follows " + s.endpoint.display)
	}
	s.did()
	return nil
}

// applySync gives the Flux of a cluster the fleet repo, and the key to what is encrypted there.
func (s *session) applySync(ctx context.Context, client *kube.Client, sync []byte, detail func(string)) error {
	secret, err := s.sourceSecret(ctx, client)
	if err != nil {
		return err
	}
	system := flux.NewSystem(client)
	if err := s.applyKeys(ctx, system); err != nil {
		return err
	}
	return system.ApplySync(ctx, secret, sync, detail)
}

// applyKeys gives the Flux of a cluster the keys to what is encrypted in the fleet repo.
func (s *session) applyKeys(ctx context.Context, system *flux.System) error {
	return system.AddKeys(ctx, withKeys(s.keys))
}

// waitSynced returns when Flux has applied the revision that was pushed, and all that it applied is healthy.
func (s *session) waitSynced(ctx context.Context, detail func(string)) error {
	system := flux.NewSystem(s.client)
	if synced, err := system.Synced(ctx, s.revision); err == nil && synced {
		return steps.NothingToDo("it has applied " + s.revision[:min(len(s.revision), 8)])
	}
	return system.WaitSynced(ctx, s.waitOptions(detail))
}

// waitOptions are for the pushed revision, or what somebody has pushed on top of it.
func (s *session) waitOptions(detail func(string)) flux.WaitOptions {
	return flux.WaitOptions{Commit: s.revision, Detail: detail, Includes: func(ctx context.Context, newer string) (bool, error) {
		return s.repo.Includes(ctx, s.pushAuth(), newer, s.revision)
	}}
}
