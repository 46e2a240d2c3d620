package fleetrepo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
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

// An environment and a management cluster that a notification names stay, and the error says which notification that is.
func TestNotifiedOnesStay(t *testing.T) {
	const second = "  - {name: second, kubernetesVersion: v1.36.3, generation: v2, providers: [{name: docker}]}\n"
	for name, remove := range map[string]func(r *Repo) (*Edit, error){
		"dev":    func(r *Repo) (*Edit, error) { return r.RemoveEnvironment("dev") },
		"second": func(r *Repo) (*Edit, error) { return r.RemoveManagementCluster("second") },
	} {
		r := cloudsRepo(t, cloudsFleet+second)
		e, err := r.AddNotification(v1alpha1.Notification{
			Name: "chat", Type: v1alpha1.NotifySlack, Environments: []string{"dev"}, ManagementClusters: []string{"second"}, Secret: "chat",
		})
		_, r = done(t, r, e, err)
		_, err = remove(r)
		if err == nil || err.Error() != "notification chat names "+name ||
			!strings.Contains(diag.Hint(err), "`fleetctl notification remove chat`") {
			t.Errorf("%s: got %v (%s)", name, err, diag.Hint(err))
		}
	}
}
