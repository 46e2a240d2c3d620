package fleetrepo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddEnvironment(t *testing.T) {
	r := open(t)
	write(t, r.Dir, "providers/aws/v1/mgmt/kustomization.yaml", []byte("resources:\n- flux-system # first\n"))
	e, err := r.AddEnvironment("stage", EnvironmentOptions{})
	diff, r := done(t, r, e, err)
	for _, want := range []string{
		"+  - name: stage\n", "+- clusters-stage.yaml\n", "+++ b/providers/docker/v1/mgmt/clusters-stage.yaml\n",
		"+++ b/providers/aws/v1/clusters/stage/common/kustomization.yaml\n",
	} {
		if !strings.Contains(diff, want) {
			t.Errorf("lacks %q:\n%s", want, diff)
		}
	}
	e, err = r.AddEnvironment("stage", EnvironmentOptions{})
	if diff, _ := done(t, r, e, err); diff != "" {
		t.Errorf("a second time:\n%s", diff)
	}
	all, err := r.Environments()
	want := []Environment{
		{Name: "dev", Clusters: 1, Channel: "main", Declared: true},
		{Name: "prod", Clusters: 1, Channel: "main", Production: true, Declared: true},
		{Name: "stage", Channel: "main", Declared: true},
	}
	if diff := cmp.Diff(want, all); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
