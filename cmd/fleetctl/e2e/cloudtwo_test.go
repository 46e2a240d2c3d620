//go:build e2e && clouds

package e2e

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/gitrepo/gittest"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// inTwoClouds is a fleet with one management cluster, on this machine, and a cluster in each of two clouds, on whose machines a Flux of its
// own runs.
type inTwoClouds struct {
	*fleet
	aws     *onAWS
	vsphere *onVSphere
	server  *gittest.HTTPS
}

// The cluster in AWS, and the one in vSphere.
const inAWS, inVSphere = "shop", "plant"

// TestAWSAndVSphere: one management cluster has a cluster in each of two clouds. From commits to Ready, with a feature and a tenant applied
// by the Flux of each; one commit each scales them, and one each removes them, which leaves nothing in either cloud.
func TestAWSAndVSphere(t *testing.T) {
	c := newInTwoClouds(t, "e2e-both")
	c.plays([]act{
		{"a fleet repo with a feature, a tenant and an identity for vSphere", c.declares},
		{"init with both providers", c.inits},
		{"a commit for each cloud makes a cluster that is Ready with its own Flux", c.makesClusters},
		{"each has the feature and the tenant", c.hasContents},
		{"a commit scales each in its cloud", c.scales},
		{"cluster remove leaves nothing in either cloud", c.removes},
	})
}

func newInTwoClouds(t *testing.T, name string) *inTwoClouds {
	t.Helper()
	store := registry(t)
	aws := newAWS(t)
	b := newBooter(t, aws.machines, store, nil)
	c := &inTwoClouds{vsphere: newVSphere(t, store), server: gittest.NewHTTPS(t, gittest.Options{})}
	c.aws = onSimulator(t, aws, name)
	c.aws.booter = b
	c.fleet = c.aws.fleet
	c.vsphere.fleet = c.fleet
	return c
}

func (c *inTwoClouds) declares(t *testing.T) {
	c.servedBy(c.server, "aws,vsphere", "")
	c.ok("init", "--scaffold")
	c.ok("feature", "add", "hello", "--commit")
	c.commit("say hello", hello("hello"))
	c.ok("feature", "enable", "hello", "--commit")
	c.ok("tenant", "add", "buyers", "--commit")
	c.vsphere.declaresIdentity(t, inVSphere)
}

func (c *inTwoClouds) inits(t *testing.T) {
	made := decode[initResult](t, c.ok("init", "--bundle", os.Getenv(envBundle), "--timeout", "30m", "-o", "json").stdout)
	c.aws.mgmt = c.client(made.Kubeconfig)
	c.vsphere.mgmt = c.aws.mgmt
	c.vsphere.givesPassword(t)
}

func (c *inTwoClouds) makesClusters(t *testing.T) {
	c.aws.addsCluster(inAWS, append(c.aws.oneWorker(), "--flux", "own", "--push")...)
	c.vsphere.addsCluster(inVSphere, "--flux", "own", "--push")
	eventually(t, "both clusters are Ready with their own Flux", 12*time.Minute, func() string {
		st, code := c.status()
		if code != 0 || len(st.Clusters) != 2 {
			return fmt.Sprintf("exit %d, %d clusters, %+v", code, len(st.Clusters), st.Problems)
		}
		for _, one := range st.Clusters {
			if !one.Available || !one.Ready || !one.Flux.Ready {
				return fmt.Sprintf("%+v", one)
			}
		}
		return ""
	})
	c.hasWorkers(t, 1, 1)
	t.Log(c.run("status").stdout)
}

// hasContents looks into both clusters: their own Flux has the words of the feature, and the roles of the tenant.
func (c *inTwoClouds) hasContents(t *testing.T) {
	for _, name := range []string{inAWS, inVSphere} {
		workload := c.workload(name)
		word := &corev1.ConfigMap{}
		if err := workload.Get(t.Context(), kube.Key{Namespace: "hello", Name: "word"}, word); err != nil || word.Data["word"] != "hello" {
			t.Errorf("the feature of %s says %v, %v", name, word.Data, err)
		}
		roles := &rbacv1.RoleBindingList{}
		if err := workload.List(t.Context(), roles, client.InNamespace("buyers")); err != nil || len(roles.Items) == 0 {
			t.Errorf("the tenant of %s has the roles %v, %v", name, roles.Items, err)
		}
		flux := &corev1.NamespaceList{}
		if err := workload.List(t.Context(), flux, client.MatchingFields{"metadata.name": "flux-system"}); err != nil || len(flux.Items) != 1 {
			t.Errorf("%s has no Flux of its own: %v", name, err)
		}
	}
}

func (c *inTwoClouds) scales(t *testing.T) {
	c.ok("pool", "scale", inAWS, "general", "--replicas", "2", "--push")
	c.ok("pool", "scale", inVSphere, "general", "--replicas", "3", "--push")
	c.hasWorkers(t, 2, 3)
}

// hasWorkers waits until each cluster has a machine of the control plane and so many workers, all Ready, and requires that each cloud has
// these machines and no other.
func (c *inTwoClouds) hasWorkers(t *testing.T, aws, vsphere int) {
	t.Helper()
	want := map[string]int{inAWS: aws, inVSphere: vsphere}
	eventually(t, fmt.Sprintf("the clusters have %v workers", want), 6*time.Minute, func() string {
		st, code := c.status()
		if code != 0 || len(st.Clusters) != len(want) {
			return fmt.Sprintf("exit %d, %d clusters, %+v", code, len(st.Clusters), st.Problems)
		}
		for _, one := range st.Clusters {
			ready := 0
			for _, m := range one.Machines {
				if m.Ready {
					ready++
				}
			}
			if ready != want[one.Name]+1 || len(one.Machines) != ready {
				return fmt.Sprintf("%s has %d machines, of which %d are Ready", one.Name, len(one.Machines), ready)
			}
		}
		return ""
	})
	if n := kinds(c.aws.aws.left(t))["instance"]; n != aws+1 {
		t.Errorf("AWS has %d instances", n)
	}
	if machines := c.vsphere.running(t); len(machines) != vsphere+1 {
		t.Errorf("vCenter has the machines %v", machines)
	}
}

func (c *inTwoClouds) removes(t *testing.T) {
	for _, name := range []string{inAWS, inVSphere} {
		c.ok("cluster", "remove", name, "--push", "--wait", "--timeout", "9m")
	}
	for _, name := range []string{inAWS, inVSphere} {
		c.ok("cluster", "remove", name, "--yes", "--push", "--wait", "--timeout", "18m")
	}
	if left := slices.Concat(c.aws.aws.left(t), c.vsphere.vsphere.left(t)); len(left) > 0 {
		t.Errorf("the clouds have still %v", left)
	}
	c.ok("teardown", "--yes")
}
