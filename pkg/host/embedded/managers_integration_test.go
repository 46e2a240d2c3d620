//go:build integration

package embedded_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/images/imagestest"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process/processtest"
)

// managerImage holds this test as its program.
const managerImage = "registry.example.com/test/manager:v1"

// createWithImage is create, with the managers' image in the store.
func createWithImage(t *testing.T, h *embedded.Host) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	archive := imagestest.Archive(t, map[string]imagestest.Image{managerImage: {Program: exe}})
	if err := h.Create(t.Context(), host.CreateOptions{Images: imagesOf(archive)}); err != nil {
		t.Fatal(err)
	}
}

// deploy makes a Deployment of a manager, with a Secret and a folder of its own.
func deploy(t *testing.T, h *embedded.Host, name string, args ...string) {
	t.Helper()
	api, labels := client(t, h), map[string]string{"app": name}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": "t0ken"}}
	if _, err := api.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}},
		},
		Containers: []corev1.Container{{
			Name: "manager", Image: managerImage, Args: args,
			Ports: []corev1.ContainerPort{{Name: "healthz", ContainerPort: 9440}},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "data", MountPath: "/data"}, {Name: "secret", MountPath: "/secret"},
			},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("healthz")},
			}},
		}},
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
	if _, err := api.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// eventually asks until what is said is empty: then it is as wanted.
func eventually(t *testing.T, what string, ask func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		said := ask()
		if said == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %s: %s", what, patience, said)
		}
	}
}

// wantManagers waits until all Deployments are Available, each with a process of its own that runs now, and returns all processes of
// the host but the supervisor.
func wantManagers(t *testing.T, h *embedded.Host, dir string, count int) map[process.Identity]string {
	t.Helper()
	eventually(t, "the managers run", func() string {
		all, err := client(t, h).AppsV1().Deployments("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(all.Items) != count {
			return fmt.Sprintf("%d Deployments, %v", len(all.Items), err)
		}
		for _, d := range all.Items {
			if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != 1 || managerOf(t, dir, d.Name) == (process.Identity{}) {
				return fmt.Sprintf("%s: %+v", d.Name, d.Status)
			}
		}
		return ""
	})
	return processtest.Of(t, dir)
}

// managerOf is the process of a Deployment in the namespace default, as the host has written it down; zero where none runs.
func managerOf(t *testing.T, dir, name string) process.Identity {
	t.Helper()
	return programOf(t, dir, "default/"+name)
}

func programOf(t *testing.T, dir, name string) process.Identity {
	t.Helper()
	running, err := process.Running(filepath.Join(dir, "processes"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range running {
		if r.Name == name {
			return r.Identity
		}
	}
	return process.Identity{}
}

// TestKilledSupervisorLeavesNoManager has managers with children of their own, which the kernel does not end with their supervisor: the
// next start does, and starts each manager once.
func TestKilledSupervisorLeavesNoManager(t *testing.T) {
	const count, each, plane = 8, 2, 3 // a manager has a child; etcd, the API server and the controller manager
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir, ImageDir: filepath.Join(t.TempDir(), "images"), Programs: programs(t)})
	createWithImage(t, h)
	for i := range count {
		deploy(t, h, fmt.Sprintf("manager-%d", i), "--child")
	}
	before := wantManagers(t, h, dir, count)
	if len(before) != plane+count*each {
		t.Errorf("%d processes: %v", len(before), before)
	}
	holder, children := supervisor(t, dir)
	if len(children) < plane+count {
		t.Errorf("the supervisor has %d children", len(children))
	}
	if err := holder.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantGone(t, append(children, holder)...)

	create(t, h)
	for id, line := range before {
		if id.Alive() {
			t.Errorf("process %d is left over: %s", id.PID, line)
		}
	}
	wantManagers(t, h, dir, count)
	// What the status says is of before the kill until somebody has looked: a manager runs already, and its child comes a moment later.
	eventually(t, "each manager has its child", func() string {
		if after := processtest.Of(t, dir); len(after) != plane+count*each {
			return fmt.Sprintf("%d processes, before the kill %d: %v", len(after), len(before), after)
		}
		return ""
	})
	holder, _ = supervisor(t, dir)
	if left, err := h.Delete(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("Delete: %v, %v", left, err)
	}
	if left := processtest.Of(t, dir); len(left) > 0 || holder.Alive() {
		t.Errorf("Delete leaves %v; the supervisor lives: %v", left, holder.Alive())
	}
}

// TestTwoHostsSideBySide has two with managers of the same image: neither has the other's ports nor its data, they keep their ports
// over a stop, and the end of one is nothing to the other.
func TestTwoHostsSideBySide(t *testing.T) {
	base, images := t.TempDir(), filepath.Join(t.TempDir(), "images")
	dirs := []string{filepath.Join(base, "one"), filepath.Join(base, "two")}
	var hosts []*embedded.Host
	for i, dir := range dirs {
		h := newHost(t, embedded.Options{StateDir: dir, ImageDir: images, Programs: programs(t)})
		createWithImage(t, h)
		deploy(t, h, "manager")
		makeNamespace(t, h, fmt.Sprintf("of-%d", i))
		hosts = append(hosts, h)
	}
	one, two := hosts[0], hosts[1]
	kept := wantManagers(t, one, dirs[0], 1)
	wantManagers(t, two, dirs[1], 1)
	for i, h := range hosts {
		list, err := client(t, h).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return n.Name == fmt.Sprintf("of-%d", 1-i) }) {
			t.Errorf("host %d has the other's namespace", i)
		}
	}
	portsOf := func(dir string) string {
		t.Helper()
		plane, err := os.ReadFile(filepath.Join(dir, "control-plane", "ports.json"))
		managers, err2 := os.ReadFile(filepath.Join(dir, "runner", "ports.json"))
		if err := cmp.Or(err, err2); err != nil {
			t.Fatal(err)
		}
		return string(plane) + string(managers)
	}
	before := portsOf(dirs[1])
	if before == portsOf(dirs[0]) {
		t.Errorf("both have the ports %s", before)
	}
	if err := two.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	createWithImage(t, two)
	wantManagers(t, two, dirs[1], 1)
	if after := portsOf(dirs[1]); after != before {
		t.Errorf("the ports were %s and are %s", before, after)
	}
	if left, err := two.Delete(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("Delete: %v, %v", left, err)
	}
	if left := processtest.Of(t, dirs[1]); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	wantState(t, one, host.StateRunning)
	wantNamespace(t, one, "of-0")
	for id, line := range kept {
		if !id.Alive() {
			t.Errorf("the end of the other one has ended %s", line)
		}
	}
}

// waitForLog waits until the log of a program of the host has all of the words in one line.
func waitForLog(t *testing.T, h *embedded.Host, program string, words ...string) {
	t.Helper()
	eventually(t, "the log of "+program, func() string {
		f, err := h.Log(program)
		if err != nil {
			return err.Error()
		}
		defer f.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(f); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return ""
			}
		}
		return fmt.Sprintf("no line with %q in\n%s", words, &b)
	})
}

// TestControlPlaneKilledUnderManagers kills etcd and the API server, one after the other. The log says which program ended and how, the
// written objects are there, and the managers' processes keep running.
func TestControlPlaneKilledUnderManagers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir, ImageDir: filepath.Join(t.TempDir(), "images"), Programs: programs(t)})
	createWithImage(t, h)
	deploy(t, h, "manager")
	wantManagers(t, h, dir, 1)
	manager := managerOf(t, dir, "manager")
	for _, program := range []string{"etcd", "kube-apiserver"} {
		makeNamespace(t, h, "before-"+program)
		killed := programOf(t, dir, program)
		if err := killed.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitForLog(t, h, "supervisor", program+" ended with signal killed", "started again")
		waitForLog(t, h, "supervisor", program+" is ready again")
		eventually(t, "the API answers", func() string {
			_, err := client(t, h).CoreV1().Namespaces().Get(context.WithoutCancel(t.Context()), "before-"+program, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			return ""
		})
		if now := programOf(t, dir, program); now == killed || now == (process.Identity{}) {
			t.Errorf("%s was process %d and is %d", program, killed.PID, now.PID)
		}
		if err := h.Trouble(); err != nil {
			t.Errorf("it complains still: %v", err)
		}
	}
	deploy(t, h, "later")
	wantManagers(t, h, dir, 2)
	if now := managerOf(t, dir, "manager"); now != manager {
		t.Errorf("the manager was process %d and is %d", manager.PID, now.PID)
	}
}

// TestStateIsPrivate walks all that a host with a manager keeps, made where the user's umask forbids nothing.
func TestStateIsPrivate(t *testing.T) {
	before := syscall.Umask(0)
	t.Cleanup(func() { syscall.Umask(before) })
	dir := filepath.Join(t.TempDir(), "host")
	h := newHost(t, embedded.Options{StateDir: dir, ImageDir: filepath.Join(t.TempDir(), "images"), Programs: programs(t)})
	createWithImage(t, h)
	deploy(t, h, "manager")
	wantManagers(t, h, dir, 1)
	seen := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was a temporary file
		}
		if err != nil || d.Type() == fs.ModeSymlink {
			return err // what it leads to counts
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is open to others: %s", path, info.Mode())
		}
		seen[d.Name()] = true
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{
		"admin.kubeconfig", "ca.key", "egress.sock", "db", "supervisor.log", "default_manager.log", "token",
		"made", "ports.json",
	} {
		if !seen[name] {
			t.Errorf("there is no %s: the test shows little", name)
		}
	}
}
