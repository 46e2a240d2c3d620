//go:build e2e && clouds

package e2e

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	imagestore "github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// simulatedVSphere is govmomi's simulator of a vCenter with one host; scripts/offline/modules/vcsim has what it adds to that.
type simulatedVSphere struct {
	URL        string `json:"url"`
	Server     string `json:"server"`
	Thumbprint string `json:"thumbprint"`
	Username   string `json:"username"`
	Password   string `json:"password"`
	Second     struct {
		Username string `json:"username"`
		Password string `json:"password"`
	} `json:"second"`
	Endpoint       string `json:"endpoint"`
	SecondEndpoint string `json:"secondEndpoint"`
}

// envVSphere names the program of scripts/offline/modules/vcsim.
const envVSphere = "FLEETCTL_E2E_VSPHERE"

// left lists, as KIND/NAME, the objects that vCenter did not have at the beginning.
func (v *simulatedVSphere) left(t *testing.T) []string {
	t.Helper()
	return ask[[]string](t, v.URL+"/left")
}

// logins counts how often a user has logged in.
func (v *simulatedVSphere) logins(t *testing.T, user string) int {
	t.Helper()
	return ask[map[string]int](t, v.URL+"/logins")[user]
}

func (v *simulatedVSphere) machines(ctx context.Context) ([]machine, error) {
	return tryToAsk[[]machine](ctx, v.URL+"/machines")
}

// onVSphere is a fleet with its management cluster on this machine and clusters in a simulated vSphere, whose machines boot.
type onVSphere struct {
	*fleet
	vsphere *simulatedVSphere
	mgmt    *kube.Client
	// canaries is nil where the fleet has others.
	canaries *canaries
}

// TestVSphere: a whole life of a cluster in vSphere: from one commit to Available, scaled by a commit, and removed by a commit, which
// leaves nothing in vCenter.
func TestVSphere(t *testing.T) {
	v := newOnVSphere(t, "e2e-vsphere")
	v.plays([]act{
		{"init with the vSphere provider", v.inits},
		{"a commit brings the identity that the cluster's namespace may use", v.identifies},
		{"one commit makes a cluster that is Available", v.makesCluster},
		{"a commit scales its workers", v.scales},
		{"the password is nowhere", v.keepsPassword},
		{"cluster remove leaves nothing in vCenter", v.removes},
	})
}

func newOnVSphere(t *testing.T, name string) *onVSphere {
	t.Helper()
	v := newVSphere(t, nil)
	v.fleet = newFleetOn(t, onEmbedded, name)
	v.canaries = &canaries{
		fleet: v.fleet, manager: kube.Key{Namespace: "capv-system", Name: "capv-controller-manager"},
		secrets: []kube.Key{{Namespace: "capv-system", Name: "capv-manager-bootstrap-credentials"}, {Namespace: "capv-system", Name: dc0User}},
		given:   func(*testing.T) []string { return []string{v.vsphere.Password} },
	}
	v.canaries.watch(t)
	return v
}

// keepsPassword looks for the password in all that fleetctl keeps, logs, commits, tells others and has in its processes' arguments.
func (v *onVSphere) keepsPassword(t *testing.T) {
	v.canaries.inSupportBundle(t)
	v.canaries.areHidden(t, true, v.mgmt)
}

// dc0User is the Secret of the identity that the clusters use.
const dc0User = "dc0-user"

// newVSphere is a vSphere whose machines boot, with images of what runs on them or without, and with no fleet yet.
func newVSphere(t *testing.T, store *imagestore.Store) *onVSphere {
	t.Helper()
	v := &onVSphere{vsphere: &simulatedVSphere{}}
	simulate(t, "vSphere", exec.Command(os.Getenv(envVSphere)), v.vsphere)
	newBooter(t, v.vsphere.machines, store, nil)
	t.Setenv("VSPHERE_USERNAME", v.vsphere.Username)
	t.Setenv("VSPHERE_PASSWORD", v.vsphere.Password)
	return v
}

func (v *onVSphere) inits(t *testing.T) {
	made := decode[initResult](t, v.ok("init", "--provider", "vsphere", "--bundle", os.Getenv(envBundle),
		"--kubernetes-version", kubernetesVersion,
		"--timeout", "30m", "-o", "json").stdout)
	v.mgmt = v.client(made.Kubeconfig)
}

func (v *onVSphere) identifies(t *testing.T) {
	v.declaresIdentity(t, "shop")
	v.givesPassword(t)
}

func (v *onVSphere) declaresIdentity(t *testing.T, namespace string) {
	said := v.ok("identity", "add", "dc0", "--provider", "vsphere", "--namespace", namespace, "--secret", dc0User, "--commit")
	t.Logf("%s", said.stdout)
}

// givesPassword does on the management cluster what `identity add` says that somebody has to: the Secret is in nobody's Git.
func (v *onVSphere) givesPassword(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "capv-system", Name: dc0User},
		StringData: map[string]string{"username": v.vsphere.Username, "password": v.vsphere.Password},
	}
	if err := v.mgmt.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// addsCluster declares a cluster with a machine of the control plane and a worker by a commit; more are further flags.
func (v *onVSphere) addsCluster(name string, more ...string) {
	v.t.Helper()
	args := append([]string{"cluster", "add", name, "--flavour", "vsphere-kubeadm", "--environment", "dev", "--commit"}, more...)
	v.ok(append(args, v.values("dc0", v.vsphere.Endpoint)...)...)
}

// values are the flags with what a cluster is, its identity and the address of its API server.
func (v *onVSphere) values(identity, endpoint string) []string {
	var args []string
	for _, value := range []string{
		"kubernetesVersion=" + kubernetesVersion, "server=" + v.vsphere.Server, "thumbprint=" + v.vsphere.Thumbprint,
		"template=/DC0/vm/DC0_H0_VM0",
		"identity.name=" + identity, "network.name=VM Network",
		"placement.datacenter=DC0", "placement.datastore=LocalDS_0", "placement.resourcePool=/DC0/host/DC0_H0/Resources",
		"controlPlane.replicas=1", "controlPlane.endpoint.host=" + endpoint, "controlPlane.endpoint.image=",
		"pools[0].name=general", "pools[0].replicas=1",
	} {
		args = append(args, "--set", value)
	}
	return args
}

func (v *onVSphere) makesCluster(t *testing.T) {
	v.addsCluster("shop", "--flux", "none")
	v.available("shop", 8*time.Minute)
	v.hasMachines(t, 1, 1)
	t.Log(v.run("status", "shop").stdout)
}

func (v *onVSphere) scales(t *testing.T) {
	v.ok("pool", "scale", "shop", "general", "--replicas", "2", "--commit")
	v.hasMachines(t, 1, 2)
}

func (v *onVSphere) hasMachines(t *testing.T, controlPlane, workers int) {
	t.Helper()
	v.hasNodes(t, controlPlane, workers, func() []string { return v.running(t) })
}

// running are the ids of the machines that run in vCenter.
func (v *onVSphere) running(t *testing.T) (ids []string) {
	t.Helper()
	all, err := v.vsphere.machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Running {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func (v *onVSphere) removes(t *testing.T) {
	v.ok("cluster", "remove", "shop", "--commit", "--wait", "--timeout", "9m")
	v.ok("cluster", "remove", "shop", "--yes", "--commit", "--wait", "--timeout", "18m")
	if left := v.vsphere.left(t); len(left) > 0 {
		t.Errorf("vCenter has still %v", left)
	}
	v.ok("teardown", "--yes")
}
