package resolve

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/hosts"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Reach asks, side by side, the servers from which Choose and Read download manifests, and returns their hosts. If a server cannot be
// reached, its contact.Error is in the error's tree. With a bundle there are no such servers.
func Reach(ctx context.Context, s *session.Session) (hosts []string, _ error) {
	addresses, err := addressesOf(s) //nolint:contextcheck // it reads nothing
	if err != nil {
		return nil, err
	}
	hosts, addresses = onePerHost(addresses)
	silent := make([]error, len(addresses))
	servers := releases.NewServers()
	var group errgroup.Group
	for i, address := range addresses {
		group.Go(func() error {
			silent[i] = servers.Check(ctx, address)
			return nil
		})
	}
	_ = group.Wait() // the errors are in silent, so that all are told at once
	return hosts, errors.Join(silent...)
}

// addressesOf are the URLs of the manifests.
func addressesOf(s *session.Session) ([]string, error) {
	if s.Bundle != nil {
		return nil, nil
	}
	declared := components.DeclaredProviders(s.Mgmt.Providers)
	source, err := ProviderSource(s, declared, nil, nil, s.Mgmt.CertManager)
	if err != nil {
		return nil, err
	}
	all, err := source.Addresses(declared)
	if err != nil {
		return nil, err
	}
	return append(all, FluxOptions(s).Address()), nil
}

// onePerHost keeps the first address of each host on the network. A provider may also be a file of this machine.
func onePerHost(addresses []string) (hosts, kept []string) {
	for _, address := range addresses {
		at, err := url.Parse(address)
		if err != nil || at.Scheme != "https" && at.Scheme != "http" || slices.Contains(hosts, at.Host) {
			continue
		}
		hosts, kept = append(hosts, at.Host), append(kept, address)
	}
	return hosts, kept
}

// ReachRegistries asks, side by side, the registries from which init pulls images, as far as they are known before manifests are read, and
// returns their names. If a registry cannot be reached, its contact.Error is in the error's tree. There are no such registries with a
// bundle, and for a host that somebody else looks after: its nodes pull by their own way.
func ReachRegistries(ctx context.Context, s *session.Session) (registries []string, _ error) {
	images, err := knownImages(s)
	if err != nil {
		return nil, err
	}
	return bundle.Reach(ctx, images, hosts.Mirrors(s.Mgmt.Host))
}

// knownImages are images that init pulls, by what fleet.yaml and fleet.lock say.
func knownImages(s *session.Session) ([]string, error) {
	if s.Bundle != nil || s.Traits().Elsewhere {
		return nil, nil
	}
	images := []string{strings.TrimSuffix(s.Fleet.Spec.Flux.Registry, "/") + "/source-controller"}
	switch traits := s.Traits(); {
	case traits.Processes: // its programs come from the images of Kubernetes
		images = append(images, "registry.k8s.io/kube-apiserver:"+traits.KubernetesVersion)
	case traits.NodeImage != "":
		images = append(images, traits.NodeImage)
	}
	lock, err := LockOf(s)
	if err != nil || lock == nil || len(s.Fleet.Spec.ManagementClusters) > 1 { // the lock does not say whose an image is
		return images, err
	}
	for _, image := range lock.Images {
		if !strings.HasPrefix(image.Name, flux.DefaultRegistry+"/") { // fleet.yaml may have another registry for these
			images = append(images, image.Name)
		}
	}
	return images, nil
}
