//go:build integration

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/images/imagestest"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// The images of all tests hold this program.
const (
	goodImage = "registry.example.com/test/manager:v1"
	newImage  = "registry.example.com/test/manager:v2"
	armImage  = "registry.example.com/test/manager:other-arch"
)

// world is an API server with a runner.
type world struct {
	*testing.T
	config *rest.Config
	client kubernetes.Interface
	runner *Runner
	store  *images.Store
	dir    string
	opts   Options
	stop   func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: it names the folder with etcd and kube-apiserver")
	}
	env := &envtest.Environment{}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	store, err := images.Open(t.TempDir(), images.Options{})
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	archive := imagestest.Archive(t, map[string]imagestest.Image{goodImage: {Program: exe}, newImage: {Program: exe, Extra: "2"}})
	if err := store.Load(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, config: config, client: client, store: store, dir: t.TempDir()}
	w.start()
	t.Cleanup(func() { w.stop() })
	w.account("manager")
	return w
}

// start runs a runner over the world's folder.
func (w *world) start() {
	w.Helper()
	opts := w.opts
	opts.Dir, opts.BackOff, opts.MaxBackOff = w.dir, 300*time.Millisecond, time.Second
	r, err := New(w.config, w.store, opts)
	if err != nil {
		w.Fatal(err)
	}
	w.runner = r
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			w.Error(err)
		}
	}()
	w.stop = func() { cancel(); <-done }
}

func (w *world) account(name string) {
	w.Helper()
	_, err := w.client.CoreV1().ServiceAccounts("default").Create(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

// deployment is one of a manager as providers have it.
func deployment(name string, args ...string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "manager",
					Containers: []corev1.Container{{
						Name: "manager", Image: goodImage, Command: []string{"/manager"}, Args: append([]string{"--leader-elect"}, args...),
						Ports: []corev1.ContainerPort{{Name: "healthz", ContainerPort: 9440}, {Name: "webhook", ContainerPort: 9443}},
						ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
							HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("healthz")},
						}},
					}},
				},
			},
		},
	}
}

func (w *world) create(d *appsv1.Deployment) *appsv1.Deployment {
	w.Helper()
	d, err := w.client.AppsV1().Deployments("default").Create(w.Context(), d, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return d
}

func (w *world) edit(name string, change func(*appsv1.Deployment)) {
	w.Helper()
	for {
		d, err := w.client.AppsV1().Deployments("default").Get(w.Context(), name, metav1.GetOptions{})
		if err != nil {
			w.Fatal(err)
		}
		change(d)
		_, err = w.client.AppsV1().Deployments("default").Update(w.Context(), d, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "the object has been modified") {
			w.Fatal(err)
		}
	}
}

func (w *world) get(name string) *appsv1.Deployment {
	w.Helper()
	d, err := w.client.AppsV1().Deployments("default").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// wait until the Deployment is as wanted.
func (w *world) wait(name, what string, ok func(*appsv1.Deployment) bool) *appsv1.Deployment {
	w.Helper()
	var d *appsv1.Deployment
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if d = w.get(name); d.Status.ObservedGeneration == d.Generation && ok(d) {
			return d
		}
	}
	status, _ := json.MarshalIndent(d.Status, "", " ")
	log, _ := os.ReadFile(w.runner.LogFile("default", name))
	w.Fatalf("%s is never %s: %s\nlog: %s", name, what, status, log)
	return nil
}

func (w *world) ready(name string) { w.Helper(); w.wait(name, "ready", isReady) }

func isReady(d *appsv1.Deployment) bool {
	return d.Status.AvailableReplicas == wantedReplicas(d) && d.Status.UpdatedReplicas == wantedReplicas(d) &&
		condition(d, appsv1.DeploymentAvailable).Status == corev1.ConditionTrue
}

func condition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return appsv1.DeploymentCondition{}
}

// service makes a Service for the Deployment of the same name, and returns its ClusterIP.
func (w *world) service(name string) string {
	w.Helper()
	s, err := w.client.CoreV1().Services("default").Create(w.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromString("webhook")}, {Name: "http", Port: 80, TargetPort: intstr.FromInt32(9440)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return s.Spec.ClusterIP
}

func (w *world) about(address string) about {
	w.Helper()
	resp, err := http.Get("http://" + address + "/about")
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	var a about
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		w.Fatal(err)
	}
	return a
}

func (w *world) resolve(host, port string) string {
	w.Helper()
	address, err := w.runner.Resolve(w.Context(), host, port)
	if err != nil {
		w.Fatal(err)
	}
	return address
}

func (w *world) secret(name string, data map[string]string) {
	w.Helper()
	secrets := w.client.CoreV1().Secrets("default")
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: data}
	if _, err := secrets.Update(w.Context(), s, metav1.UpdateOptions{}); err == nil {
		return
	}
	if _, err := secrets.Create(w.Context(), s, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) identity(name string) process.Identity {
	w.runner.mu.Lock()
	rec := w.runner.records[types.NamespacedName{Namespace: "default", Name: name}]
	w.runner.mu.Unlock()
	if rec == nil || rec.current() == nil {
		return process.Identity{}
	}
	return rec.current().view().status.Identity
}

func TestManagerWithCertificateThatComesLater(t *testing.T) {
	w := newWorld(t)
	d := deployment("manager")
	d.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cert", MountPath: "/tmp/k8s-webhook-server/serving-certs"}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "cert", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "cert"}}}}
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{
		{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
		{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
		{Name: "CERTS", Value: "/tmp/k8s-webhook-server/serving-certs/tls.crt"},
		{Name: "EXPANDED", Value: "in $(POD_NAMESPACE) $(NOT_SET) $$(POD_IP)"},
	}
	w.create(d)
	got := w.wait("manager", "waiting for its Secret", func(d *appsv1.Deployment) bool {
		return condition(d, appsv1.DeploymentAvailable).Reason == "WaitingForObjects"
	})
	if c := condition(got, appsv1.DeploymentAvailable); c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "Secret default/cert") {
		t.Errorf("waiting: %+v", c)
	}
	w.secret("cert", map[string]string{"tls.crt": "first"})
	begun := time.Now()
	w.ready("manager")
	t.Logf("ready %s after the Secret", time.Since(begun))
	ip := w.service("manager")
	var address string
	for deadline := time.Now().Add(5 * time.Second); address == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		address, _ = w.runner.Resolve(t.Context(), ip, "443")
	}
	if by := w.resolve("manager.default.svc", "443"); by != address {
		t.Errorf("by name %s, by address %s", by, address)
	}
	if host, _, _ := net.SplitHostPort(address); host != "127.0.0.1" {
		t.Errorf("address %s", address)
	}
	a := w.about(address)
	if a.Cert != "first" {
		t.Errorf("certificate: %q", a.Cert)
	}
	if a.env("POD_NAMESPACE") != "default" || a.env("POD_IP") != "127.0.0.1" || a.env("EXPANDED") != "in default $(NOT_SET) $(POD_IP)" {
		t.Errorf("environment: %v", a.Env)
	}
	if raw, err := os.ReadFile(a.env("CERTS")); string(raw) != "first" {
		t.Errorf("path in the environment: %s: %v", a.env("CERTS"), err)
	}
	for _, e := range a.Env {
		if name, _, _ := strings.Cut(e, "="); slices.Contains([]string{"USER", "SHELL", "KUBEBUILDER_ASSETS", "PWD", "LOGNAME"}, name) {
			t.Errorf("our own environment leaks: %s", e)
		}
	}
	w.secret("cert", map[string]string{"tls.crt": "second"})
	before := w.identity("manager")
	for deadline := time.Now().Add(5 * time.Second); w.about(address).Cert != "second"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the volume is never refreshed")
		}
	}
	if w.identity("manager") != before {
		t.Error("a changed Secret has restarted the process")
	}
}

func TestTokenHasItsAccountsRights(t *testing.T) {
	w := newWorld(t)
	_, err := w.client.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.client.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "r"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "manager", Namespace: "default"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.service("manager")
	w.create(deployment("manager"))
	w.ready("manager")
	calls := w.about(w.resolve("manager.default.svc.cluster.local", "443")).Calls
	if calls[0] != "<nil>" || !strings.Contains(calls[1], `"system:serviceaccount:default:manager" cannot list resource "secrets"`) {
		t.Errorf("calls: %q", calls)
	}
}

func TestCrashLoopIsVisible(t *testing.T) {
	w := newWorld(t)
	w.create(deployment("manager", "--fail=cannot read the configuration"))
	d := w.wait("manager", "in a crash loop", func(d *appsv1.Deployment) bool {
		c := condition(d, appsv1.DeploymentAvailable)
		return c.Reason == "CrashLoopBackOff" && strings.Contains(c.Message, "after 2 restarts")
	})
	if c := condition(d, appsv1.DeploymentAvailable); !strings.Contains(c.Message, "exit code 3") || !strings.Contains(c.Message, "cannot read the configuration") {
		t.Errorf("condition: %+v", c)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		events, err := w.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=manager,type=Warning"})
		if err != nil {
			t.Fatal(err)
		}
		if len(events.Items) > 0 && strings.Contains(events.Items[0].Message, "cannot read the configuration") && events.Items[0].Reason == "BackOff" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("events: %+v", events.Items)
		}
	}
	w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = nil })
	w.ready("manager")
}

func TestCrashedManagerComesBack(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	w.create(deployment("manager"))
	w.ready("manager")
	address := w.resolve("manager.default.svc", "443")
	before := w.identity("manager")
	if resp, err := http.Get("http://" + address + "/crash"); err == nil {
		_ = resp.Body.Close()
	}
	w.wait("manager", "unavailable", func(d *appsv1.Deployment) bool {
		return d.Status.AvailableReplicas == 0 && d.Status.UnavailableReplicas == 1
	})
	w.ready("manager")
	if now := w.identity("manager"); now == before || before.Alive() {
		t.Errorf("before %v, now %v", before, now)
	}
	if again := w.resolve("manager.default.svc", "443"); again != address {
		t.Errorf("the port has changed from %s to %s", address, again)
	}
}

func TestBadRolloutKeepsTheOldAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.create(deployment("manager"))
	w.ready("manager")
	before := w.identity("manager")
	w.edit("manager", func(d *appsv1.Deployment) {
		deadline := int32(1)
		d.Spec.ProgressDeadlineSeconds = &deadline
		d.Spec.Template.Spec.Containers[0].Image = "registry.invalid/no/such:image"
	})
	d := w.wait("manager", "told bad", func(d *appsv1.Deployment) bool {
		return condition(d, appsv1.DeploymentProgressing).Reason == "ProgressDeadlineExceeded"
	})
	if c := condition(d, appsv1.DeploymentProgressing); !strings.Contains(c.Message, "registry.invalid/no/such:image") {
		t.Errorf("condition: %+v", c)
	}
	if d.Status.UpdatedReplicas != 0 || d.Status.AvailableReplicas != 1 || w.identity("manager") != before {
		t.Errorf("the old one is gone: %+v", d.Status)
	}
	w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = newImage })
	w.ready("manager")
	if before.Alive() {
		t.Error("the old one still runs")
	}
}

func TestEditedWhileStarting(t *testing.T) {
	w := newWorld(t)
	w.service("manager")
	w.create(deployment("manager", "--unready", "--peer-addr=0"))
	for i := range 5 {
		time.Sleep(time.Duration(i*30) * time.Millisecond)
		w.edit("manager", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Args = []string{fmt.Sprintf("--peer-addr=%d", i)}
		})
	}
	w.ready("manager")
	if got := w.about(w.resolve("manager.default.svc", "443")).Peer; got != "4" {
		t.Errorf("runs version %s", got)
	}
}

func TestUnreadyIsNotAvailable(t *testing.T) {
	w := newWorld(t)
	w.create(deployment("manager", "--unready"))
	d := w.wait("manager", "told unready", func(d *appsv1.Deployment) bool {
		return strings.Contains(condition(d, appsv1.DeploymentAvailable).Message, "503")
	})
	if d.Status.ReadyReplicas != 0 || d.Status.Replicas != 1 {
		t.Errorf("status: %+v", d.Status)
	}
}

func TestWhatCannotRunIsRefusedByName(t *testing.T) {
	w := newWorld(t)
	sidecar := deployment("sidecar")
	sidecar.Spec.Template.Spec.Containers = append(sidecar.Spec.Template.Spec.Containers, corev1.Container{Name: "proxy", Image: goodImage})
	w.create(sidecar)
	claim := deployment("claim")
	claim.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}}}}
	w.create(claim)
	for name, field := range map[string]string{
		"sidecar": "spec.template.spec.containers: there are 2 (manager, proxy)", "claim": "volumes[data].persistentVolumeClaim",
	} {
		d := w.wait(name, "refused", func(d *appsv1.Deployment) bool {
			return condition(d, appsv1.DeploymentReplicaFailure).Status == corev1.ConditionTrue
		})
		c := condition(d, appsv1.DeploymentAvailable)
		if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, field) || !strings.Contains(c.Message, "--host kind") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestImageTrouble(t *testing.T) {
	w := newWorld(t)
	exe, _ := os.Executable()
	err := w.store.Load(t.Context(), imagestest.Archive(t, map[string]imagestest.Image{armImage: {Program: exe, Arch: "mips"}}))
	if err == nil || !strings.Contains(err.Error(), armImage+" is for linux/mips") {
		t.Errorf("wrong architecture: %v", err)
	}
	err = w.store.Load(t.Context(), imagestest.Archive(t, map[string]imagestest.Image{armImage: {Program: exe, Truncated: true, Extra: "t"}}))
	if err == nil || !strings.Contains(err.Error(), armImage) || !strings.Contains(err.Error(), "content has digest") {
		t.Errorf("truncated: %v", err)
	}
	d := deployment("manager")
	d.Spec.Template.Spec.Containers[0].Image = armImage
	d.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullNever
	w.create(d)
	got := w.wait("manager", "told", func(d *appsv1.Deployment) bool { return condition(d, appsv1.DeploymentAvailable).Message != "" })
	if c := condition(got, appsv1.DeploymentAvailable); !strings.Contains(c.Message, armImage) {
		t.Errorf("missing: %+v", c)
	}
}

func TestReplicasAndDeletion(t *testing.T) {
	w := newWorld(t)
	d := deployment("manager")
	three := int32(3)
	d.Spec.Replicas = &three
	w.create(d)
	w.ready("manager")
	running := w.identity("manager")
	w.edit("manager", func(d *appsv1.Deployment) { zero := int32(0); d.Spec.Replicas = &zero })
	w.wait("manager", "scaled down", func(d *appsv1.Deployment) bool { return d.Status.Replicas == 0 && !running.Alive() })
	w.edit("manager", func(d *appsv1.Deployment) { one := int32(1); d.Spec.Replicas = &one })
	w.ready("manager")
	running = w.identity("manager")
	if err := w.client.AppsV1().Deployments("default").Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); running.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the process outlives its Deployment")
		}
	}
}

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
	pids := map[int]bool{}
	for i := range count {
		pids[w.identity(fmt.Sprintf("manager-%d", i)).PID] = true
	}
	if len(pids) != count {
		t.Errorf("%d processes", len(pids))
	}
	begun = time.Now()
	w.stop()
	t.Logf("all gone after %s", time.Since(begun))
	w.stop = func() {}
}

func TestNothingIsTakenForItsNamesake(t *testing.T) {
	w := newWorld(t)
	cached := deployment("manager")
	cached.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	cached.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	for _, gone := range []string{"while the runner runs", "while no runner runs"} {
		w.create(cached.DeepCopy())
		w.ready("manager")
		file := filepath.Join(w.dir, runDir, "default", "manager", "volumes", "data", "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		w.edit("manager", func(d *appsv1.Deployment) { d.Spec.Template.Annotations = map[string]string{"restart": gone} })
		w.ready("manager")
		if _, err := os.Stat(file); err != nil {
			t.Errorf("a rollout has lost data: %v", err)
		}
		before := w.identity("manager")
		if gone == "while no runner runs" {
			w.stop()
		}
		if err := w.client.AppsV1().Deployments("default").Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.create(cached.DeepCopy())
		if gone == "while no runner runs" {
			w.start()
		}
		w.ready("manager")
		if _, err := os.Stat(file); err == nil || before.Alive() {
			t.Errorf("deleted %s: data of another Deployment: %v, its process lives: %v", gone, err, before.Alive())
		}
		if err := w.client.AppsV1().Deployments("default").Delete(t.Context(), "manager", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.gone(filepath.Dir(filepath.Dir(filepath.Dir(file))))
	}
	w.stop()
	stale := filepath.Join(w.dir, runDir, "default", "stale")
	if err := os.MkdirAll(stale, 0o700); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.gone(stale)
}

// gone waits until a file is no more.
func (w *world) gone(file string) {
	w.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Lstat(file); err != nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s stays", file)
		}
	}
}
