//go:build e2e && clouds

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAWSLife: a whole life of a cluster in AWS whose machines boot: from one commit to Available, scaled by a commit, and removed by a
// commit, which leaves the account empty.
func TestAWSLife(t *testing.T) {
	a := newOnAWSThatBoots(t, "e2e-life")
	a.plays([]act{
		{"init with the AWS provider", a.inits},
		{"one commit makes a cluster that is Available", a.makesCluster},
		{"a commit scales its workers", a.scales},
		{"cluster remove leaves the account empty", a.removes},
	})
}

// TestAWSDayTwo: what such a cluster meets later: its machines are replaced, one of them is lost, and commits wait while it is paused.
func TestAWSDayTwo(t *testing.T) {
	a := newOnAWSThatBoots(t, "e2e-day-two")
	a.plays([]act{
		{"init with the AWS provider", a.inits},
		{"one commit makes a cluster that is Available", a.makesCluster},
		{"a commit scales its workers", a.scales},
		{"machines of another size take the place of the old ones", a.rollsOut},
		{"a machine that is ended behind our back is replaced", a.losesMachine},
		{"what is paused stays until it is resumed", a.pauses},
		{"cluster remove leaves the account empty", a.removes},
	})
}

func (a *onAWS) makesCluster(t *testing.T) {
	a.addsCluster("shop", a.oneWorker()...)
	a.available("shop", 8*time.Minute)
	a.hasMachines(t, 1, 1)
	t.Log(a.run("status", "shop").stdout)
}

func (a *onAWS) scales(t *testing.T) {
	a.ok("pool", "scale", "shop", "general", "--replicas", "3", "--commit")
	a.hasMachines(t, 1, 3)
}

const smaller, larger = "m7i.large", "m7i.xlarge"

// rollsOut changes the size of all machines: those of the control plane take etcd's data over from each other.
func (a *onAWS) rollsOut(t *testing.T) {
	shop := a.workload("shop")
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}, Data: map[string]string{"word": "before"}}
	if err := shop.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	before := len(a.booter.events(0))
	var file string
	for _, name := range lines(a.git("grep", "-l", "size: "+smaller)) {
		file = name
	}
	content, err := os.ReadFile(filepath.Join(a.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(content), "size: "+smaller, "size: "+larger)
	// The control plane has the chart's size, which stands in no file.
	changed = strings.Replace(changed, "controlPlane:\n", "controlPlane:\n      size: "+larger+"\n", 1)
	a.ok("validate", "--offline")
	a.commit("Give shop larger machines", map[string]string{file: changed})
	eventually(t, "all machines are large", 6*time.Minute, func() string {
		all, err := a.aws.machines(t.Context())
		if err != nil {
			return err.Error()
		}
		for _, m := range all {
			if m.Running && m.Type != larger {
				return m.ID + " is " + m.Type
			}
		}
		return ""
	})
	a.hasMachines(t, 1, 3)
	// None went before there was another one in its place.
	least := map[bool]int{true: 1, false: 3}
	ended := 0
	for _, event := range a.booter.events(before) {
		if event.ended {
			ended++
			if event.nodes < least[event.controlPlane] {
				t.Errorf("%s ended when there were %d others", event.ID, event.nodes)
			}
		}
	}
	if ended != 4 {
		t.Errorf("%d machines ended", ended)
	}
	if err := shop.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil || kept.Data["word"] != "before" {
		t.Errorf("what was in the cluster is %v, %v", kept.Data, err)
	}
}

// losesMachine ends a worker in the cloud: one of three, as the chart's health check mends nothing where more than 40 % are unhealthy.
func (a *onAWS) losesMachine(t *testing.T) {
	nodes := &corev1.NodeList{}
	if err := a.workload("shop").List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	lost := ""
	for _, node := range nodes.Items {
		if _, is := node.Labels[controlPlaneRole]; !is {
			lost = node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:]
		}
	}
	before := len(a.booter.events(0))
	ask[bool](t, a.aws.URL+"/_test/end/"+lost)
	eventually(t, "another machine takes its place", 6*time.Minute, func() string {
		var ended, booted bool
		for _, event := range a.booter.events(before) {
			ended = ended || event.ended && event.ID == lost
			booted = booted || !event.ended
		}
		if !ended || !booted {
			return fmt.Sprintf("%s ended: %v, another booted: %v", lost, ended, booted)
		}
		return ""
	})
	a.hasMachines(t, 1, 3)
}

// pauses keeps a commit from the cluster, and lets it through.
func (a *onAWS) pauses(t *testing.T) {
	a.ok("cluster", "pause", "shop", "--commit")
	a.ok("pool", "scale", "shop", "general", "--replicas", "1", "--commit")
	head := a.git("rev-parse", "HEAD")
	eventually(t, "Flux has applied the commits", 3*time.Minute, func() string {
		if r := a.run("status", "shop"); !strings.Contains(r.stdout, "HelmRelease shop/shop") ||
			!strings.Contains(r.stdout, "main@sha1:"+head[:8]) {
			return r.stdout
		}
		return ""
	})
	if r := a.run("status", "shop"); !strings.Contains(r.stdout, "it is suspended") {
		t.Errorf("status does not say that it is suspended:\n%s", r.stdout)
	}
	a.hasMachines(t, 1, 3)
	a.ok("cluster", "resume", "shop", "--commit")
	a.hasMachines(t, 1, 1)
}

// hasMachines waits until the cluster has so many machines, all of them Ready, and requires that these are the nodes of the cluster and the
// instances in AWS.
func (a *onAWS) hasMachines(t *testing.T, controlPlane, workers int) {
	t.Helper()
	a.hasNodes(t, controlPlane, workers, func() (ids []string) {
		for _, one := range a.aws.left(t) {
			if id, ok := strings.CutPrefix(one, "instance/"); ok {
				ids = append(ids, id)
			}
		}
		return ids
	})
}

// hasNodes is the same of any cloud, which says by their ids what it has.
func (f *fleet) hasNodes(t *testing.T, controlPlane, workers int, inCloud func() []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d and %d machines are Ready", controlPlane, workers), 6*time.Minute, func() string {
		st, _ := f.status()
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
	if err := f.workload("shop").List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	var inCluster []string
	for _, node := range nodes.Items {
		inCluster = append(inCluster, node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:])
	}
	there := inCloud()
	slices.Sort(inCluster)
	slices.Sort(there)
	if !slices.Equal(inCluster, there) || len(there) != controlPlane+workers {
		t.Errorf("the cluster's nodes are %v, and the cloud has %v", inCluster, there)
	}
}

func (a *onAWS) removes(t *testing.T) {
	a.ok("cluster", "remove", "shop", "--commit", "--wait", "--timeout", "9m")
	a.ok("cluster", "remove", "shop", "--yes", "--commit", "--wait", "--timeout", "18m")
	if left := a.aws.left(t); len(left) > 0 {
		t.Errorf("AWS has still %v", left)
	}
}
