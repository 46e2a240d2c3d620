package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChannels(t *testing.T) {
	f := &Fleet{Spec: FleetSpec{
		Git:      Git{Branch: "trunk"},
		Channels: []Channel{{Name: "release", Tag: "fleet-v*"}, {Name: "main", Branch: "trunk"}},
		Environments: []Environment{
			{Name: "dev"}, {Name: "prod-eu", Channel: "release"}, {Name: "production", Channel: "release", Production: new(false)},
		},
	}}
	main, release := Channel{Name: "main", Branch: "trunk"}, Channel{Name: "release", Tag: "fleet-v*"}
	if diff := cmp.Diff([]Channel{main, release}, f.Channels()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for env, want := range map[string]Channel{"dev": main, "prod-eu": release, "production": release, "unheard-of": main} {
		if got := f.ChannelOf(env); got != want {
			t.Errorf("%s follows %+v", env, got)
		}
	}
	if got := cmp.Diff([]string{"prod-eu", "production"}, f.EnvironmentsOf("release")); got != "" {
		t.Error(got)
	}
	if _, ok := f.Channel("unheard-of"); ok {
		t.Error("found a channel that is not there")
	}
	if main.Source() != "flux-system" || release.Source() != "release" || main.IsTag() || !release.IsTag() ||
		release.TagPrefix() != "fleet-v" {
		t.Error(main.Source(), release.Source(), release.TagPrefix())
	}
	if diff := cmp.Diff([]Channel{{Name: "main", Branch: "main"}}, (&Fleet{}).Channels()); diff != "" {
		t.Errorf("a fleet without channels (-want +got)\n%s", diff)
	}
}

func TestIsProduction(t *testing.T) {
	for name, want := range map[string]bool{
		"prod": true, "production": true, "prod-eu": true, "production-2": true,
		"dev": false, "non-prod": false, "pre-production": false, "products": false,
	} {
		if got := (Environment{Name: name}).IsProduction(); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !(Environment{Name: "live", Production: new(true)}).IsProduction() ||
		(Environment{Name: "prod", Production: new(false)}).IsProduction() {
		t.Error("what fleet.yaml says counts more than the name")
	}
}
