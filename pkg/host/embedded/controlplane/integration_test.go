//go:build integration

package controlplane_test

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/controlplane"
	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
	"github.com/fleetctl/fleetctl/pkg/testprograms"
)

const patience = 2 * time.Minute

// programs are the same programs that the integration tests of other packages use.
func programs(t *testing.T) controlplane.Programs {
	t.Helper()
	dir := testprograms.ControlPlane(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	return controlplane.Programs{Etcd: path("etcd"), APIServer: path("kube-apiserver"), ControllerManager: path("kube-controller-manager")}
}

// start runs a control plane until the test ends.
func start(t *testing.T, o controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	if o.Programs == (controlplane.Programs{}) {
		o.Programs = programs(t)
	}
	if o.Log == nil {
		o.Log = t.Logf
	}
	began := time.Now()
	c, err := controlplane.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() { stop(t, c) })
	return c
}

func stop(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	began := time.Now()
	if err := c.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	t.Logf("stopped after %s", time.Since(began).Round(time.Millisecond))
}

// client is the administrator's.
func client(t *testing.T, c *controlplane.ControlPlane) *kubernetes.Clientset {
	t.Helper()
	raw, err := c.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	return clientset(t, config)
}

func clientset(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// await watches until a condition holds for the object of that name.
func await(t *testing.T, lw cache.ListerWatcher, kind runtime.Object, what string, condition watchtools.ConditionFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := watchtools.UntilWithSync(ctx, lw, kind, nil, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestWhatCAPIAndFluxRelyOn(t *testing.T) {
	c := start(t, controlplane.Options{Dir: t.TempDir()})
	api, ctx := client(t, c).CoreV1(), t.Context()
	if _, err := api.Namespaces().Create(ctx, namespace("apps"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	there := func(e watch.Event) (bool, error) { return e.Type == watch.Added || e.Type == watch.Modified, nil }
	await(t, cache.NewListWatchFromClient(api.RESTClient(), "serviceaccounts", "apps",
		fields.OneTermEqualSelector("metadata.name", "default")),
		&corev1.ServiceAccount{}, "the default service account", there)
	await(t, cache.NewListWatchFromClient(api.RESTClient(), "configmaps", "apps",
		fields.OneTermEqualSelector("metadata.name", "kube-root-ca.crt")),
		&corev1.ConfigMap{}, "the authority's certificate", there)

	// A Secret that asks for a token gets one, and deleting an owner deletes its objects.
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"},
	}, Type: corev1.SecretTypeServiceAccountToken}
	if _, err := api.Secrets("apps").Create(ctx, token, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, cache.NewListWatchFromClient(api.RESTClient(), "secrets", "apps", fields.OneTermEqualSelector("metadata.name", "token")),
		&corev1.Secret{}, "a token", func(e watch.Event) (bool, error) {
			s, ok := e.Object.(*corev1.Secret)
			return ok && len(s.Data["token"]) > 0, nil
		})
	owner, err := api.ConfigMaps("apps").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
	}}}
	if _, err := api.ConfigMaps("apps").Create(ctx, owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	gone := func(e watch.Event) (bool, error) { return e.Type == watch.Deleted, nil }
	deleted := make(chan error, 1)
	go func() { deleted <- api.ConfigMaps("apps").Delete(ctx, "owner", metav1.DeleteOptions{}) }()
	await(t, cache.NewListWatchFromClient(api.RESTClient(), "configmaps", "apps", fields.OneTermEqualSelector("metadata.name", "owned")),
		&corev1.ConfigMap{}, "garbage collection", gone)
	if err := <-deleted; err != nil {
		t.Error(err)
	}
	go func() { deleted <- api.Namespaces().Delete(ctx, "apps", metav1.DeleteOptions{}) }()
	await(t, cache.NewListWatchFromClient(api.RESTClient(), "namespaces", "", fields.OneTermEqualSelector("metadata.name", "apps")),
		&corev1.Namespace{}, "the namespace's end", gone)
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

func TestNobodyElseGetsIn(t *testing.T) {
	c := start(t, controlplane.Options{Dir: t.TempDir()})
	stranger := rest.AnonymousClientConfig(c.Config())
	_, err := clientset(t, stranger).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("anonymous: %v", err)
	}
	wantNothing(t, stranger)
	for _, p := range c.Processes() {
		for _, l := range listeners(t, p.Status().Identity.PID) {
			if !strings.HasPrefix(l, "127.0.0.1:") {
				t.Errorf("%s listens on %s", p.Name(), l)
			}
		}
	}
}

// wantNothing asks without a credential for what an API server has for everybody by its own default, and for more.
func wantNothing(t *testing.T, stranger *rest.Config) {
	t.Helper()
	client, err := rest.HTTPClientFor(stranger)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/", "/version", "/version/", "/healthz", "/livez", "/readyz", "/readyz?verbose", "/readyz/etcd", "/metrics", "/api",
		"/apis", "/api/v1/namespaces",
		"/openapi/v2", "/openapi/v3", "/.well-known/openid-configuration", "/openid/v1/jwks", "/logs", "/debug/pprof/", "/none",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			req, err := http.NewRequestWithContext(t.Context(), method, stranger.Host+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusUnauthorized || strings.Contains(string(body), "v1.") {
				t.Errorf("%s %s: %s, %v: %.200s", method, path, resp.Status, err, body)
			}
		}
	}
}

// listeners are the addresses of a process's TCP sockets that listen.
func listeners(t *testing.T, pid int) []string {
	t.Helper()
	inodes := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, "socket:[") {
			inodes[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	var found []string
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			const listening = "0A"
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != listening || !inodes[f[9]] {
				continue
			}
			var a, b, c, d, port uint
			if n, _ := fmt.Sscanf(f[1], "%2x%2x%2x%2x:%x", &a, &b, &c, &d, &port); n != 5 || table == "tcp6" {
				found = append(found, table+" "+f[1])
				continue
			}
			found = append(found, fmt.Sprintf("%d.%d.%d.%d:%d", d, c, b, a, port))
		}
	}
	return found
}

// TestCrash kills each process; the log tells, the data stay, and the control plane is there again by itself.
func TestCrash(t *testing.T) {
	var mu sync.Mutex
	var told strings.Builder
	c := start(t, controlplane.Options{Dir: t.TempDir(), Log: func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&told, format+"\n", args...)
	}})
	for i, p := range c.Processes() {
		name := fmt.Sprintf("before-%d", i)
		if _, err := client(t, c).CoreV1().Namespaces().Create(t.Context(), namespace(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		crash(t, c, p, name)
		mu.Lock()
		if want := p.Name() + " ended with signal killed"; !strings.Contains(told.String(), want) {
			t.Errorf("it is not told that %s:\n%s", want, &told)
		}
		mu.Unlock()
	}
}

// crash kills a process, and waits until it is there again and the API server with a namespace of before.
func crash(t *testing.T, c *controlplane.ControlPlane, p *process.Supervisor, kept string) {
	t.Helper()
	before := p.Status().Identity
	if err := before.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for p.Status().Restarts == 0 || p.Status().Identity == (process.Identity{}) || p.Status().Identity == before {
		if ctx.Err() != nil {
			t.Fatalf("%s was not started again", p.Name())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := c.Ready(ctx); err != nil {
		t.Fatalf("after %s was killed: %v", p.Name(), err)
	}
	// The API server says that it is ready before its connection to an etcd that was killed is back.
	for {
		_, err := client(t, c).CoreV1().Namespaces().Get(ctx, kept, metav1.GetOptions{})
		if err == nil {
			return
		}
		if apierrors.IsNotFound(err) || ctx.Err() != nil {
			t.Fatalf("after %s was killed: %v", p.Name(), err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestSecondStart finds data, ports and keys as the first one left them, with certificates that have expired since, and with
// the API server's port taken by another program.
func TestSecondStart(t *testing.T) {
	dir := t.TempDir()
	if err := controlplane.MakeKeys(dir, time.Now().AddDate(-2, 0, 0)); err != nil {
		t.Fatal(err)
	}
	c := start(t, controlplane.Options{Dir: dir, Durable: true})
	server := c.Config().Host
	if _, err := client(t, c).CoreV1().Namespaces().Create(t.Context(), namespace("kept"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stop(t, c)
	c = start(t, controlplane.Options{Dir: dir, Durable: true})
	if now := c.Config().Host; now != server {
		t.Errorf("it was at %s and is at %s", server, now)
	}
	stop(t, c)

	thief, err := net.Listen("tcp", strings.TrimPrefix(server, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	c = start(t, controlplane.Options{Dir: dir, Durable: true})
	if c.Config().Host == server {
		t.Errorf("it is at %s, which is taken", server)
	}
	if _, err := client(t, c).CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestTwoAtOnce(t *testing.T) {
	one, two := start(t, controlplane.Options{Dir: t.TempDir()}), start(t, controlplane.Options{Dir: t.TempDir()})
	if _, err := client(t, one).CoreV1().Namespaces().Create(t.Context(), namespace("one"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, two).CoreV1().Namespaces().Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other has it as well: %v", err)
	}
}

func TestReasonOfAProgramThatCannotRun(t *testing.T) {
	p := programs(t)
	p.APIServer = "/bin/false"
	_, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Programs: p})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended with exit code 1") {
		t.Errorf("got %v", err)
	}
	p.APIServer = "/no/such/program"
	_, err = controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Programs: p})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

// An issuer that clouds can read stands in new tokens and in what there is to publish; tokens from before it was set stay good.
func TestIssuer(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	c := start(t, controlplane.Options{Dir: dir, Durable: true})
	token := func() string {
		t.Helper()
		api := client(t, c).CoreV1()
		await(t, cache.NewListWatchFromClient(api.RESTClient(), "serviceaccounts", "default",
			fields.OneTermEqualSelector("metadata.name", "default")),
			&corev1.ServiceAccount{}, "the default service account",
			func(e watch.Event) (bool, error) { return e.Type == watch.Added || e.Type == watch.Modified, nil })
		request, err := api.ServiceAccounts("default").CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return request.Status.Token
	}
	good := func(token string) {
		t.Helper()
		review, err := client(t, c).AuthenticationV1().TokenReviews().Create(ctx,
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil || !review.Status.Authenticated {
			t.Errorf("the token is not good: %+v, %v", review.Status, err)
		}
	}
	before := token()
	good(before)
	stop(t, c)
	c = start(t, controlplane.Options{Dir: dir, Durable: true, Issuer: "https://oidc.example.com/mgmt"})
	good(before)
	after := token()
	good(after)
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(after, ".")[1])
	if err != nil || !strings.Contains(string(claims), `"iss":"https://oidc.example.com/mgmt"`) {
		t.Errorf("the token says %s, %v", claims, err)
	}
	raw, err := client(t, c).Discovery().RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(ctx)
	if err != nil || !strings.Contains(string(raw), `"jwks_uri":"https://oidc.example.com/mgmt/openid/v1/jwks"`) ||
		!strings.Contains(string(raw), `"id_token_signing_alg_values_supported":["RS256"]`) {
		t.Errorf("published is %s, %v", raw, err)
	}
	keys, err := client(t, c).Discovery().RESTClient().Get().AbsPath("/openid/v1/jwks").
		SetHeader("Accept", "application/json, application/jwk-set+json").DoRaw(ctx)
	if err != nil {
		t.Fatal(err)
	}
	verifiedByCloud(t, after, keys)
}

// verifiedByCloud verifies a token as a cloud does, which has nothing but the published keys.
func verifiedByCloud(t *testing.T, token string, published []byte) {
	t.Helper()
	parts := strings.Split(token, ".")
	decoded := func(text string) []byte {
		t.Helper()
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	var header struct{ Alg, Kid string }
	var set struct {
		Keys []struct{ Alg, Kid, Kty, Use, N, E string }
	}
	if err := errors.Join(json.Unmarshal(decoded(parts[0]), &header), json.Unmarshal(published, &set)); err != nil {
		t.Fatal(err)
	}
	for _, key := range set.Keys {
		if key.Kid != header.Kid {
			continue
		}
		public := &rsa.PublicKey{N: new(big.Int).SetBytes(decoded(key.N)), E: int(new(big.Int).SetBytes(decoded(key.E)).Int64())}
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		if err := rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], decoded(parts[2])); err != nil || header.Alg != "RS256" ||
			key.Alg != "RS256" || key.Kty != "RSA" || key.Use != "sig" {
			t.Errorf("no cloud accepts the token with the header %+v by the key %+v: %v", header, key, err)
		}
		return
	}
	t.Errorf("the token's key %s is not among the published: %s", header.Kid, published)
}
