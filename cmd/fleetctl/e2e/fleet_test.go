//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// clusterFile is a HelmRelease as a platform engineer would commit it: the whole declaration of one cluster.
func clusterFile(flavour, name, values string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: %[2]s
  annotations:
    kustomize.toolkit.fluxcd.io/prune: disabled
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: %[2]s
  namespace: %[2]s
  annotations:
    kustomize.toolkit.fluxcd.io/prune: disabled
spec:
  interval: 1m
  releaseName: %[2]s
  chart:
    spec:
      chart: ./charts/%[1]s
      sourceRef:
        kind: GitRepository
        name: flux-system
        namespace: flux-system
      reconcileStrategy: Revision
  install:
    disableWait: true
    strategy:
      name: RetryOnFailure
      retryInterval: 10s
  upgrade:
    disableWait: true
    strategy:
      name: RetryOnFailure
      retryInterval: 10s
  values:
%[3]s`, flavour, name, indent(values, "    "))
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(by + line + "\n")
	}
	return b.String()
}

// example is a file of the examples, which readers copy.
func example(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// onThisMachine adds to a cluster of the docker flavour what the examples say for a machine with cgroup v1.
func onThisMachine(cluster string) string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return cluster
	}
	return strings.Replace(cluster, "    controlPlane:\n", "    kubeletExtraArgs:\n      fail-cgroupv1: \"false\"\n    controlPlane:\n", 1)
}

func clusterPath(name string) string {
	return "providers/docker/v1/clusters/dev/" + name + "/cluster.yaml"
}

// dockerValues declare a cluster of containers. management makes it fit to become a management cluster: workloads on the control
// plane, the engine's socket, an image with all controllers in it.
func dockerValues(workers int, management bool) string {
	values := `
kubernetesVersion: ` + kubernetesVersion + `
kubeletExtraArgs:
  fail-cgroupv1: "false"
controlPlane:
  replicas: 1
  taints: []
`
	if workers > 0 {
		values += fmt.Sprintf("pools:\n- name: md-0\n  replicas: %d\n", workers)
	}
	if management {
		values += fmt.Sprintf("node:\n  image: %s\n  extraMounts:\n  - hostPath: %s\n    containerPath: /var/run/docker.sock\n",
			os.Getenv(envNodeImage), engineSocket())
	}
	return values
}

// engineSocket is the engine's API on this machine, as the docker provider of a management cluster on the same engine mounts it.
func engineSocket() string {
	if os.Getenv("KIND_EXPERIMENTAL_PROVIDER") == "podman" {
		return "/run/podman/podman.sock"
	}
	return "/var/run/docker.sock"
}

// TestFleetWithoutRemote is the main job: from an empty folder to a fleet with two clusters in it, and back to nothing.
func TestFleetWithoutRemote(t *testing.T) {
	f := newFleet(t, "e2e-local")
	before := leftBehind(t)

	var made initResult
	t.Run("init from an empty folder", func(t *testing.T) {
		r := f.ok(initArgs("--merge-kubeconfig")...)
		made = decode[initResult](t, r.stdout)
		t.Logf("init took %.1fs", r.took.Seconds())
		if head := f.git("rev-parse", "HEAD"); made.Revision != head {
			t.Errorf("init reports revision %s, HEAD is %s", made.Revision, head)
		}
		if !made.Changed {
			t.Error("the first init says that it changed nothing")
		}
		info, err := os.Stat(made.Kubeconfig)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("kubeconfig: %v, %v; want mode 0600", info, err)
		}
		if dirty := f.git("status", "--porcelain"); dirty != "" {
			t.Errorf("init left uncommitted files:\n%s", dirty)
		}
		merged, err := os.ReadFile(filepath.Join(f.home, "kubeconfig"))
		if err != nil || !strings.Contains(string(merged), "fleetctl-"+f.name) {
			t.Errorf("the user's kubeconfig has no context of ours: %v", err)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("init again changes nothing", func(t *testing.T) {
		r := f.ok("init", "--bundle", os.Getenv(envBundle), "-o", "json")
		again := decode[initResult](t, r.stdout)
		t.Logf("init again took %.1fs", r.took.Seconds())
		if again.Changed || again.Revision != made.Revision {
			t.Errorf("init again: changed %v, revision %s (was %s)\n%s", again.Changed, again.Revision, made.Revision, r.stderr)
		}
	})
	t.Run("init starts it again after a reboot", func(t *testing.T) {
		f.reboot()
		if _, code := f.status(); code != 3 {
			t.Errorf("status of a stopped management cluster: exit %d, want 3", code)
		}
		again := decode[initResult](t, f.ok("init", "--bundle", os.Getenv(envBundle), "-o", "json").stdout)
		if again.Revision != made.Revision {
			t.Errorf("init after a reboot: revision %s, was %s", again.Revision, made.Revision)
		}
	})
	t.Run("a committed in-memory cluster becomes Available", func(t *testing.T) {
		f.commit("add demo", map[string]string{clusterPath("demo"): example(t, "laptop/"+clusterPath("demo"))})
		f.available("demo", 5*time.Minute)
	})
	t.Run("a committed cluster of containers becomes Available, with a real node", func(t *testing.T) {
		declared := onThisMachine(example(t, "laptop/"+clusterPath("containers")))
		f.commit("add containers", map[string]string{clusterPath("containers"): declared})
		f.available("containers", 8*time.Minute)
		if nodes := containers(t, "containers-"); len(nodes) < 2 { // a node and the load balancer
			t.Errorf("containers of the cluster containers: %v", nodes)
		}
	})
	if t.Failed() {
		return
	}
	t.Run("status shows it all", func(t *testing.T) {
		eventually(t, "status is Ready", 3*time.Minute, func() string {
			st, code := f.status()
			if code == 0 && st.Ready {
				return ""
			}
			return fmt.Sprintf("exit %d, %+v", code, st.Problems)
		})
		human := f.ok("status")
		for _, want := range []string{f.name, "demo/demo", "containers/containers", "control-plane kubeadm", "GitRepository flux-system/flux-system"} {
			if !strings.Contains(human.stdout, want) {
				t.Errorf("status does not show %q:\n%s", want, human.stdout)
			}
		}
	})
	t.Run("status says what is wrong", func(t *testing.T) {
		f.commit("break it", map[string]string{clusterPath("broken"): "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: Not_A_Name\n  namespace: default\n"})
		eventually(t, "status names the Kustomization that fails", 3*time.Minute, func() string {
			st, code := f.status()
			for _, p := range st.Problems {
				if code == 3 && strings.Contains(p.Object, "clusters-dev") && strings.Contains(p.Reason, "Not_A_Name") {
					return ""
				}
			}
			return fmt.Sprintf("exit %d, %+v", code, st.Problems)
		})
		f.git("revert", "--no-edit", "HEAD")
	})
	t.Run("kubeconfig of a workload cluster", func(t *testing.T) {
		r := f.ok("kubeconfig", "containers")
		if !strings.Contains(r.stdout, "kind: Config") || !strings.Contains(r.stdout, "containers") {
			t.Errorf("not a kubeconfig:\n%.200s", r.stdout)
		}
		f.fails(2, []string{"no workload cluster nope", "demo/demo"}, "kubeconfig", "nope")
	})
	t.Run("teardown refuses while clusters live only there", func(t *testing.T) {
		f.fails(1, []string{"demo/demo", "containers/containers", "--pivot-to", "--delete-clusters"}, "teardown")
		f.fails(2, []string{"--yes"}, "teardown", "--delete-clusters")
	})
	t.Run("teardown --delete-clusters leaves nothing", func(t *testing.T) {
		head := f.git("rev-parse", "HEAD")
		f.ok("teardown", "--delete-clusters", "--yes")
		if after := leftBehind(t); !slices.Equal(after, before) {
			t.Errorf("left behind:\n%v\nbefore:\n%v", after, before)
		}
		if now := f.git("rev-parse", "HEAD"); now != head {
			t.Errorf("teardown moved the repo from %s to %s", head, now)
		}
		for _, path := range []string{filepath.Join(f.state, "clusters", f.name)} {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s is still there (%v)", path, err)
			}
		}
		merged, _ := os.ReadFile(filepath.Join(f.home, "kubeconfig"))
		if strings.Contains(string(merged), f.name) {
			t.Errorf("our entries are still in the user's kubeconfig:\n%s", merged)
		}
		f.ok("teardown", "--cluster", f.name)
	})
}

// TestSomebodyElsesCluster: a kind cluster of the wanted name that fleetctl did not make is named and left alone.
func TestSomebodyElsesCluster(t *testing.T) {
	f := newFleet(t, "e2e-foreign")
	engine(t, "create", "--label", "io.x-k8s.kind.cluster="+f.name, "--name", f.name+"-control-plane", os.Getenv(envNodeImage))
	t.Cleanup(func() { engine(t, "rm", "--force", f.name+"-control-plane") })
	said := []string{f.name, "that fleetctl did not make", "choose another name"}
	f.fails(1, said, initArgs()...)
	f.fails(1, said[:2], "teardown", "--cluster", f.name, "--yes")
	f.fails(3, nil, "doctor", "--bundle", os.Getenv(envBundle), "--provider", "docker")
	if entries, err := os.ReadDir(f.dir); err != nil || len(entries) > 0 {
		t.Errorf("init wrote %v although preflight failed, %v", entries, err)
	}
}

// reboot does to the management cluster what a reboot of this machine would: its containers are stopped, our processes are gone.
func (f *fleet) reboot() {
	f.t.Helper()
	engine(f.t, "stop", "--time=2", f.name+"-control-plane")
	for _, pid := range pids(f.t, "git-serve") {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			f.t.Fatal(err)
		}
	}
}

// leftBehind lists what a management cluster could leave on the engine and in the process table.
func leftBehind(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range lines(engine(t, "ps", "-a", "--format", "{{.Names}}")) {
		out = append(out, "container "+name)
	}
	for _, name := range lines(engine(t, "volume", "ls", "-q")) {
		out = append(out, "volume "+name)
	}
	for _, name := range lines(engine(t, "network", "ls", "--format", "{{.Name}}")) {
		out = append(out, "network "+name)
	}
	for _, p := range processes(t, "git-serve") {
		out = append(out, "process "+p)
	}
	slices.Sort(out)
	return out
}

// processes lists those of our program with that argument.
func processes(t *testing.T, argument string) []string {
	t.Helper()
	return slices.Collect(maps.Values(running(t, argument)))
}

// pids are the ids of those processes.
func pids(t *testing.T, argument string) []int {
	t.Helper()
	return slices.Collect(maps.Keys(running(t, argument)))
}

// running maps the ids of the processes of our program with that argument to their command lines.
func running(t *testing.T, argument string) map[int]string {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]string{}
	for _, path := range found {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		args := strings.Split(string(raw), "\x00")
		if len(args) < 2 || filepath.Base(args[0]) != filepath.Base(os.Getenv(envProgram)) || args[1] != argument {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		out[pid] = strings.Join(args, " ")
	}
	return out
}
