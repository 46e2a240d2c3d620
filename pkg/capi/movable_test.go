package capi

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi/releases"
)

// A target of one Cluster needs the providers that act on its objects, and those of which no object tells.
func TestNeededProviders(t *testing.T) {
	installed := func(of ...releases.Provider) (all []InstalledProvider) {
		for _, p := range of {
			p.Version = "v1.0.0"
			all = append(all, InstalledProvider{Provider: p, Ready: true})
		}
		return all
	}
	core := releases.Provider{Name: "cluster-api", Type: releases.Core}
	aws := releases.Provider{Name: "aws", Type: releases.Infrastructure}
	vsphere := releases.Provider{Name: "vsphere", Type: releases.Infrastructure}
	extension := releases.Provider{Name: "patches", Type: releases.RuntimeExtension}
	source := installed(core, aws, vsphere, extension)
	acted := func(label string) bool { return label == "cluster-api" || label == "infrastructure-aws" }
	for name, test := range map[string]struct {
		target []InstalledProvider
		says   string
	}{
		"that of its cloud":                         {installed(core, aws, extension), ""},
		"not that of its cloud":                     {installed(core, vsphere, extension), "the target has no infrastructure provider aws"},
		"not what may be called for its class":      {installed(core, aws), "the target has no runtime-extension provider patches"},
		"not even Cluster API":                      {installed(aws, extension), "the target has no core provider cluster-api"},
		"all that the source has, and nothing else": {source, ""},
	} {
		err := providersFit(needed(source, acted), test.target)
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(source) != 4 {
		t.Errorf("it has changed what is installed: %v", source)
	}
}
