//go:build e2e

// Package conformance drives the stock clusterctl, helm and kubectl, built from their modules, against the embedded host and against kind,
// and compares what exists afterwards. `make conformance` builds what it needs.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// The workload cluster of the tests.
const (
	chart     = "../../../templates/charts/in-memory"
	cluster   = "x"
	namespace = "conformance"
)

// TestStockPrograms is a management cluster's life: clusterctl init, a cluster as a release of helm, its upgrade and rollback, describe,
// get kubeconfig, clusterctl upgrade, move out and in; with crashes of everything in between.
func TestStockPrograms(t *testing.T) {
	begin := time.Now()
	e, k := newSides(t)
	both(t, "clusterctl init", e, k, func(ctx context.Context, s *side) error {
		_, err := s.clusterctl(ctx, "init", "--wait-providers",
			"--core", "cluster-api", "--bootstrap", "kubeadm", "--control-plane", "kubeadm", "--infrastructure", "docker")
		return err
	})
	compare(t, "after init", e, k)

	both(t, "a cluster", e, k, func(ctx context.Context, s *side) error { return s.makeCluster(ctx) })
	compare(t, "with a cluster", e, k)
	both(t, "clusterctl describe and get kubeconfig", e, k, func(ctx context.Context, s *side) error { return s.describe(ctx) })
	e.asksWorkload(t)
	both(t, "helm upgrade and rollback", e, k, func(ctx context.Context, s *side) error { return s.changeRelease(ctx) })
	compare(t, "with the release changed", e, k)

	plans := map[*side]string{}
	for _, s := range []*side{e, k} {
		plan, err := s.clusterctl(t.Context(), "upgrade", "plan")
		if err != nil {
			t.Fatal(err)
		}
		plans[s] = plan
	}
	if plans[e] != plans[k] || !strings.Contains(plans[e], nextVersion) {
		t.Errorf("clusterctl upgrade plan says with the embedded host\n%s\nand with kind\n%s", plans[e], plans[k])
	}
	both(t, "clusterctl upgrade apply", e, k, func(ctx context.Context, s *side) error {
		_, err := s.clusterctl(ctx, "upgrade", "apply", "--wait-providers", "--core", "cluster-api:"+nextVersion,
			"--bootstrap", "kubeadm:"+nextVersion, "--control-plane", "kubeadm:"+nextVersion)
		if err != nil {
			return err
		}
		_, err = s.run(ctx, "kubectl", "rollout", "status", "deployment/capi-controller-manager", "-n", "capi-system", "--timeout=2m")
		return err
	})
	e.runsNext(t)
	compare(t, "after the upgrade", e, k)

	e.killAll(t)
	compare(t, "after each process was killed", e, k)
	e.killSupervisor(t)
	compare(t, "after the supervisor was killed and the host started", e, k)

	if _, err := k.run(t.Context(), "kubectl", "delete", "cluster/"+cluster, "-n", namespace, "--timeout=2m"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.run(t.Context(), "kubectl", "delete", "namespace", namespace, "--timeout=2m"); err != nil {
		t.Fatal(err)
	}
	move(t, "out", e, k)
	move(t, "in", k, e)
	t.Logf("all of it took %.0fs", time.Since(begin).Seconds())
}

// compare waits until both sides have the same objects in the same conditions.
func compare(t *testing.T, when string, e, k *side) {
	t.Helper()
	objects := 0
	err := eventually(t.Context(), 90*time.Second, func() error {
		withEmbedded, err := e.look(t.Context())
		if err != nil {
			return err
		}
		withKind, err := k.look(t.Context())
		if err != nil {
			return err
		}
		objects = len(withKind.without(k.before).lines())
		if d := difference(withEmbedded.without(e.before).lines(), withKind.without(k.before).lines()); d != "" {
			return errors.New(d)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s the two hosts differ, %v", when, err)
	}
	t.Logf("%s: %d objects", when, objects)
	if objects < 50 {
		t.Errorf("%s there are only %d objects: the comparison says little", when, objects)
	}
}

func (s *side) makeCluster(ctx context.Context) error {
	if _, err := s.run(ctx, "helm", "install", cluster, chart, "-n", namespace, "--create-namespace",
		"--set", "kubernetesVersion=v1.36.3,pools[0].name=md-0,pools[0].replicas=1"); err != nil {
		return err
	}
	return s.available(ctx)
}

// changeRelease gives the cluster a label with helm, takes it away again, and looks at what helm and kubectl say of it.
func (s *side) changeRelease(ctx context.Context) error {
	for _, step := range []struct {
		args []string
		want string // the label afterwards
	}{
		{[]string{"upgrade", cluster, chart, "--reuse-values", "--set", "labels.tier=gold"}, "gold"},
		{[]string{"rollback", cluster, "1"}, ""},
	} {
		if _, err := s.run(ctx, "helm", append(step.args, "-n", namespace)...); err != nil {
			return err
		}
		got, err := s.run(ctx, "kubectl", "get", "cluster/"+cluster, "-n", namespace, "-o", "jsonpath={.metadata.labels.tier}")
		if err == nil && got != step.want {
			err = fmt.Errorf("after helm %s the cluster has the tier %q, want %q", step.args[0], got, step.want)
		}
		if err != nil {
			return err
		}
	}
	history, err := s.run(ctx, "helm", "history", cluster, "-n", namespace)
	if err == nil && (strings.Count(history, "superseded") != 2 || strings.Count(history, "deployed") != 1) {
		err = fmt.Errorf("helm history, want two superseded and one deployed:\n%s", history)
	}
	return err
}

// runsNext looks whether the manager that runs is that of the next release.
func (s *side) runsNext(t *testing.T) {
	t.Helper()
	running, err := process.Running(filepath.Join(s.stateDir, "processes"))
	if err != nil {
		t.Fatal(err)
	}
	var managers []string
	for _, r := range running {
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.PID)); err == nil && strings.Contains(r.Name, "capi-controller-manager") {
			managers = append(managers, strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	if len(managers) != 1 || !strings.Contains(managers[0], " "+nextArgument+" ") {
		t.Errorf("after the upgrade there run %q, want one manager with %s", managers, nextArgument)
	}
}

func (s *side) available(ctx context.Context) error {
	_, err := s.run(ctx, "kubectl", "wait", "-n", namespace, "--for=condition=Available", "--timeout=3m", "cluster/"+cluster)
	return err
}

// describe looks at the cluster the way users of clusterctl do.
func (s *side) describe(ctx context.Context) error {
	text, err := s.clusterctl(ctx, "describe", "cluster", cluster, "-n", namespace)
	if err != nil {
		return err
	}
	for _, want := range []string{"Cluster", "DevCluster", "KubeadmControlPlane", "Machine", "MachineDeployment"} {
		if !strings.Contains(text, want+" "+namespace+"/"+cluster) {
			return fmt.Errorf("clusterctl describe does not show the %s:\n%s", want, text)
		}
	}
	return nil
}

// asksWorkload uses the kubeconfig that clusterctl gives: with the embedded host the workload cluster is on this machine.
func (s *side) asksWorkload(t *testing.T) {
	t.Helper()
	kubeconfig, err := s.clusterctl(t.Context(), "get", "kubeconfig", cluster, "-n", namespace)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes, err := s.run(t.Context(), "kubectl", "--kubeconfig", file, "get", "--raw", "/api/v1/nodes")
	if err != nil || !strings.Contains(nodes, cluster+"-md-0-") {
		t.Errorf("nodes of the workload cluster: %v\n%s", err, nodes)
	}
}

// killAll kills what runs on the embedded host, control plane and managers, all at once: it comes back by itself.
func (s *side) killAll(t *testing.T) {
	t.Helper()
	running, err := process.Running(filepath.Join(s.stateDir, "processes"))
	if err != nil || len(running) < 8 { // three of the control plane, three of cert-manager, four of Cluster API
		t.Fatalf("running: %v, %v", running, err)
	}
	for _, r := range running {
		if err := r.Signal(syscall.SIGKILL); err != nil {
			t.Errorf("kill %s: %v", r.Name, err)
		}
	}
	if err := eventually(t.Context(), time.Minute, func() error { _, err := s.look(t.Context()); return err }); err != nil {
		t.Fatalf("after %d processes were killed: %v", len(running), err)
	}
}

// killSupervisor kills what holds the embedded host, and starts it again.
func (s *side) killSupervisor(t *testing.T) {
	t.Helper()
	var holder process.Identity
	raw, err := os.ReadFile(filepath.Join(s.stateDir, "supervisor.json"))
	if err == nil {
		err = json.Unmarshal(raw, &holder)
	}
	if err == nil {
		err = holder.Signal(syscall.SIGKILL)
	}
	if err == nil { // what still dies would be taken for what runs
		err = eventually(t.Context(), time.Minute, func() error {
			left, err := process.Running(filepath.Join(s.stateDir, "processes"))
			if err == nil && (holder.Alive() || len(left) > 0) {
				err = fmt.Errorf("the killed host still has its supervisor (%v) or %v", holder.Alive(), left)
			}
			return err
		})
	}
	if err == nil {
		err = s.host.Create(t.Context(), host.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// move moves the cluster: afterwards it is Available on the other side, and gone from the first.
func move(t *testing.T, what string, from, to *side) {
	t.Helper()
	begin := time.Now()
	if _, err := from.clusterctl(t.Context(), "move", "-n", namespace, "--to-kubeconfig", to.kubeconfig); err != nil {
		t.Fatal(err)
	}
	if err := to.available(t.Context()); err != nil {
		t.Errorf("moved %s: %v", what, err)
	}
	left, err := from.run(t.Context(), "kubectl", "get", "-n", namespace, "-o", "name",
		"clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io,kubeadmcontrolplanes,devclusters,devmachines")
	if err != nil || strings.TrimSpace(left) != "" {
		t.Errorf("moved %s, there are left: %v %s", what, err, left)
	}
	fmt.Fprintf(os.Stderr, "    clusterctl move %s: %.1fs\n", what, time.Since(begin).Seconds())
}
