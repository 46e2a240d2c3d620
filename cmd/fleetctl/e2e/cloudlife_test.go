//go:build e2e && clouds

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestAWSLife: a whole life of a cluster in AWS whose machines boot: from one commit to Available, scaled by commits, machines replaced, and removed by a
// commit, which leaves the account empty.
func TestAWSLife(t *testing.T) {
	a := newOnAWSThatBoots(t, "e2e-life")
	for _, step := range []struct {
		name string
		play func(t *testing.T)
	}{
		{"init with the AWS provider", a.inits},
		{"one commit makes a cluster that is Available", a.makesCluster},
		{"a commit scales its workers", a.scales},
		{"cluster remove leaves the account empty", a.removes},
	} {
		if !a.step(step.name, step.play) {
			return
		}
	}
}

func (a *onAWS) makesCluster(t *testing.T) {
	a.ok("cluster", "add", "shop", "--flavour", "aws-kubeadm", "--environment", "dev", "--set", "kubernetesVersion="+kubernetesVersion,
		"--set", "region="+a.aws.Region, "--set", "controlPlane.image="+a.aws.Image, "--set", "controlPlane.replicas=1",
		"--set", "pools[0].name=general", "--set", "pools[0].replicas=1", "--set", "pools[0].size=m7i.large", "--set", "pools[0].image="+a.aws.Image, "--commit")
	a.available("shop", 8*time.Minute)
	a.hasMachines(t, 1, 1)
	t.Log(a.run("status", "shop").stdout)
}

func (a *onAWS) scales(t *testing.T) {
	a.ok("pool", "scale", "shop", "general", "--replicas", "3", "--commit")
	a.hasMachines(t, 1, 3)
}

// hasMachines waits until the cluster has so many machines, all of them Ready, and requires that these are the nodes of the cluster and the instances in AWS.
func (a *onAWS) hasMachines(t *testing.T, controlPlane, workers int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d and %d machines are Ready", controlPlane, workers), 6*time.Minute, func() string {
		st, _ := a.status()
		if len(st.Clusters) != 1 {
			return fmt.Sprintf("%+v", st.Problems)
		}
		have := map[bool]int{}
		for _, m := range st.Clusters[0].Machines {
			if !m.Ready {
				return fmt.Sprintf("%+v", m)
			}
			have[m.ControlPlane]++
		}
		if have[true] != controlPlane || have[false] != workers || !st.Clusters[0].Available {
			return fmt.Sprintf("%d and %d, %+v", have[true], have[false], st.Problems)
		}
		return ""
	})
	nodes := &corev1.NodeList{}
	if err := a.workload("shop").List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	var inCluster []string
	for _, node := range nodes.Items {
		inCluster = append(inCluster, node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:])
	}
	var inAWS []string
	for _, one := range a.aws.left(t) {
		if id, ok := strings.CutPrefix(one, "instance/"); ok {
			inAWS = append(inAWS, id)
		}
	}
	slices.Sort(inCluster)
	slices.Sort(inAWS)
	if !slices.Equal(inCluster, inAWS) || len(inAWS) != controlPlane+workers {
		t.Errorf("the cluster's nodes are %v, and AWS has %v", inCluster, inAWS)
	}
}

func (a *onAWS) removes(t *testing.T) {
	a.ok("cluster", "remove", "shop", "--commit", "--wait", "--timeout", "3m")
	a.ok("cluster", "remove", "shop", "--yes", "--commit", "--wait", "--timeout", "6m")
	if left := a.aws.left(t); len(left) > 0 {
		t.Errorf("AWS has still %v", left)
	}
}
