package rendertest

import (
	"strings"

	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// addons makes features and tenants, and gives them to some environments.
func (m *maker) addons() error {
	var files []manifest.File
	for _, name := range []string{"ingress", "logs"}[:m.IntN(3)] {
		made, err := scaffold.FeatureFiles(name)
		if err != nil {
			return err
		}
		m.fleet.Features, files = append(m.fleet.Features, name), append(files, made...)
	}
	m.fleet.Tenants = append(m.fleet.Tenants, []string{"shop", "team-b"}[:m.IntN(3)]...)
	for _, l := range m.layouts {
		for i, env := range m.fleet.Environments {
			for _, name := range m.fleet.Features {
				file, err := scaffold.EnableFeature(name, scaffold.FeatureTarget{Layout: l, Environment: env})
				if err != nil {
					return err
				}
				if m.chance(50) {
					files = append(files, file)
				}
			}
			for _, name := range m.fleet.Tenants {
				made, err := scaffold.TenantFiles(scaffold.TenantOptions{
					Name: name, Layout: l, Environment: env,
					Production: strings.HasPrefix(env, "prod"),
				})
				if err != nil {
					return err
				}
				if i == 0 || m.chance(50) {
					files = append(files, made...)
				}
			}
		}
	}
	return m.add(files...)
}
