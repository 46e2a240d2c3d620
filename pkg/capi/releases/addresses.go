package releases

import (
	"cmp"
	"fmt"
	"net/url"
)

// Addresses returns the URLs from which the components of providers and cert-manager's manifest are downloaded. There are none if all of
// them come from a folder. It skips an unknown provider, because Resolve refuses it.
func (s *Source) Addresses(providers []Provider) ([]string, error) {
	if s.repository != "" {
		return nil, nil
	}
	certs, err := s.config.CertManager().Get()
	if err != nil {
		return nil, fmt.Errorf("find cert-manager: %w", err)
	}
	addresses := []string{cmp.Or(s.certsURL, certs.URL())}
	for _, p := range WithDefaults(providers) {
		known, err := s.config.Providers().Get(p.Name, p.ClusterctlType())
		if err != nil {
			continue
		}
		location, err := s.locate(p, known.URL())
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, location)
	}
	for i, address := range addresses {
		at, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("find the server of a release: %w", err)
		}
		addresses[i] = downloadURL(at)
	}
	return addresses, nil
}
