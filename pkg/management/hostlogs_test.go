package management

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The name of a program is as much of it as tells it apart.
func TestShortNamesOfLogs(t *testing.T) {
	names := []string{
		"capi-system/capi-controller-manager", "cert-manager/cert-manager", "cert-manager/cert-manager-webhook", "east/web", "etcd",
		"flux-system/source-controller", "kube-apiserver", "west/web",
	}
	for short, want := range map[string]string{
		"etcd": "etcd", "kube-apiserver": "kube-apiserver", "capi-system/capi-controller-manager": "capi-system/capi-controller-manager",
		"capi-controller-manager": "capi-system/capi-controller-manager", "capi": "capi-system/capi-controller-manager",
		"capi-system":       "capi-system/capi-controller-manager",
		"source-controller": "flux-system/source-controller", "source": "flux-system/source-controller",
		"cert-manager-webhook": "cert-manager/cert-manager-webhook",
		"nothing":              "nothing", "east/nothing": "east/nothing", "": "",
	} {
		if got, err := fullLogName(short, names); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", short, got, err, want)
		}
	}
	_, err := fullLogName("web", names)
	if diag.Code(err) != diag.ExitUsage || !strings.Contains(err.Error(), "several programs are called web: east/web, west/web") {
		t.Errorf("got %v", err)
	}
}
