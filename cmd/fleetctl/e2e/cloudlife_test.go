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
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
		{"no credential is anywhere", a.keepsSecrets},
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
		{"a newer Kubernetes comes to the control plane, and then to the workers", a.upgradesKubernetes},
		{"a machine that is ended behind our back is replaced", a.losesMachine},
		{"spot machines that AWS takes back, all at once, are replaced", a.losesSpotMachines},
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
	a.replaced(t, before, 1, 3)
	if err := shop.Get(t.Context(), client.ObjectKeyFromObject(kept), kept); err != nil || kept.Data["word"] != "before" {
		t.Errorf("what was in the cluster is %v, %v", kept.Data, err)
	}
}

// replaced requires of what happened after the first so many events that so many machines ended, and none of them before another one was in
// its place: the cluster has one machine of the control plane and three workers.
func (a *onAWS) replaced(t *testing.T, after, controlPlane, workers int) {
	t.Helper()
	least, ended := map[bool]int{true: 1, false: 3}, map[bool]int{}
	for _, event := range a.booter.events(after) {
		if !event.ended {
			continue
		}
		ended[event.controlPlane]++
		if event.nodes < least[event.controlPlane] {
			t.Errorf("%s ended when there were %d others", event.ID, event.nodes)
		}
	}
	if ended[true] != controlPlane || ended[false] != workers {
		t.Errorf("%d machines of the control plane ended and %d workers, not %d and %d", ended[true], ended[false], controlPlane, workers)
	}
}

// upgradesKubernetes takes the two steps of the documentation. Workers keep their version until the control plane has the new one.
func (a *onAWS) upgradesKubernetes(t *testing.T) {
	before := len(a.booter.events(0))
	upgrade := []string{"cluster", "upgrade", "shop", "--version", newerVersion, "--commit"}
	a.ok(append(upgrade, "--set", "controlPlane.image="+a.aws.NewerImage)...)
	a.hasVersions(t, newerVersion, kubernetesVersion)
	a.hasMachines(t, 1, 3) // pools wait for the end of the old machine, too
	a.replaced(t, before, 1, 0)
	before = len(a.booter.events(0))
	a.ok(append(upgrade, "--set", "pools[0].image="+a.aws.NewerImage)...)
	a.hasVersions(t, newerVersion, newerVersion)
	a.replaced(t, before, 0, 3)
	a.hasMachines(t, 1, 3)
	if r := a.ok(upgrade...); !strings.Contains(r.stdout+r.stderr, "Nothing to do") {
		t.Errorf("an upgrade to the version that it has says:\n%s%s", r.stdout, r.stderr)
	}
}

// hasVersions waits until each node of the cluster runs the version of its kind, and the old ones are gone.
func (a *onAWS) hasVersions(t *testing.T, controlPlane, workers string) {
	t.Helper()
	eventually(t, "the control plane runs "+controlPlane+" and workers "+workers, 8*time.Minute, func() string {
		nodes := &corev1.NodeList{}
		if err := a.workload("shop").List(t.Context(), nodes); err != nil {
			return err.Error()
		}
		have := map[bool]map[string]int{true: {}, false: {}}
		for _, node := range nodes.Items {
			_, is := node.Labels[controlPlaneRole]
			have[is][node.Status.NodeInfo.KubeletVersion]++
		}
		if len(have[true]) != 1 || have[true][controlPlane] != 1 || len(have[false]) != 1 || have[false][workers] != 3 {
			return fmt.Sprintf("the control plane runs %v, workers %v", have[true], have[false])
		}
		return ""
	})
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
			lost = instanceOf(node)
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

// losesSpotMachines lets AWS take all machines of a pool back: as many as are still there, so that the limit of the other pools would not
// let one of them be replaced.
func (a *onAWS) losesSpotMachines(t *testing.T) {
	const pool = "spare"
	a.ok("pool", "add", "shop", pool, "--replicas", "3", "--set", "size="+larger, "--set", "image="+a.aws.NewerImage, "--set", "spot=true",
		"--set", `labels.node\.cluster\.x-k8s\.io/pool=`+pool, "--set", "taints=[{key: spare, value: only, effect: NoSchedule}]", "--commit")
	a.hasMachines(t, 1, 6)
	spot := a.spotMachines(t)
	if len(spot) != 3 {
		t.Fatalf("the spot instances are %v", spot)
	}
	slices.Sort(spot)
	eventually(t, "the nodes of these are labelled as such, and have the labels and taints of the pool", time.Minute, func() string {
		nodes := &corev1.NodeList{}
		if err := a.workload("shop").List(t.Context(), nodes, client.HasLabels{clusterv1.InterruptibleLabel}); err != nil {
			return err.Error()
		}
		var labelled []string
		declared := corev1.Taint{Key: "spare", Value: "only", Effect: corev1.TaintEffectNoSchedule}
		for _, node := range nodes.Items {
			labelled = append(labelled, instanceOf(node))
			if node.Labels["node.cluster.x-k8s.io/pool"] != pool || !slices.Contains(node.Spec.Taints, declared) {
				return fmt.Sprintf("%s has the labels %v and the taints %v", node.Name, node.Labels, node.Spec.Taints)
			}
		}
		if slices.Sort(labelled); !slices.Equal(labelled, spot) {
			return fmt.Sprintf("%v are labelled, and the spot instances are %v", labelled, spot)
		}
		return ""
	})
	before := len(a.booter.events(0))
	ask[bool](t, a.aws.URL+"/_test/interrupt/"+strings.Join(spot, ","))
	eventually(t, "other spot machines take their place", 8*time.Minute, func() string {
		ended, booted := 0, 0
		for _, event := range a.booter.events(before) {
			switch {
			case event.ended && slices.Contains(spot, event.ID):
				ended++
			case !event.ended && event.Spot:
				booted++
			}
		}
		if ended != len(spot) || booted != len(spot) {
			return fmt.Sprintf("%d ended, and %d booted", ended, booted)
		}
		return ""
	})
	a.hasMachines(t, 1, 6)
	a.ok("pool", "remove", "shop", pool, "--commit")
	a.hasMachines(t, 1, 3)
	if left := a.spotMachines(t); len(left) > 0 {
		t.Errorf("the spot instances of a pool that is removed: %v", left)
	}
}

// spotMachines are the ids of the spot instances that run.
func (a *onAWS) spotMachines(t *testing.T) (ids []string) {
	t.Helper()
	all, err := a.aws.machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Running && m.Spot {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// instanceOf is the id that a cloud knows a node by.
func instanceOf(node corev1.Node) string {
	return node.Spec.ProviderID[strings.LastIndex(node.Spec.ProviderID, "/")+1:]
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
		inCluster = append(inCluster, instanceOf(node))
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
