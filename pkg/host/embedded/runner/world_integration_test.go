//go:build integration

package runner

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/images"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/images/imagestest"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/testprograms"
)

// The images of all tests hold this program.
const (
	goodImage = "registry.example.com/test/manager:v1"
	newImage  = "registry.example.com/test/manager:v2"
	armImage  = "registry.example.com/test/manager:other-arch"
)

// patience is the time that a busy machine may need for the work of an instant.
const patience = time.Minute

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
	programs := testprograms.ControlPlane(t)
	config := testprograms.Start(t, func() *envtest.Environment { return &envtest.Environment{BinaryAssetsDirectory: programs} }).Config
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
	_, err := w.client.CoreV1().ServiceAccounts("default").Create(w.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
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
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if d = w.get(name); d.Status.ObservedGeneration == d.Generation && ok(d) {
			return d
		}
	}
	status, _ := json.MarshalIndent(d.Status, "", " ")
	log, _ := os.ReadFile(w.runner.logFile(types.NamespacedName{Namespace: "default", Name: name}))
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
			Ports: []corev1.ServicePort{
				{Name: "https", Port: 443, TargetPort: intstr.FromString("webhook")},
				{Name: "http", Port: 80, TargetPort: intstr.FromInt32(9440)},
			},
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

// current is the instance of a Deployment, or nil.
func (w *world) current(name string) *instance {
	w.runner.mu.Lock()
	rec := w.runner.records[types.NamespacedName{Namespace: "default", Name: name}]
	w.runner.mu.Unlock()
	if rec == nil {
		return nil
	}
	return rec.current()
}

func (w *world) identity(name string) process.Identity {
	i := w.current(name)
	if i == nil {
		return process.Identity{}
	}
	return i.view().status.Identity
}

// warned waits for an event of type Warning about a Deployment, for a reason and with those words.
func (w *world) warned(name, reason, words string) {
	w.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		events, err := w.client.CoreV1().Events("default").List(w.Context(), metav1.ListOptions{
			FieldSelector: "type=Warning,involvedObject.name=" + name + ",reason=" + reason,
		})
		if err != nil {
			w.Fatal(err)
		}
		if slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, words) }) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("no event says %q: %+v", words, events.Items)
		}
	}
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
