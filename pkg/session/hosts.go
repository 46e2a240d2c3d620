package session

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/hosts"
)

// deployKeyFile is the private key that a management cluster reads its fleet repo with, in its state folder.
const deployKeyFile = "deploy-key"

// Traits of the declared host.
func (s *Session) Traits() hosts.Traits { return hosts.TraitsOf(s.Mgmt.Host, s.Mgmt.KubernetesVersion) }

// settleHostTypes fills in the host type of each management cluster for which fleet.yaml names none. It runs before the defaults.
func (s *Session) settleHostTypes(ctx context.Context, fleet *v1alpha1.Fleet) {
	for i := range fleet.Spec.ManagementClusters {
		m := &fleet.Spec.ManagementClusters[i]
		if m.Parent == "" && m.Host.Type == "" && m.Host.Kind == nil && m.Host.Embedded == nil && m.Host.Existing == nil {
			m.Host.Type = s.defaultHostType(ctx, m.Name)
		}
	}
	for i := range fleet.Spec.Standbys {
		if b := &fleet.Spec.Standbys[i]; b.Host.Type == "" && b.Host.Kind == nil && b.Host.Embedded == nil && b.Host.Existing == nil {
			b.Host.Type = s.defaultHostType(ctx, b.Name)
		}
	}
}

// defaultHostType returns the type that an earlier run chose. So a container engine that starts to answer does not move a cluster.
func (s *Session) defaultHostType(ctx context.Context, cluster string) v1alpha1.HostType {
	if r, err := s.Deps.Store.Cluster(cluster).Load(); err == nil && r.HostType != "" {
		return v1alpha1.HostType(r.HostType)
	}
	return hosts.Default(func() error {
		_, err := s.detectEngine(ctx)
		return err
	})
}

// Defaults are the versions that this fleetctl was built with.
func Defaults() v1alpha1.Defaults { return components.Defaults() }
