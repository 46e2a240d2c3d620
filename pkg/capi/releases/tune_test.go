package releases

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/capi/releases/releasestest"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

func TestTuning(t *testing.T) {
	docker := Provider{Name: "docker", Type: Infrastructure, Version: "v1.14.2"}
	source := newTestSource(t, SourceOptions{Repository: releasestest.Repository(t), Tuning: []kube.Tuning{
		{Manager: "infrastructuredocker-manager", Flags: map[string]int{"kube-api-qps": 200, "v": 4}},
		{Manager: "helm-controller", Flags: map[string]int{"concurrent": 4}},
	}})
	rendered, err := source.Render(t.Context(), []Provider{docker, {Name: "kubeadm", Type: Bootstrap, Version: "v1.14.2"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range rendered {
		tuned := strings.HasPrefix(f.Name, "infrastructure-docker/")
		for _, want := range []string{"- --kube-api-qps=200\n", "- --v=4\n", "fleetctl.dev/tuning: --kube-api-qps=200 --v=4\n"} {
			if bytes.Contains(f.Content, []byte(want)) != tuned {
				t.Errorf("%s: it was not to be tuned, or %q is missing in it:\n%s", f.Name, want, f.Content)
			}
		}
	}
	if err := source.CheckTuning(t.Context(), []Provider{docker}, []string{"helm-controller"}); err != nil {
		t.Error(err)
	}
	err = source.CheckTuning(t.Context(), []Provider{docker}, []string{"helm-kontroller"})
	if err == nil || !strings.Contains(err.Error(), "tune helm-controller: ") || diag.Hint(err) != "did you mean helm-kontroller?" {
		t.Errorf("got %v, hint %q", err, diag.Hint(err))
	}
}
