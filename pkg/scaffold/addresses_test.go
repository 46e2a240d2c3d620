package scaffold

import (
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// What Flux could never fetch is refused before anything is written.
func TestAddressesOfCharts(t *testing.T) {
	for address, ok := range map[string]bool{
		"oci://ghcr.io/acme/charts/shop":         true,
		"oci://ghcr.io/acme/charts/shop/":        true,
		"oci://ghcr.io:5000/acme/my.shop_v2-old": true,
		"oci://GHCR.io/acme/shop":                true,
		"oci://ghcr.io/Acme/charts/shop":         false,
		"oci://ghcr.io/acme//shop":               false,
		"oci://ghcr.io/acme/sh%C3%B6p":           false,
		"oci://ghcr.io/acme:1/shop":              false,
		"oci://ghcr.io/x":                        false,
	} {
		_, err := FeatureChart{URL: address, Version: "1.2.3"}.source()
		if (err == nil) != ok || err != nil && diag.Code(err) != diag.ExitUsage {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The folder of an application is in its repository: Flux would take a way out of it for another folder in it.
func TestFoldersOfApplications(t *testing.T) {
	for folder, ok := range map[string]bool{
		"": true, ".": true, "/": true, "deploy": true, "./deploy/": true, "/deploy": true, "a/../b": true, "..data": true,
		"..": false, "../x": false, "deploy/../../other": false, "./..": false,
	} {
		_, err := AppSource{URL: "https://git.example.com/web", Path: folder}.check()
		if (err == nil) != ok || err != nil && diag.Code(err) != diag.ExitUsage {
			t.Errorf("%q: %v", folder, err)
		}
	}
}
