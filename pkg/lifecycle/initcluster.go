package lifecycle

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// installPlan is what will run on the management cluster, every version chosen.
type installPlan struct {
	source    *capi.Source
	providers []capi.Provider
	flux      *flux.Components
	// images of a bundle that the node needs; nil without a bundle.
	images host.ImageArchive
}

// chooseVersions fills in the versions that fleet.yaml leaves open, and gets hold of all manifests: from the bundle, or from the
// releases.
func (s *session) chooseVersions(ctx context.Context, detail func(string)) error {
	if s.bundle != nil {
		detail("unpacking the bundle's manifests")
		if err := s.unpackManifests(ctx); err != nil {
			return err
		}
	}
	detail("reading provider components and Flux's manifests")
	plan := &installPlan{}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.planProviders(gctx, plan) })
	group.Go(func() error { return s.planFlux(gctx, plan) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.pinVersions(plan.providers); err != nil {
		return err
	}
	if s.bundle != nil {
		if err := s.planImages(ctx, plan); err != nil {
			return err
		}
	}
	s.plan = plan
	return nil
}

func (s *session) planProviders(ctx context.Context, plan *installPlan) error {
	declared := capiProviders(s.mgmt.Providers)
	variables, err := resolveVariables(ctx, s.mgmt.Providers, s.opts.Dir, s.LookupEnv)
	if err != nil {
		return err
	}
	source, err := s.providerSource(declared, variables) //nolint:contextcheck // it reads nothing yet
	if err != nil {
		return err
	}
	if plan.providers, err = source.Resolve(ctx, declared); err != nil {
		return err
	}
	found, err := s.environmentFor(ctx, source, plan.providers, variables)
	if err != nil {
		return err
	}
	maps.Copy(variables, found)
	if plan.source, err = s.providerSource(declared, variables); err != nil { //nolint:contextcheck // it reads nothing yet
		return err
	}
	return plan.source.CheckVariables(ctx, plan.providers)
}

func (s *session) providerSource(declared []capi.Provider, variables map[string]string) (*capi.Source, error) {
	return capi.NewSource(capi.SourceOptions{Providers: declared, Variables: variables, Repository: s.providerFolder()})
}

// providerFolder is laid out as the provider repositories are, with cert-manager beside the providers; "" without a bundle.
func (s *session) providerFolder() string {
	if s.bundle == nil {
		return ""
	}
	return filepath.Join(s.manifests, "providers")
}

// unpackManifests writes the bundle's manifests, verified, to where their readers look.
func (s *session) unpackManifests(ctx context.Context) error {
	for _, part := range []struct{ dir, prefix string }{
		{s.manifests, "providers"}, {s.manifests, "flux"}, {s.providerFolder(), "cert-manager"},
	} {
		if err := s.bundle.WriteFiles(ctx, part.dir, part.prefix); err != nil {
			return err
		}
	}
	return nil
}

// environmentFor looks up, in the environment, the variables that components name and fleet.yaml says nothing about. No other part of
// the environment is handed to them.
func (s *session) environmentFor(ctx context.Context, source *capi.Source, providers []capi.Provider, known map[string]string) (map[string]string, error) {
	found := map[string]string{}
	for _, p := range providers {
		named, err := source.Variables(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, v := range named {
			if _, ok := known[v.Name]; ok {
				continue
			}
			if value, ok := s.LookupEnv(v.Name); ok {
				found[v.Name] = value
			}
		}
	}
	return found, nil
}

func (s *session) planFlux(ctx context.Context, plan *installPlan) (err error) {
	plan.flux, err = flux.GenerateComponents(ctx, s.fluxOptions())
	return err
}

func (s *session) fluxOptions() flux.ComponentsOptions {
	o := s.fleet.Spec.Flux
	options := flux.ComponentsOptions{
		Version: o.Version, Components: o.Components, NetworkPolicy: *o.NetworkPolicy, Registry: o.Registry,
	}
	if s.bundle != nil {
		options.ManifestsBase = filepath.Join(s.manifests, "flux", o.Version)
	}
	return options
}

// planImages finds the images of the plan in the bundle. One that is missing is said now: later it would be a pod that never
// starts.
func (s *session) planImages(ctx context.Context, plan *installPlan) error {
	needed, err := plan.source.Images(ctx, plan.providers)
	if err != nil {
		return err
	}
	needed = append(needed, plan.flux.Images...)
	for _, ref := range needed {
		if _, err := s.bundle.Image(ref); err != nil {
			return diag.Wrap("find image "+ref+" in the bundle "+s.opts.Bundle, err, "make a bundle for this fleet: fleetctl bundle create")
		}
	}
	plan.images = s.bundle.Archive(needed...)
	return nil
}

// pinVersions writes the chosen versions into fleet.yaml where it leaves them open: the next run, and every other machine, installs the
// same.
func (s *session) pinVersions(chosen []capi.Provider) error {
	for _, p := range chosen {
		providerType := v1alpha1.ProviderType(p.Type)
		edited, err := v1alpha1.SetProviderVersion(s.fleetFile, s.mgmt.Name, providerType, p.Name, p.Version)
		if err != nil {
			return err
		}
		s.fleetFile = edited
		for i := range s.mgmt.Providers {
			if have := &s.mgmt.Providers[i]; have.Name == p.Name && have.Type == providerType {
				have.Version = p.Version
			}
		}
	}
	return nil
}

func capiProviders(declared []v1alpha1.Provider) []capi.Provider {
	out := make([]capi.Provider, 0, len(declared))
	for _, p := range declared {
		out = append(out, capi.Provider{Name: p.Name, Type: capi.ProviderType(p.Type), Version: p.Version, URL: p.URL})
	}
	return out
}

// hostRuns tells whether the host is there and has its images.
func (s *session) hostRuns(ctx context.Context) (string, bool, error) {
	st, err := s.host.State(ctx)
	if err != nil || st != host.StateRunning {
		return "", false, err
	}
	if s.bundle != nil {
		// A create that was killed after the API server came up may lack images; loading skips those that are there.
		if err := s.host.LoadImages(ctx, s.plan.images, func(string) {}); err != nil {
			return "", false, err
		}
	}
	return "it runs", true, s.keepAccess(ctx)
}

func (s *session) createHost(ctx context.Context, detail func(string)) error {
	if err := s.cluster.Save(s.record()); err != nil {
		return err
	}
	o := host.CreateOptions{KubernetesVersion: s.mgmt.KubernetesVersion, Detail: detail}
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
		o.Images = s.plan.images
		o.NodeImage = s.bundle.Archive()
	}
	if err := s.host.Create(ctx, o); err != nil {
		return err
	}
	s.did()
	return s.keepAccess(ctx)
}

// dockerProvider makes workload clusters of containers, through the socket of this machine's engine.
const (
	dockerProvider = "docker"
	dockerSocket   = "/var/run/docker.sock"
)

// mountEngine gives the docker provider the engine that it works with, where it is among the providers and the host has one.
func (s *session) mountEngine(ctx context.Context, o *host.CreateOptions) error {
	wanted := slices.ContainsFunc(s.mgmt.Providers, func(p v1alpha1.Provider) bool {
		return p.Type == v1alpha1.ProviderInfrastructure && p.Name == dockerProvider
	})
	onEngine, ok := s.host.(interface {
		EngineSocket(ctx context.Context) (string, error)
	})
	declared := slices.ContainsFunc(o.ExtraMounts, func(m host.Mount) bool { return m.ContainerPath == dockerSocket })
	if !wanted || !ok || declared {
		return nil
	}
	socket, err := onEngine.EngineSocket(ctx)
	if err != nil {
		return err
	}
	o.ExtraMounts = append(o.ExtraMounts, host.Mount{HostPath: socket, ContainerPath: dockerSocket})
	return nil
}

// keepAccess writes the private kubeconfig, and the user's own where they asked for it.
func (s *session) keepAccess(ctx context.Context) error {
	kubeconfig, err := s.host.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	if err := s.cluster.Save(s.record()); err != nil {
		return err
	}
	if err := kube.WriteKubeconfig(s.cluster.Path(kubeconfigFile), kubeconfig); err != nil {
		return err
	}
	if s.opts.MergeKubeconfig == "" {
		return nil
	}
	return kube.MergeKubeconfig(ctx, s.opts.MergeKubeconfig, contextName(s.mgmt.Name), kubeconfig)
}

// contextName is the context that a management cluster has in the user's kubeconfig.
func contextName(cluster string) string { return "fleetctl-" + cluster }

func (s *session) installProviders(ctx context.Context, detail func(string)) error {
	client, err := s.kube(ctx)
	if err != nil {
		return err
	}
	manager, err := capi.New(client)
	if err != nil {
		return err
	}
	result, err := manager.Install(ctx, s.plan.source, capi.InstallOptions{Providers: s.plan.providers, Detail: detail})
	if err != nil {
		return err
	}
	if len(result.Installed) == 0 && !result.CertManager {
		return nothingToDo("they are installed and ready")
	}
	s.did()
	return nil
}

func (s *session) installFlux(ctx context.Context, detail func(string)) error {
	client, err := s.kube(ctx)
	if err != nil {
		return err
	}
	installed, err := installFlux(ctx, client, s.plan.flux, detail)
	if err != nil {
		return err
	}
	if !installed {
		return nothingToDo("it is installed and ready")
	}
	s.did()
	return nil
}

// installFlux installs Flux on a cluster and tells whether there was anything to do.
func installFlux(ctx context.Context, client *kube.Client, components *flux.Components, detail func(string)) (bool, error) {
	system := flux.NewSystem(client)
	there, err := system.Installed(ctx, components.Content)
	if err != nil || there {
		return false, err
	}
	return true, system.Install(ctx, components.Content, detail)
}

// connect gives Flux its credentials and the source to follow, and lets it go on where a teardown that was called off suspended it.
func (s *session) connect(ctx context.Context, detail func(string)) error {
	client, err := s.kube(ctx)
	if err != nil {
		return err
	}
	system := flux.NewSystem(client)
	resumed, err := system.Resume(ctx)
	if err != nil {
		return err
	}
	if err := s.applySync(ctx, system, detail); err != nil {
		return err
	}
	if synced, err := system.Synced(ctx, s.revision); err == nil && synced && len(resumed) == 0 {
		return nothingToDo("it follows " + s.endpoint.display)
	}
	s.did()
	return nil
}

// applySync gives the Flux of a cluster the fleet repo.
func (s *session) applySync(ctx context.Context, system *flux.System, detail func(string)) error {
	var secret *corev1.Secret
	if !s.endpoint.credentials.Empty() {
		var err error
		if secret, err = flux.SourceSecret(s.endpoint.credentials); err != nil {
			return err
		}
	}
	sync, err := flux.GenerateSync(s.syncOptions())
	if err != nil {
		return err
	}
	return system.ApplySync(ctx, secret, sync, detail)
}

// waitSynced returns when Flux has applied the revision that was pushed, and all that it applied is healthy.
func (s *session) waitSynced(ctx context.Context, detail func(string)) error {
	client, err := s.kube(ctx)
	if err != nil {
		return err
	}
	system := flux.NewSystem(client)
	if synced, err := system.Synced(ctx, s.revision); err == nil && synced {
		return nothingToDo("it has applied " + s.revision[:min(len(s.revision), 8)])
	}
	return system.WaitSynced(ctx, s.revision, detail)
}
