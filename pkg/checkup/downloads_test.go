package checkup

import (
	"errors"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/contact"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

func TestJudgeDownloads(t *testing.T) {
	silent := func(host string) error { return &contact.Error{Host: host, Err: errors.New("no such host")} }
	for name, tt := range map[string]struct {
		servers, registries   []string
		ofManifests, ofImages error
		status                preflight.Status
		says                  string
	}{
		"all answer": {
			[]string{"github.com"},
			[]string{"ghcr.io", "registry.k8s.io"},
			nil, nil,
			preflight.StatusOK, "init can download manifests from github.com, and images from ghcr.io, registry.k8s.io",
		},
		"no registry is known": {[]string{"github.com"}, nil, nil, nil, preflight.StatusOK, "init can download manifests from github.com"},
		"nothing is known":     {nil, nil, nil, nil, preflight.StatusOK, "init downloads nothing"},
		"a registry is silent": {
			[]string{"github.com"},
			[]string{"ghcr.io", "registry.k8s.io"},
			nil, silent("ghcr.io"),
			preflight.StatusFail, "init could not download images: ghcr.io cannot be reached: no such host",
		},
		"all are silent": {
			[]string{"github.com"},
			[]string{"ghcr.io", "registry.k8s.io"},
			silent("github.com"),
			errors.Join(silent("ghcr.io"), silent("registry.k8s.io")),
			preflight.StatusFail, "init could not download manifests: github.com cannot be reached: no such host; nor images: " +
				"ghcr.io cannot be reached: no such host; registry.k8s.io cannot be reached: no such host",
		},
		"fleet.lock has a fault": {[]string{"github.com"}, nil, nil, errors.New("no YAML"), preflight.StatusFail, "no YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeDownloads(tt.servers, tt.ofManifests, tt.registries, tt.ofImages)
			if got.Status != tt.status || got.Summary != tt.says {
				t.Errorf("%s %q, want %s %q", got.Status, got.Summary, tt.status, tt.says)
			}
		})
	}
}
