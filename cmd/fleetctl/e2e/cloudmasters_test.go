//go:build e2e && clouds

package e2e

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/cmd/fleetctl/internal/traces"
	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// mastersOfClouds is a fleet whose root makes a management cluster in each of two clouds. Each of these has the provider of its cloud
// alone, credentials of its own, and a cluster beside the one that it runs on.
type mastersOfClouds struct {
	*fleet
	aws     *onAWS
	vsphere *onVSphere
	server  *gittest.HTTPS
	harbour *master
	works   *master
	// How often the credentials of root were used by the time when it was gone.
	keyUses, logins int
}

// master is one of the two.
type master struct {
	name, cluster, environment, provider string
	// namespace of its provider.
	namespace string
	// own are its credentials, and those of the identities of its clusters.
	own []string
	// holds are the Secrets that may have them.
	holds  []kube.Key
	client *kube.Client
}

// The identities in vSphere, of the management cluster and of its clusters, and their Secrets.
const (
	regionsIdentity, regionsUser = "regions", "regions-user"
	plantsIdentity, plantsUser   = "plants", "plants-user"
)

// TestAWSAndVSphereMasters: an ephemeral root makes the management clusters of two clouds, one command for each, and goes with the second.
// Each goes on in its cloud alone, with credentials of its own: it has neither the provider of the other cloud nor a byte of the keys of
// that, or of root's. In the end a root that is made anew takes both back and down, which leaves nothing in either cloud.
func TestAWSAndVSphereMasters(t *testing.T) {
	m := newMastersOfClouds(t, "e2e-top")
	m.plays([]act{
		{"a fleet repo with a root, a management cluster in each of two clouds, and a cluster of each", m.declares},
		{"one command makes root and its two clusters, and the one in AWS stands alone", m.bootstrapsHarbour},
		{"the same command for vSphere ends root", m.bootstrapsWorks},
		{"each makes its cluster, and nothing was made twice", m.makesClusters},
		{"neither has anything of the other cloud, nor of root's credentials", m.keepsApart},
		{"a commit scales each in its cloud, with credentials of its own", m.scales},
		{"status and credentials tell of both without root", m.looks},
		{"each takes its cluster down", m.removes},
		{"a root made anew takes both back and down, which leaves nothing in either cloud", m.undoes},
	})
}

func newMastersOfClouds(t *testing.T, name string) *mastersOfClouds {
	t.Helper()
	store := registry(t)
	aws := newAWS(t)
	b := newBooter(t, aws.machines, store, map[string]string{"AWS_ENDPOINT_URL": aws.URL, "AWS_EC2_METADATA_SERVICE_ENDPOINT": aws.URL})
	m := &mastersOfClouds{vsphere: newVSphere(t, store), server: gittest.NewHTTPS(t, gittest.Options{})}
	m.aws = onSimulator(t, aws, name)
	m.aws.booter = b
	m.fleet = m.aws.fleet
	m.vsphere.fleet = m.fleet
	m.harbour = &master{
		name: "harbour", cluster: inAWS, environment: "shops", provider: "aws", namespace: capa.Namespace, holds: []kube.Key{capaCredentials},
	}
	m.works = &master{
		name: "works", cluster: inVSphere, environment: "plants", provider: "vsphere", namespace: "capv-system",
		own: []string{m.vsphere.vsphere.Second.Password},
		holds: []kube.Key{
			{Namespace: "capv-system", Name: "capv-manager-bootstrap-credentials"},
			{Namespace: "capv-system", Name: regionsUser},
			{Namespace: "capv-system", Name: plantsUser},
		},
	}
	before := len(m.aws.secrets)
	t.Setenv("HARBOUR_AWS", m.aws.profile(secondKey))
	m.harbour.own = slices.Clone(m.aws.secrets[before:])
	t.Setenv("WORKS_USERNAME", m.vsphere.vsphere.Second.Username)
	t.Setenv("WORKS_PASSWORD", m.vsphere.vsphere.Second.Password)
	m.aws.canaries.given = func(*testing.T) []string { return m.all() }
	m.aws.canaries.secrets = slices.Concat(m.harbour.holds, m.works.holds)
	m.aws.canaries.more = []string{m.server.Dir}
	return m
}

// all are the credentials of all three.
func (m *mastersOfClouds) all() []string {
	return append(slices.Clone(m.aws.secrets), m.vsphere.vsphere.Password, m.vsphere.vsphere.Second.Password)
}

func (m *mastersOfClouds) declares(*testing.T) {
	m.token, m.fluxToken = m.server.Token, m.server.ReadToken
	m.git("init", "-q", "-b", "main")
	m.commit("The authority of the Git server", map[string]string{"ca.pem": string(m.server.CA)})
	m.writes("fleet.yaml", fmt.Sprintf(`apiVersion: fleetctl.dev/v1alpha1
kind: Fleet
metadata: {name: masters}
spec:
  git: {url: "%s", caFile: ca.pem, interval: 5s}
  environments: [{name: regions}, {name: shops}, {name: plants}]
  managementClusters:
  - name: %s
    kubernetesVersion: %s
    host: {type: embedded}
    cloud: root
    providers: [{name: aws}, {name: vsphere}]
  - name: harbour
    parent: %[2]s
    cloud: harbour
    providers:
    - name: aws
      variables:
      - {name: AWS_B64ENCODED_CREDENTIALS, env: HARBOUR_AWS}
  - name: works
    parent: %[2]s
    cloud: works
    providers:
    - name: vsphere
      variables:
      - {name: VSPHERE_USERNAME, env: WORKS_USERNAME}
      - {name: VSPHERE_PASSWORD, env: WORKS_PASSWORD}
`, m.server.URL, m.name, kubernetesVersion))
	m.ok("init", "--scaffold", "--management", m.name)
	for _, management := range []string{m.name, "works"} { // which has the cluster that it runs on, after the hand-over
		m.addsIdentity(management, regionsIdentity, "regions", regionsUser)
	}
	m.addsIdentity("works", plantsIdentity, "plants", plantsUser)
	v := m.vsphere.vsphere
	inVCenter := func(environment, name, management, identity, endpoint string) {
		m.ok(append([]string{
			"cluster", "add", name, "--management", management, "--flavour", "vsphere-kubeadm", "--environment", environment, "--flux", "none",
			"--commit",
		}, m.vsphere.values(identity, endpoint)...)...)
	}
	worker := append(m.aws.oneWorker(), "--flux", "none")
	m.aws.addsClusterIn("regions", "harbour", append(worker, "--management", m.name)...)
	m.aws.addsClusterIn("shops", inAWS, append(worker, "--management", "harbour")...)
	inVCenter("regions", "works", m.name, regionsIdentity, v.Endpoint)
	inVCenter("plants", inVSphere, "works", plantsIdentity, v.SecondEndpoint)
	m.ok("validate")
}

// addsIdentity declares an identity of vSphere, and its Secret: encrypted, in the folder of its management cluster.
func (m *mastersOfClouds) addsIdentity(management, name, environment, secret string) {
	m.t.Helper()
	m.ok("identity", "add", name, "--management", management, "--provider", "vsphere", "--environment", environment, "--secret", secret,
		"--commit")
	cloud := management
	if management == m.name {
		cloud = "root"
	}
	password := path.Join(m.home, "password")
	if err := os.WriteFile(password, []byte(m.vsphere.vsphere.Second.Password), 0o600); err != nil {
		m.t.Fatal(err)
	}
	defer os.Remove(password)
	m.ok("secret", "encrypt", "providers/"+cloud+"/v1/mgmt/identities/"+secret+".sops.yaml", "--namespace", "capv-system", "--name", secret,
		"--from-literal", "username="+m.vsphere.vsphere.Second.Username, "--from-file", "password="+password, "--commit")
}

// bootstraps is the command of a pipeline for one of the two.
func (m *mastersOfClouds) bootstraps(t *testing.T, one *master) masterResult {
	t.Helper()
	r := decode[masterResult](t, m.ok("bootstrap", "--environment", one.environment, "--bundle", os.Getenv(envBundle),
		"--clusters-timeout", "45m", "-o", "json").stdout)
	if r.Outcome != "ready" || !r.Alone || !slices.Equal(r.HandedOver, []string{"regions/" + one.name}) {
		t.Errorf("it says %+v", r)
	}
	one.client = m.client(r.Kubeconfig)
	m.server.File(t, "main", "providers/"+one.name+"/v1/clusters/regions/"+one.name+"/cluster.yaml")
	return r
}

func (m *mastersOfClouds) bootstrapsHarbour(t *testing.T) {
	r := m.bootstraps(t, m.harbour)
	if r.ParentGone || !slices.Equal(r.ParentKeeps, []string{"works/works"}) {
		t.Errorf("of root it says %+v", r)
	}
}

func (m *mastersOfClouds) bootstrapsWorks(t *testing.T) {
	r := m.bootstraps(t, m.works)
	if !r.ParentGone || len(r.ParentKeeps) > 0 {
		t.Errorf("of root it says %+v", r)
	}
	if left := processesOf(t, m.base); len(left) > 0 { // what runs on the machines has its programs from elsewhere
		t.Errorf("of root there is still\n%s", told(left))
	}
	m.keyUses, m.logins = m.aws.aws.uses(t, firstKey), m.vsphere.vsphere.logins(t, m.vsphere.vsphere.Username)
	if m.keyUses == 0 || m.logins == 0 {
		t.Errorf("root has used its key %d times, and its user %d times", m.keyUses, m.logins)
	}
	m.aws.canaries.areHidden(t, true, m.harbour.client, m.works.client)
}

// makesClusters waits for both clusters, and requires that each cloud has made what two clusters are made of, deleted things included.
func (m *mastersOfClouds) makesClusters(t *testing.T) {
	m.have(t, 1)
	made := m.aws.aws.made(t)
	for call, n := range map[string]int{
		"CreateVpc": 2, "CreateSubnet": 12, "CreateInternetGateway": 2, "AllocateAddress": 6, "CreateNatGateway": 6, "CreateRouteTable": 12,
		"CreateRoute": 12, "CreateSecurityGroup": 8, "CreateLoadBalancer": 2, "CreateTargetGroup": 2, "CreateListener": 2, "RunInstances": 4,
	} {
		if made[call] != n {
			t.Errorf("%s has made something %d times, and not %d", call, made[call], n)
		}
	}
}

// have waits until each management cluster has its own cluster with a worker, and the other one with so many, all Ready. Each cloud has
// these machines and never had another one.
func (m *mastersOfClouds) have(t *testing.T, workers int) {
	t.Helper()
	for _, one := range []*master{m.harbour, m.works} {
		want := map[string]int{one.name: 2, one.cluster: workers + 1}
		eventually(t, fmt.Sprintf("%s has machines: %v", one.name, want), 8*time.Minute, func() string {
			st, code := m.status("--management", one.name)
			if code != 0 || len(st.Clusters) != len(want) {
				return fmt.Sprintf("exit %d, %d clusters, %+v", code, len(st.Clusters), st.Problems)
			}
			for _, c := range st.Clusters {
				ready := 0
				for _, machine := range c.Machines {
					if machine.Ready {
						ready++
					}
				}
				if !c.Available || ready != want[c.Name] || len(c.Machines) != ready {
					return fmt.Sprintf("%s has %d machines, of which %d are Ready", c.Name, len(c.Machines), ready)
				}
			}
			return ""
		})
	}
	if made := m.aws.aws.made(t)["RunInstances"]; made != workers+3 {
		t.Errorf("AWS has made %d instances", made)
	}
	if there, err := m.vsphere.vsphere.machines(t.Context()); err != nil || len(there) != workers+3 || len(m.vsphere.running(t)) != workers+3 {
		t.Errorf("vCenter has had the machines %v, %v", there, err)
	}
}

// keepsApart looks into all objects of both. It has to find the credentials of each where they have to be, and no others anywhere.
func (m *mastersOfClouds) keepsApart(t *testing.T) {
	for _, one := range []*master{m.harbour, m.works} {
		others := slices.DeleteFunc(m.all(), func(s string) bool { return slices.Contains(one.own, s) })
		if len(others) < 3 || len(one.own) == 0 {
			t.Fatalf("%s has %d credentials, and the others %d", one.name, len(one.own), len(others))
		}
		(&canaries{}).inObjects(t, traces.Of(others...), one.client)
		if (&canaries{secrets: one.holds}).inObjects(t, traces.Of(one.own...), one.client) == 0 {
			t.Errorf("%s has no credentials of its own", one.name)
		}
		var infrastructure []string
		for _, p := range listed(t, one.client, "clusterctl.cluster.x-k8s.io/v1alpha3", "Provider") {
			if kind, _, _ := unstructured.NestedString(p.Object, "type"); kind == "InfrastructureProvider" {
				name, _, _ := unstructured.NestedString(p.Object, "providerName")
				infrastructure = append(infrastructure, name)
			}
		}
		if !slices.Equal(infrastructure, []string{one.provider}) {
			t.Errorf("%s has the providers %v", one.name, infrastructure)
		}
		for _, other := range []*master{m.harbour, m.works} {
			err := one.client.Get(t.Context(), kube.Key{Name: other.namespace}, &corev1.Namespace{})
			if there := err == nil; there != (one == other) || err != nil && !kube.IsAbsent(err) {
				t.Errorf("%s has the namespace %s: %t, %v", one.name, other.namespace, there, err)
			}
			for _, crd := range listed(t, one.client, "apiextensions.k8s.io/v1", "CustomResourceDefinition") {
				if crd.GetLabels()["cluster.x-k8s.io/provider"] == "infrastructure-"+other.provider && one != other {
					t.Errorf("%s has %s", one.name, crd.GetName())
				}
			}
		}
	}
}

// listed are all objects of a kind.
func listed(t *testing.T, c *kube.Client, apiVersion, kind string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(kind + "List")
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (m *mastersOfClouds) scales(t *testing.T) {
	own := m.aws.aws.uses(t, secondKey)
	for _, one := range []*master{m.harbour, m.works} {
		m.ok("pool", "scale", one.cluster, "general", "--replicas", "2", "--push")
	}
	m.have(t, 2)
	if now := m.aws.aws.uses(t, secondKey); now <= own {
		t.Errorf("harbour has used its key %d times, and %d times before", now, own)
	}
	if m.vsphere.vsphere.logins(t, m.vsphere.vsphere.Second.Username) == 0 {
		t.Error("works has not used its user")
	}
	if now := m.aws.aws.uses(t, firstKey); now != m.keyUses {
		t.Errorf("the key of root was used %d times, and %d times before: somebody has it still", now, m.keyUses)
	}
	if now := m.vsphere.vsphere.logins(t, m.vsphere.vsphere.Username); now != m.logins {
		t.Errorf("the user of root has logged in %d times, and %d times before: somebody has its password still", now, m.logins)
	}
}

func (m *mastersOfClouds) looks(t *testing.T) {
	t.Log(m.ok("status", "--all").stdout)
	for _, one := range []*master{m.harbour, m.works} {
		for _, args := range [][]string{{"credentials"}, {"credentials", "--management", one.name}} {
			said := m.ok(args...).stdout
			if !strings.Contains(said, one.name) || strings.Contains(said, m.name+" could not be asked") {
				t.Errorf("%v says:\n%s", args, said)
			}
		}
	}
	t.Log(m.run("credentials").stdout)
}

func (m *mastersOfClouds) removes(t *testing.T) {
	for _, more := range [][]string{{"--timeout", "9m"}, {"--yes", "--timeout", "18m"}} {
		for _, one := range []*master{m.harbour, m.works} {
			m.ok(append([]string{"cluster", "remove", one.cluster, "--push", "--wait"}, more...)...)
		}
	}
	hasEach(t, kinds(m.aws.aws.left(t)), map[string]int{"vpc": 1, "load-balancer": 1, "instance": 2})
	if machines := m.vsphere.running(t); len(machines) != 2 {
		t.Errorf("vCenter has the machines %v", machines)
	}
}

// undoes takes both down by a management cluster beside them: none can delete the machines that it runs on itself.
func (m *mastersOfClouds) undoes(t *testing.T) {
	m.ok("init", "--management", m.name, "--bundle", os.Getenv(envBundle), "--timeout", "30m")
	for _, one := range []*master{m.harbour, m.works} {
		m.ok("cluster", "transfer", one.name, "--to", m.name, "--push", "--yes")
	}
	hasEach(t, kinds(m.aws.aws.left(t)), map[string]int{"vpc": 1, "load-balancer": 1, "instance": 2})
	m.ok("teardown", "--management", m.name, "--delete-clusters", "--yes", "--timeout", "30m")
	if left := slices.Concat(m.aws.aws.left(t), m.vsphere.vsphere.left(t)); len(left) > 0 {
		t.Errorf("the clouds have still %v", left)
	}
}
