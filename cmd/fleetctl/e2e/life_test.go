//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// story is the life of one fleet, and what later scenarios must know of earlier ones.
type story struct {
	*fleet
	made    initResult
	before  []string
	clients map[string]*kube.Client // of workload clusters
}

// scenario is a piece of a fleet's life. Each begins where the one before it has ended.
type scenario struct {
	name string
	// only names the one host that can play it; empty: every host must.
	only string
	play func(t *testing.T, s *story)
}

// TestFleetWithoutRemote is the main job, on every host: from an empty folder to a fleet with clusters in it, and back to nothing.
func TestFleetWithoutRemote(t *testing.T) {
	for _, on := range hosts {
		t.Run(on.name, func(t *testing.T) {
			s := &story{fleet: newFleetOn(t, on, "e2e-local"), clients: map[string]*kube.Client{}}
			s.before = on.leftBehind(s.fleet)
			for _, sc := range life {
				if sc.only != "" && sc.only != on.name {
					continue
				}
				if !s.step(sc.name, func(t *testing.T) { sc.play(t, s) }) {
					return
				}
			}
		})
	}
}

var life = []scenario{
	{name: "init from an empty folder", play: initFromNothing},
	{name: "nothing of the providers was made twice", play: madeOnce},
	{name: "init again changes nothing", play: initAgain},
	{name: "what is kept is private", play: stateIsPrivate},
	{name: "init starts it again after a reboot", play: initAfterReboot},
	{name: "its managers keep their share of a busy machine", only: "kind", play: keepTheirShare},
	{name: "host stop and host start", only: "embedded", play: stopAndStart},
	{name: "a commit right after the private network is lost", only: "embedded", play: networkLost},
	{name: "status tells of a controller that crashes", only: "embedded", play: crashLoops},
	{name: "a committed in-memory cluster becomes Available", only: "embedded", play: inMemoryCluster},
	{name: "other users of the machine reach nothing but what the docs name", only: "embedded", play: outOfReach},
	{name: "clusters of containers come up in two environments", only: "kind", play: clustersOfContainers},
	{name: "each applies what its environment has, a feature and a tenant", only: "kind", play: applied},
	{name: "promote moves production, and only production", only: "kind", play: promotedOnly},
	{name: "Flux is told of each commit", play: toldOfCommits},
	{name: "status shows it all", play: statusShows},
	{name: "status says what is wrong", only: "embedded", play: statusComplains}, // it reads an API server, whatever carries it
	{name: "kubeconfig of a workload cluster", play: workloadKubeconfig},
	{name: "teardown refuses while clusters live only there", play: teardownRefuses},
	{name: "cluster remove leaves nothing of a dead cluster", only: "kind", play: removeDead},
	{name: "cluster remove leaves nothing of a cluster that follows tags", only: "kind", play: removePromoted},
	{name: "teardown --delete-clusters leaves nothing", play: teardownAll},
}

func initFromNothing(t *testing.T, s *story) {
	// No host is asked for: it is the one that the machine, as fleetctl sees it, can carry.
	r := s.ok(initArgs("--merge-kubeconfig")...)
	s.made = decode[initResult](t, r.stdout)
	t.Logf("init took %.1fs", r.took.Seconds())
	if head := s.git("rev-parse", "HEAD"); s.made.Revision != head {
		t.Errorf("init reports revision %s, HEAD is %s", s.made.Revision, head)
	}
	if !s.made.Changed {
		t.Error("the first init says that it changed nothing")
	}
	info, err := os.Stat(s.made.Kubeconfig)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v; want mode 0600", info, err)
	}
	if dirty := s.git("status", "--porcelain"); dirty != "" {
		t.Errorf("init left uncommitted files:\n%s", dirty)
	}
	merged, err := os.ReadFile(filepath.Join(s.home, "kubeconfig"))
	if err != nil || !strings.Contains(string(merged), "fleetctl-"+s.name) {
		t.Errorf("the user's kubeconfig has no context of ours: %v", err)
	}
	if st, code := s.status(); code != 0 || st.ManagementCluster.Host != s.on.name {
		t.Errorf("status: exit %d, host %q; %+v", code, st.ManagementCluster.Host, st.Problems)
	}
}

// toldOfCommits reads what the process that serves the fleet repo has logged: without its word a commit waits for Flux's next look.
func toldOfCommits(t *testing.T, s *story) {
	log, err := os.ReadFile(filepath.Join(s.state, "clusters", s.name, "git-serve", "git-serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines(string(log)) {
		if strings.Contains(line, "cannot tell Flux") || strings.Contains(line, "cannot watch for commits") {
			t.Error(line)
		}
	}
}

func initAgain(t *testing.T, s *story) {
	r := s.ok("init", "--bundle", os.Getenv(envBundle), "-o", "json")
	again := decode[initResult](t, r.stdout)
	t.Logf("init again took %.1fs", r.took.Seconds())
	if again.Changed || again.Revision != s.made.Revision {
		t.Errorf("init again: changed %v, revision %s (was %s)\n%s", again.Changed, again.Revision, s.made.Revision, r.stderr)
	}
}

// stateIsPrivate walks all that this machine keeps of its management clusters: keys and tokens are among it.
func stateIsPrivate(t *testing.T, s *story) {
	err := filepath.WalkDir(s.state, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was a temporary file
		}
		if err != nil || d.Type() == fs.ModeSymlink {
			return err // what it leads to counts
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func initAfterReboot(t *testing.T, s *story) {
	s.reboot()
	if _, code := s.status(); code != 3 {
		t.Errorf("status of a stopped management cluster: exit %d, want 3", code)
	}
	again := decode[initResult](t, s.ok("init", "--bundle", os.Getenv(envBundle), "-o", "json").stdout)
	if again.Revision != s.made.Revision {
		t.Errorf("init after a reboot: revision %s, was %s", again.Revision, s.made.Revision)
	}
}

// keepTheirShare reads what the kernel weighs processes by when they compete: requests of CPU within the node, and shares of the node
// beside other containers. Managers without a share lose their leases while workload clusters come up, and end up in CrashLoopBackOff.
func keepTheirShare(t *testing.T, s *story) {
	var pods corev1.PodList
	if err := s.client(s.made.Kubeconfig).List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, pod := range pods.Items {
		if pod.Namespace == "kube-system" || pod.Namespace == "local-path-storage" {
			continue // it is kind's
		}
		looked++
		if pod.Status.QOSClass == corev1.PodQOSBestEffort {
			t.Errorf("pod %s/%s has no share of a busy machine", pod.Namespace, pod.Name)
		}
	}
	if looked < 11 { // Flux has four, cert-manager three, and Cluster API one for each of four providers
		t.Errorf("there are %d pods of Flux, cert-manager and Cluster API, want 11", looked)
	}
	node := s.name + "-control-plane"
	const read = "cat /sys/fs/cgroup/cpu/cpu.shares 2>/dev/null || cat /sys/fs/cgroup/cpu.weight"
	shares := strings.TrimSpace(engine(t, "exec", node, "sh", "-c", read))
	if slices.Contains([]string{"1024", "100", "39"}, shares) { // the defaults of cgroup v1 and v2, and 1,024 in terms of v2
		t.Errorf("the node has the share of any other container: %s", shares)
	}
}

func stopAndStart(t *testing.T, s *story) {
	s.ok("host", "stop")
	if running := s.on.processes(s.fleet); len(running) > 0 {
		t.Errorf("still there after host stop:\n%s", told(running))
	}
	if _, code := s.status(); code != 3 {
		t.Errorf("status of a stopped host: exit %d, want 3", code)
	}
	s.listed("stopped")
	s.fails(1, []string{"host start", "--force"}, "host", "delete", "--yes")
	s.ok("host", "start")
	s.ready(time.Minute)
	s.listed("running")
	const manager = "capi-system/capi-controller-manager"
	if programs := s.ok("host", "logs").stdout; !strings.Contains(programs, "kube-apiserver") || !strings.Contains(programs, manager) {
		t.Errorf("host logs does not list the programs:\n%s", programs)
	}
	for _, program := range []string{"supervisor", "etcd", manager} {
		if log := lines(s.ok("host", "logs", program, "--lines", "1").stdout); len(log) != 1 || log[0] == "" {
			t.Errorf("the last line of the log of %s: %q", program, log)
		}
	}
	s.fails(2, []string{"default/nothing", "`fleetctl host logs`"}, "host", "logs", "default/nothing")
}

// networkLost kills the process that keeps the host's private network. All programs are started again, where the others know them: Flux,
// which asks an address for four minutes before it looks for another one, applies the next commit once they are there.
func networkLost(t *testing.T, s *story) {
	file := filepath.Join(s.state, "clusters", s.name, "embedded", "runner", "ports.json")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := s.client(s.made.Kubeconfig)
	apiServer := func() int {
		for pid, p := range hostFamily(t, s.base, "") {
			if programName(p) == "kube-apiserver" {
				return pid
			}
		}
		return 0
	}
	old := apiServer()
	kill(t, map[int]string{networkHelper(t, hostFamily(t, s.base, "")): "the helper of the private network"})
	eventually(t, "the next API server answers", time.Minute, func() string { // it is told of the commit
		if pid := apiServer(); pid == 0 || pid == old {
			return fmt.Sprintf("process %d, was %d", pid, old)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "flux-system"}, &corev1.Namespace{}); err != nil {
			return err.Error()
		}
		return ""
	})
	s.commit("after the network was lost", map[string]string{"notes.txt": "written while all starts again\n"})
	head := s.git("rev-parse", "HEAD")
	eventually(t, "the commit is applied", 2*time.Minute, func() string {
		k := &unstructured.Unstructured{}
		k.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
		k.SetKind("Kustomization")
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "flux-system", Name: "flux-system"}, k); err != nil {
			return err.Error()
		}
		applied, _, err := unstructured.NestedString(k.Object, "status", "lastAppliedRevision")
		if err != nil || !strings.HasSuffix(applied, head) {
			return fmt.Sprintf("applied %q, want %s, %v", applied, head, err)
		}
		return ""
	})
	s.ready(time.Minute)
	if now, err := os.ReadFile(file); err != nil || string(now) != string(before) {
		t.Errorf("ports moved: %s, %v\nbefore: %s", now, err, before)
	}
}

// crashLoops has one of Flux's controllers end at once, for a flag that it does not know, and then come back.
func crashLoops(t *testing.T, s *story) {
	const controller, flag, reconcile = "notification-controller", "--of-another-version", "kustomize.toolkit.fluxcd.io/reconcile"
	c := s.client(s.made.Kubeconfig)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: controller}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	roll := func(args []string, flux string) {
		t.Helper()
		before := client.MergeFrom(d.DeepCopy())
		d.Spec.Template.Spec.Containers[0].Args = args
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, reconcile, flux)
		if err := c.Patch(t.Context(), d, before); err != nil {
			t.Fatal(err)
		}
	}
	args := slices.Clone(d.Spec.Template.Spec.Containers[0].Args)
	// Flux has only just been started and is about to apply what Git says: that would undo this.
	roll(append(slices.Clone(args), flag), "disabled")
	eventually(t, "status shows the crash loop", time.Minute, func() string {
		st, code := s.status()
		for _, p := range st.Problems {
			if code == 3 && strings.Contains(p.Object, controller) && strings.Contains(p.Reason, "CrashLoopBackOff") &&
				strings.Contains(p.Reason, flag) {
				return ""
			}
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("exit %d, %+v; %s runs with %v: %+v", code, st.Problems, controller, d.Spec.Template.Spec.Containers[0].Args, d.Status)
	})
	roll(args, "enabled")
	s.ready(time.Minute)
}

// listed requires that host list has the management cluster, in that state.
func (s *story) listed(state string) {
	s.t.Helper()
	list := decode[struct {
		Hosts []struct{ Name, Type, State, Repo string }
	}](s.t, s.ok("host", "list", "-o", "json").stdout)
	if len(list.Hosts) != 1 || list.Hosts[0].Name != s.name || list.Hosts[0].Type != s.on.name || list.Hosts[0].State != state {
		s.t.Errorf("host list has %+v, want only %s, %s", list.Hosts, s.name, state)
	}
}

func inMemoryCluster(_ *testing.T, s *story) {
	s.commit("add demo", map[string]string{
		clusterPath("demo"): example(s.t, "laptop/"+clusterPath("demo")), chartPath("in-memory"): example(s.t, "laptop/"+chartPath("in-memory")),
	})
	s.available("demo", 5*time.Minute)
}

// ready waits until all of the fleet is.
func (f *fleet) ready(limit time.Duration) {
	f.t.Helper()
	eventually(f.t, "status is Ready", limit, func() string {
		st, code := f.status()
		if code == 0 && st.Ready {
			return ""
		}
		return fmt.Sprintf("exit %d, %+v", code, st.Problems)
	})
}

func statusShows(t *testing.T, s *story) {
	s.ready(3 * time.Minute)
	human := s.ok("status")
	shown := append(s.workloads(), s.name, s.on.name, "control-plane kubeadm", "GitRepository flux-system/flux-system")
	for _, want := range shown {
		if !strings.Contains(human.stdout, want) {
			t.Errorf("status does not show %q:\n%s", want, human.stdout)
		}
	}
}

// workloads are the clusters that the story has made, as NAMESPACE/NAME.
func (s *story) workloads() []string {
	if s.on.name == onKind.name {
		return []string{west + "/" + west, east + "/" + east, north + "/" + north}
	}
	return []string{"demo/demo"}
}

func statusComplains(_ *testing.T, s *story) {
	s.commit("break it", map[string]string{clusterPath("broken"): "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_A_Name\n  " +
		"namespace: default\n"})
	eventually(s.t, "status names the Kustomization that fails", 3*time.Minute, func() string {
		st, code := s.status()
		for _, p := range st.Problems {
			if code == 3 && strings.Contains(p.Object, "clusters-dev") && strings.Contains(p.Reason, "Not_A_Name") {
				return ""
			}
		}
		return fmt.Sprintf("exit %d, %+v", code, st.Problems)
	})
	s.git("revert", "--no-edit", "HEAD")
}

func workloadKubeconfig(t *testing.T, s *story) {
	for _, cluster := range s.workloads() {
		_, name, _ := strings.Cut(cluster, "/")
		r := s.ok("kubeconfig", name)
		if !strings.Contains(r.stdout, "kind: Config") || !strings.Contains(r.stdout, name) {
			t.Errorf("not a kubeconfig:\n%.200s", r.stdout)
		}
	}
	s.fails(2, []string{"no workload cluster nope", s.workloads()[0]}, "kubeconfig", "nope")
}

func teardownRefuses(_ *testing.T, s *story) {
	s.fails(1, append(s.workloads(), "--pivot-to", "--delete-clusters"), "teardown")
	s.fails(2, []string{"--yes"}, "teardown", "--delete-clusters")
	s.fails(1, append(s.workloads(), "teardown", "--force"), "host", "delete", "--yes")
}

func teardownAll(t *testing.T, s *story) {
	head := s.git("rev-parse", "HEAD")
	if r := s.ok("teardown", "--delete-clusters", "--yes"); strings.Contains(r.stderr, "is not known") ||
		!strings.Contains(r.stderr, "in order:") {
		t.Errorf("the plan is\n%s", r.stderr)
	}
	s.nothingLeft(s.before)
	if now := s.git("rev-parse", "HEAD"); now != head {
		t.Errorf("teardown moved the repo from %s to %s", head, now)
	}
	merged, err := os.ReadFile(filepath.Join(s.home, "kubeconfig"))
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(string(merged), s.name) {
		t.Errorf("our entries are still in the user's kubeconfig:\n%s", merged)
	}
	s.ok("teardown", "--management", s.name)
}

// nothingLeft requires that nothing is there but what was there before the management cluster was made. Less may be there: what a killed
// run had left of a cluster of that name is taken away with it.
func (f *fleet) nothingLeft(before []string) {
	f.t.Helper()
	left := slices.DeleteFunc(f.on.leftBehind(f), func(what string) bool { return slices.Contains(before, what) })
	if len(left) > 0 {
		f.t.Errorf("left behind:\n%s\nbefore:\n%s", strings.Join(left, "\n"), strings.Join(before, "\n"))
	}
	if _, err := os.Stat(filepath.Join(f.state, "clusters", f.name)); !os.IsNotExist(err) {
		f.t.Errorf("the state folder is still there (%v)", err)
	}
}

// TestSomebodyElses: what has the wanted name and was not made by fleetctl is named and left alone.
func TestSomebodyElses(t *testing.T) {
	for _, on := range hosts {
		t.Run(on.name, func(t *testing.T) {
			f := newFleetOn(t, on, "e2e-foreign")
			on.foreign(f)
			before := on.leftBehind(f)
			said := []string{f.name, "that fleetctl did not make", "choose another name"}
			f.fails(1, said, initArgs()...)
			f.fails(1, said[:2], "teardown", "--management", f.name, "--yes")
			f.fails(3, nil, "doctor", "--bundle", os.Getenv(envBundle), "--provider", "docker")
			if entries, err := os.ReadDir(f.dir); err != nil || len(entries) > 0 {
				t.Errorf("init wrote %v although preflight failed, %v", entries, err)
			}
			if after := on.leftBehind(f); !slices.Equal(after, before) {
				t.Errorf("it is not as it was:\n%v\nbefore:\n%v", after, before)
			}
		})
	}
}
