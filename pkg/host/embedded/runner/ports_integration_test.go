//go:build integration

package runner

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPeersFindEachOther(t *testing.T) {
	w := newWorld(t)
	w.service("server")
	w.service("caller")
	w.create(deployment("caller", "--peer-addr=http://server.default.svc.cluster.local./"))
	w.ready("caller")
	w.create(deployment("server"))
	w.ready("server")
	want := "http://" + w.resolve("server.default.svc", "80") + "/"
	deadline := time.Now().Add(10 * time.Second)
	for {
		w.ready("caller")
		if address, err := w.runner.Resolve(t.Context(), "caller.default.svc", "443"); err == nil {
			if resp, err := http.Get("http://" + address + "/about"); err == nil {
				var a about
				_ = json.NewDecoder(resp.Body).Decode(&a)
				_ = resp.Body.Close()
				if a.Peer == want {
					return
				}
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the caller never learns that its peer is at %s", want)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestRunnerRestartKeepsPortsAndLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	w.create(deployment("manager"))
	w.ready("manager")
	address, running := w.resolve("manager.default.svc", "443"), w.identity("manager")
	w.stop()
	if running.Alive() {
		t.Fatal("the process outlives its runner")
	}
	w.start()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if now := w.identity("manager"); now.PID != 0 && isReady(w.get("manager")) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("never ready again")
		}
	}
	if again := w.resolve("manager.default.svc", "443"); again != address {
		t.Errorf("the port has changed from %s to %s", address, again)
	}
}

func TestTakenPortIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	d := deployment("manager")
	port, err := w.runner.ports.get("default/manager", 9443)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.create(d)
	w.ready("manager")
	if address := w.resolve("manager.default.svc", "443"); strings.HasSuffix(address, fmt.Sprintf(":%d", port)) {
		t.Errorf("got the port that is taken: %s", address)
	}
}

// TestPortThatNoFlagMoves is taken first by this test, then by another Deployment: both are told by name, and when it is free again the
// program that needs it comes up by itself.
func TestPortThatNoFlagMoves(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	needsIt := fmt.Sprintf("--debug=%d", port)
	wantTold := func(name, holder string) {
		t.Helper()
		told := fmt.Sprintf("port %d is taken by %s, and no flag of this program moves the port", port, holder)
		d := w.wait(name, "told "+told, func(d *appsv1.Deployment) bool {
			return strings.Contains(condition(d, appsv1.DeploymentAvailable).Message, told)
		})
		if c := condition(d, appsv1.DeploymentAvailable); !strings.HasSuffix(c.Message, "or use --host kind") {
			t.Errorf("it does not say the way out: %s", c.Message)
		}
		w.warned(name, "BackOff", told)
	}
	w.create(deployment("one", needsIt))
	wantTold("one", fmt.Sprintf("runner.test (process %d)", os.Getpid()))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	w.ready("one")
	two := deployment("two", needsIt) // this one says that it has it
	two.Spec.Template.Spec.Containers[0].Ports = append(two.Spec.Template.Spec.Containers[0].Ports,
		corev1.ContainerPort{ContainerPort: int32(port)})
	w.create(two)
	wantTold("two", fmt.Sprintf("Deployment default/one (process %d)", w.identity("one").PID))
	if err := w.client.AppsV1().Deployments("default").Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.ready("two")
}

func TestTwoHundredAtOnce(t *testing.T) {
	w := newWorld(t)
	const count = 200
	begun := time.Now()
	for i := range count {
		w.create(deployment(fmt.Sprintf("manager-%d", i)))
	}
	created := time.Since(begun)
	left := count
	for deadline := begun.Add(3 * time.Minute); left > 0; time.Sleep(500 * time.Millisecond) {
		all, err := w.client.AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		left = 0
		for i := range all.Items {
			if !isReady(&all.Items[i]) {
				left++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d are not ready", left, count)
		}
	}
	t.Logf("created in %s, all ready after %s", created, time.Since(begun))
	running := w.processes()
	for i := range count {
		if id := w.identity(fmt.Sprintf("manager-%d", i)); running[id] == "" {
			t.Errorf("manager-%d: there is no process %v", i, id)
		}
	}
	if len(running) != count {
		t.Errorf("%d processes", len(running))
	}
	begun = time.Now()
	w.stop()
	t.Logf("all gone after %s", time.Since(begun))
	w.wantProcesses(running)
}
