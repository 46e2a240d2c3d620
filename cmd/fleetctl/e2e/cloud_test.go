//go:build e2e && clouds

package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// onAWS is a fleet with its management cluster on this machine and clusters in a simulated AWS: the provider is the real one.
type onAWS struct {
	*fleet
	aws  *simulatedAWS
	mgmt *kube.Client
	// booter is nil where machines do not boot.
	booter *booter
	// secrets are all secret access keys and session tokens that were ever given to fleetctl. None may be anywhere, nor may those that AWS
	// has given.
	secrets  []string
	canaries *canaries
}

// The provider, and the Secret that it has its key from.
var (
	capa            = kube.Key{Namespace: "capa-system", Name: "capa-controller-manager"}
	capaCredentials = kube.Key{Namespace: capa.Namespace, Name: "capa-manager-bootstrap-credentials"}
)

// TestAWS: from one commit to the infrastructure of a cluster in AWS, as its own provider makes it, and back to an account without
// anything.
func TestAWS(t *testing.T) {
	a := newOnAWS(t, "e2e-aws")
	a.plays([]act{
		{"init with the AWS provider", a.inits},
		{"a commit makes a cluster's infrastructure", a.declares},
		{"looking tells what is and what is waited for", a.looks},
		{"what lives is no orphan", a.hasNoOrphans},
		{"a role makes a cluster in another account", a.entersByRole},
		{"changed credentials reach the running provider", a.renews},
		{"no credential is anywhere", a.keepsSecrets},
		{"teardown --delete-clusters leaves the account empty", a.tearsDown},
	})
}

// act is one step of a test that tells a whole story.
type act struct {
	name string
	play func(t *testing.T)
}

// plays runs the steps in order, each on what those before it have made, so that it ends with the first that fails.
func (f *fleet) plays(acts []act) {
	for _, each := range acts {
		if !f.step(each.name, each.play) {
			return
		}
	}
}

// newOnAWS starts the simulator first, so that the simulator still runs when the resources of a failed test are removed.
func newOnAWS(t *testing.T, name string) *onAWS {
	t.Helper()
	return onSimulator(t, newAWS(t), name)
}

// newOnAWSThatBoots is the same with machines that boot, and run until all else of the test has ended.
func newOnAWSThatBoots(t *testing.T, name string) *onAWS {
	t.Helper()
	aws := newAWS(t)
	b := newBooter(t, aws.machines, nil, nil)
	a := onSimulator(t, aws, name)
	a.booter = b
	return a
}

// newOnAWSThatWorks is the same, where Deployments run on the machines.
func newOnAWSThatWorks(t *testing.T, name string) *onAWS {
	t.Helper()
	aws := newAWS(t)
	b := newBooter(t, aws.machines, registry(t), map[string]string{
		"AWS_ENDPOINT_URL": aws.URL, "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.URL,
	})
	a := onSimulator(t, aws, name)
	a.booter = b
	return a
}

func onSimulator(t *testing.T, aws *simulatedAWS, name string) *onAWS {
	t.Helper()
	a := &onAWS{aws: aws}
	a.fleet = newFleetOn(t, onEmbedded, name)
	a.canaries = &canaries{
		fleet: a.fleet, manager: capa, secrets: []kube.Key{capaCredentials}, given: func(t *testing.T) []string {
			return append(slices.Clone(a.secrets), ask[[]string](t, aws.URL+"/_test/secrets")...)
		},
	}
	a.canaries.watch(t)
	a.gives(t, firstKey)
	return a
}

// gives sets the credentials that the next command finds, with a secret key that nobody else has.
func (a *onAWS) gives(t *testing.T, key string) {
	t.Helper()
	t.Setenv("AWS_ENDPOINT_URL", a.aws.URL)
	t.Setenv("AWS_B64ENCODED_CREDENTIALS", a.profile(key))
}

// profile is an AWS profile with a secret key that nobody else has, as the provider's variable takes it.
func (a *onAWS) profile(key string) string {
	secret, token := "canary/+"+rand.Text(), "canary/+"+rand.Text()+rand.Text()
	a.secrets = append(a.secrets, secret, token)
	// It leads to the simulator wherever the provider runs, which nobody would say of the real one.
	profile := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\naws_session_token = %s\nregion = %s\n"+
		"endpoint_url = %s\n", key, secret, token, a.aws.Region, a.aws.URL)
	return base64.StdEncoding.EncodeToString([]byte(profile))
}

const firstKey, secondKey = "AKIAFIRST", "AKIASECOND"

func (a *onAWS) inits(t *testing.T) {
	made := decode[initResult](t, a.ok("init", "--provider", "aws", "--bundle", os.Getenv(envBundle),
		"--kubernetes-version", kubernetesVersion,
		"--timeout", "30m", "-o", "json").stdout)
	a.mgmt = a.client(made.Kubeconfig)
}

// addsCluster declares a cluster with one machine of the control plane by a commit; more are further flags.
func (a *onAWS) addsCluster(name string, more ...string) {
	a.t.Helper()
	a.addsClusterIn("dev", name, more...)
}

// addsClusterIn is addsCluster in another environment.
func (a *onAWS) addsClusterIn(environment, name string, more ...string) {
	a.t.Helper()
	a.ok(append([]string{
		"cluster", "add", name, "--flavour", "aws-kubeadm", "--environment", environment, "--set", "kubernetesVersion=" + kubernetesVersion,
		"--set", "region=" + a.aws.Region, "--set", "controlPlane.image=" + a.aws.Image, "--set", "controlPlane.replicas=1", "--commit",
	}, more...)...)
}

// oneWorker are the flags for a pool with a machine.
func (a *onAWS) oneWorker() []string {
	return []string{
		"--set", "pools[0].name=general", "--set", "pools[0].replicas=1", "--set", "pools[0].size=m7i.large", "--set",
		"pools[0].image=" + a.aws.Image,
	}
}

func (a *onAWS) declares(t *testing.T) {
	a.addsCluster("shop")
	want := map[string]int{
		"vpc": 1, "subnet": 6, "internet-gateway": 1, "nat-gateway": 3, "address": 3, "load-balancer": 1, "target-group": 1, "instance": 1,
	}
	eventually(t, "the cluster's infrastructure is in AWS", 6*time.Minute, func() string {
		have := kinds(a.aws.left(t))
		for kind, n := range want {
			if have[kind] < n {
				return fmt.Sprint(have)
			}
		}
		return ""
	})
	t.Logf("AWS has %v", kinds(a.aws.left(t)))
}

func (a *onAWS) looks(t *testing.T) {
	eventually(t, "the machine is made, and does not boot", 2*time.Minute, func() string {
		machines := &unstructured.UnstructuredList{}
		machines.SetAPIVersion("cluster.x-k8s.io/v1beta2")
		machines.SetKind("MachineList")
		if err := a.mgmt.List(t.Context(), machines, client.InNamespace("shop")); err != nil {
			return err.Error()
		}
		for _, m := range machines.Items {
			if phase, _, _ := unstructured.NestedString(m.Object, "status", "phase"); phase == "Provisioned" {
				return ""
			}
		}
		return fmt.Sprintf("%d machines", len(machines.Items))
	})
	for _, args := range [][]string{{"status"}, {"status", "shop"}, {"why", "shop"}} {
		r := a.fails(3, nil, args...)
		t.Logf("%s", r.stdout)
		if !strings.Contains(r.stdout, "shop") || strings.Contains(r.stdout, a.secrets[0]) {
			t.Errorf("it says:\n%s", r.stdout)
		}
	}
	why := decode[struct {
		Causes []struct {
			Object string `json:"object"`
			Remedy struct {
				ID string `json:"id"`
			} `json:"remedy"`
		} `json:"causes"`
	}](t, a.run("why", "shop", "-o", "json").stdout)
	if len(why.Causes) == 0 || !strings.HasPrefix(why.Causes[0].Object, "Machine shop/") || why.Causes[0].Remedy.ID != "bootstrap-failed" {
		t.Errorf("why says %+v", why)
	}
	if r := a.ok("credentials"); !strings.Contains(r.stdout, "AWS_B64ENCODED_CREDENTIALS") {
		t.Errorf("credentials says:\n%s", r.stdout)
	}
}

// renews gives init other credentials: the running provider has to use them, and no others.
func (a *onAWS) renews(t *testing.T) {
	a.gives(t, secondKey)
	r := a.ok("init", "--bundle", os.Getenv(envBundle))
	t.Logf("%s%s", r.stdout, r.stderr)
	eventually(t, "the provider uses the second key", 3*time.Minute, func() string {
		if n := a.aws.uses(t, secondKey); n == 0 {
			return "not once"
		}
		return ""
	})
}

// keepsSecrets looks for every credential in all that fleetctl keeps, logs, commits, tells others and has in its processes' arguments.
func (a *onAWS) keepsSecrets(t *testing.T) {
	a.canaries.inSupportBundle(t)
	a.canaries.areHidden(t, true, a.mgmt)
}

// unpackBundle writes what is in a support bundle to a folder.
func unpackBundle(t *testing.T, bundle string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xzf", bundle, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "support-bundle", "README.txt"))
	if err != nil || len(readme) == 0 {
		t.Fatalf("there is nothing in the bundle: %v", err)
	}
	return dir
}

func (a *onAWS) tearsDown(t *testing.T) {
	r := decode[struct {
		Leftovers []string `json:"leftovers"`
		Orphaned  []string `json:"orphaned"`
		NotAsked  []string `json:"notAsked"`
	}](t, a.ok("teardown", "--delete-clusters", "--yes", "--timeout", "30m", "-o", "json").stdout)
	// No machine ever booted: nobody there can say what was made from inside. The clouds were asked, and say that there is nothing.
	slices.Sort(r.NotAsked)
	if len(r.Leftovers) > 0 || len(r.Orphaned) > 0 || len(r.NotAsked) != 2 || !strings.HasPrefix(r.NotAsked[0], "branch/branch: ") ||
		!strings.HasPrefix(r.NotAsked[1], "shop/shop: ") {
		t.Errorf("it says: %+v", r)
	}
	if left := slices.Concat(a.aws.left(t), a.aws.leftIn(t, branchAccount)); len(left) > 0 {
		t.Errorf("AWS has still %v", left)
	}
}
