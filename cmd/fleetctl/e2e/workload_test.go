//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

// What every cluster of an environment runs.
const greeting = `apiVersion: v1
kind: ConfigMap
metadata:
  name: greeting
  namespace: default
data:
  said: ${cluster_name} in ${environment}
`

// hello is what the feature of the same name has in its namespace.
func hello(word string) map[string]string {
	return map[string]string{
		"features/hello/namespaced/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: hello\n" +
			"resources: [word.yaml]\n",
		"features/hello/namespaced/word.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: word\ndata:\n  word: " + word + "\n",
	}
}

// What stands for the network: the node images have theirs.
const network = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: network\n  namespace: kube-system\n"

// inFolders has, for each environment and for each cluster, a namespace among what is not namespaced, and a ConfigMap in it among what is.
func inFolders() map[string]string {
	files := map[string]string{}
	put := func(dir, name string) {
		files[dir+"/non-namespaced/namespace.yaml"] = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + name + "\n"
		files[dir+"/namespaced/said.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: said\n  namespace: " + name +
			"\ndata:\n  said: ${cluster_name} in ${environment}\n"
	}
	for name, environment := range map[string]string{west: westIn, east: eastIn, north: westIn} {
		dir := "providers/docker/v1/clusters/" + environment
		put(dir+"/common", "of-"+environment)
		put(dir+"/"+name, "of-"+name)
	}
	return files
}

// The clusters of containers, and the environments that they are in: one follows the branch, one a channel of tags, and one has no Flux of
// its own.
const (
	west, westIn = "west", "dev"
	east, eastIn = "east", "production"
	north        = "north"
)

// clustersOfContainers goes from `cluster add --commit` to Available clusters, in two environments, each with what its environment runs,
// applied by its own Flux with credentials that are encrypted in Git, or by the management cluster's.
func clustersOfContainers(t *testing.T, s *story) {
	s.ok("channel", "add", "release", "--commit")
	s.ok("environment", "add", eastIn, "--channel", "release", "--commit")
	s.ok("feature", "add", "hello", "--commit")
	s.commit("say hello", hello("hello"))
	s.ok("feature", "enable", "hello", "--commit")
	s.ok("tenant", "add", "shop", "--commit")
	manifests := filepath.Join(s.home, "network.yaml")
	if err := os.WriteFile(manifests, []byte(network), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ok("cni", "add", "bridge", "--from", manifests, "--flavour", "docker", "--commit")
	values := filepath.Join(s.home, "values.yaml")
	if err := os.WriteFile(values, []byte(dockerValues(0, nodeImage(t))+"pools: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, environment := range map[string]string{west: westIn, east: eastIn} {
		s.commit("greet in "+environment,
			map[string]string{"providers/docker/v1/clusters/" + environment + "/common/apps/greeting.yaml": greeting})
		s.ok("cluster", "add", name, "--flavour", "docker", "--environment", environment, "--values", values, "--commit")
	}
	s.ok("cluster", "add", north, "--flavour", "docker", "--environment", westIn, "--values", values, "--flux", "remote", "--commit")
	s.commit("fill the folders", inFolders())
	s.fails(3, []string{"environment " + westIn, "--skip-health"}, "promote")
	s.ok("promote", "--skip-health") // so that all come up side by side
	eventually(t, "all clusters are Ready", 10*time.Minute, func() string {
		st, code := s.status()
		for _, c := range st.Clusters {
			if c.Available && c.Flux.Ready != c.Ready {
				t.Errorf("an Available cluster is Ready with its Flux, not before: %+v", c)
			}
		}
		if code == 0 && len(st.Clusters) == 3 {
			return ""
		}
		return fmt.Sprintf("%+v", st.Problems)
	})
	if nodes := containers(t, west+"-"); len(nodes) < 2 { // a node and the load balancer
		t.Errorf("containers of the cluster %s: %v", west, nodes)
	}
}

// applied looks at what the clusters have by themselves: what their environment runs, its feature and its tenant.
func applied(t *testing.T, s *story) {
	for name, environment := range map[string]string{west: westIn, east: eastIn, north: westIn} {
		s.clients[name] = s.workload(name)
		var namespaces corev1.NamespaceList
		if err := s.clients[name].List(t.Context(), &namespaces, client.MatchingFields{"metadata.name": "flux-system"}); err != nil {
			t.Fatal(err)
		}
		if own := len(namespaces.Items) > 0; own == (name == north) {
			t.Errorf("%s has a Flux of its own: %v", name, own)
		} else if own {
			// Of the folder that north shares, only Flux objects reach it.
			if got, want := s.said(t, name, "default", "greeting", "said"), name+" in "+environment; got != want {
				t.Errorf("%s says %q, want %q", name, got, want)
			}
		}
		if err := s.clients[name].Get(t.Context(), kube.Key{Namespace: "kube-system", Name: "network"}, &corev1.ConfigMap{}); err != nil {
			t.Errorf("%s has no network: %v", name, err)
		}
		for _, namespace := range []string{"of-" + environment, "of-" + name} {
			if got, want := s.said(t, name, namespace, "said", "said"), name+" in "+environment; got != want {
				t.Errorf("in the namespace %s %s says %q, want %q", namespace, name, got, want)
			}
		}
		var alone corev1.NamespaceList
		if err := s.clients[name].List(t.Context(), &alone); err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{west, east, north} {
			if other != name && slices.ContainsFunc(alone.Items, func(n corev1.Namespace) bool { return n.Name == "of-"+other }) {
				t.Errorf("%s has what is meant for %s", name, other)
			}
		}
		if got := s.said(t, name, "hello", "word", "word"); got != "hello" {
			t.Errorf("the feature of %s says %q", name, got)
		}
		var roles rbacv1.RoleBindingList
		if err := s.clients[name].List(t.Context(), &roles, client.InNamespace("shop")); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{westIn: "admin", eastIn: "view"}[environment]
		if !slices.ContainsFunc(roles.Items, func(r rbacv1.RoleBinding) bool { return r.RoleRef.Name == want }) {
			t.Errorf("no role %s for the tenant of %s: %+v", want, name, roles.Items)
		}
		sealed := s.git("show", "HEAD:providers/docker/v1/clusters/"+environment+"/common/sync/git-auth.sops.yaml")
		if !strings.Contains(sealed, "password: ENC[") {
			t.Errorf("the credentials of %s are not encrypted in Git:\n%s", environment, sealed)
		}
	}
}

// said is a value of a ConfigMap of a workload cluster.
func (s *story) said(t *testing.T, cluster, namespace, name, key string) string {
	t.Helper()
	var found corev1.ConfigMap
	if err := s.clients[cluster].Get(t.Context(), kube.Key{Namespace: namespace, Name: name}, &found); err != nil {
		return err.Error()
	}
	return found.Data[key]
}

// fetches lets the Flux of a cluster look at its sources now, instead of within a minute.
func (s *story) fetches(t *testing.T, cluster *kube.Client) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepositoryList"})
	if err := cluster.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		looks(t, cluster, &list.Items[i])
	}
}

// looks makes Flux look at an object now.
func looks(t *testing.T, cluster *kube.Client, obj *unstructured.Unstructured) {
	t.Helper()
	now := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano))
	if err := cluster.Patch(t.Context(), obj, client.RawPatch(types.MergePatchType, now)); err != nil {
		t.Fatal(err)
	}
}

// settles waits until the fleet is Ready. If Flux has recorded a wrong revision on the way back, it does what status says.
func (s *story) settles(t *testing.T, management *kube.Client) {
	t.Helper()
	command := regexp.MustCompile("`kubectl -n (\\S+) annotate --overwrite kustomization (\\S+) ")
	eventually(t, "the fleet is Ready", 3*time.Minute, func() string {
		st, code := s.status()
		for _, p := range st.Problems {
			if m := command.FindStringSubmatch(p.Hint); m != nil {
				t.Logf("%s: %s", p.Object, p.Reason)
				k := &unstructured.Unstructured{}
				k.SetGroupVersionKind(schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"})
				k.SetNamespace(m[1])
				k.SetName(m[2])
				looks(t, management, k)
			}
		}
		if code == 0 {
			return ""
		}
		return fmt.Sprintf("exit %d, %+v", code, st.Problems)
	})
}

// promotedOnly: the same commit reaches dev by itself, and production with a promotion.
func promotedOnly(t *testing.T, s *story) {
	management := s.client(s.made.Kubeconfig)
	s.commit("say goodbye", hello("goodbye"))
	says := func(cluster, want string) {
		if cluster != north {
			s.fetches(t, s.clients[cluster])
		}
		eventually(t, cluster+" says "+want, 3*time.Minute, func() string {
			if got := s.said(t, cluster, "hello", "word", "word"); got != want {
				return got
			}
			return ""
		})
	}
	says(west, "goodbye")
	s.fetches(t, management)
	says(north, "goodbye")
	if got := s.said(t, east, "hello", "word", "word"); got != "hello" {
		t.Errorf("production says %q before it was promoted to", got)
	}
	s.promoted("v0.1.1")
	s.fetches(t, management)
	says(east, "goodbye")
	s.ok("promote", "--to", "v0.1.0")
	s.fetches(t, management)
	says(east, "hello")
	if got := s.said(t, west, "hello", "word", "word"); got != "goodbye" {
		t.Errorf("dev says %q after production went back", got)
	}
	s.settles(t, management)
}

// removeDead removes a cluster whose API server is dead.
func removeDead(t *testing.T, s *story) {
	for _, node := range containers(t, west+"-") {
		if !strings.HasSuffix(node, "-lb") { // the docker provider itself cannot do without that
			engine(t, "kill", node)
		}
	}
	s.ok("cluster", "remove", west, "--commit", "--wait")
	s.ok("cluster", "remove", west, "--yes", "--commit", "--wait", "--timeout", "6m")
	s.removed(t, west)
}

// removePromoted removes a cluster that follows tags: each step is promoted.
func removePromoted(t *testing.T, s *story) {
	s.ok("cluster", "remove", east, "--commit")
	s.fails(1, []string{"is not promoted"}, "cluster", "remove", east, "--yes", "--commit")
	s.promoted("v0.1.2")
	s.fetches(t, s.client(s.made.Kubeconfig))
	eventually(t, "production has applied v0.1.2", 3*time.Minute, func() string {
		for _, e := range decode[promotions](t, s.ok("promote", "--status", "-o", "json").stdout).Environments {
			if e.Name == eastIn && e.Tag == "v0.1.2" && e.Applied == e.Wanted && e.Ready {
				return ""
			} else if e.Name == eastIn {
				return fmt.Sprintf("%+v", e)
			}
		}
		return "no such environment"
	})
	s.ok("cluster", "remove", east, "--yes", "--commit")
	s.promoted("v0.1.3")
	s.fetches(t, s.client(s.made.Kubeconfig))
	eventually(t, east+" is gone", 6*time.Minute, func() string {
		st, _ := s.status()
		for _, c := range st.Clusters {
			if c.Name == east {
				return fmt.Sprintf("%+v", c)
			}
		}
		return ""
	})
	// As `cluster remove` says to do where it does not wait.
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(east)
	if err := s.client(s.made.Kubeconfig).Delete(t.Context(), []*unstructured.Unstructured{namespace},
		kube.DeleteOptions{Wait: true}); err != nil {
		t.Fatal(err)
	}
	s.removed(t, east)
}

// removed requires that nothing of a cluster is left.
func (s *story) removed(t *testing.T, cluster string) {
	t.Helper()
	if left := containers(t, cluster+"-"); len(left) > 0 {
		t.Errorf("containers: %v", left)
	}
	if err := s.client(s.made.Kubeconfig).Get(t.Context(), kube.Key{Name: cluster}, &corev1.Namespace{}); !kube.IsAbsent(err) {
		t.Errorf("the namespace is still there: %v", err)
	}
}

// workload is a client of a workload cluster, as its user gets it.
func (f *fleet) workload(name string) *kube.Client {
	f.t.Helper()
	path := filepath.Join(f.home, name+".kubeconfig")
	f.ok("cluster", "kubeconfig", name, "--output-file", path)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		f.t.Errorf("kubeconfig of %s: %v, %v; want mode 0600", name, info, err)
	}
	return f.client(path)
}

func (f *fleet) client(kubeconfig string) *kube.Client {
	f.t.Helper()
	content, err := os.ReadFile(kubeconfig)
	if err != nil {
		f.t.Fatal(err)
	}
	made, err := kube.New(content, kube.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	return made
}
