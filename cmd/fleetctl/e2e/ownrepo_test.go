//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// TestStandsAloneInItsOwnRepo brings the example in two repos up: the masters' repo makes a management cluster, whose own repository is
// made, pushed and followed with tokens of its own. After that neither the root nor the masters' repo is there any more.
func TestStandsAloneInItsOwnRepo(t *testing.T) {
	own := newServer(t)
	secrets := t.TempDir()
	tokens, readToken := filepath.Join(secrets, "own-token"), filepath.Join(secrets, "own-read-token")
	for name, token := range map[string]string{tokens: own.Token, readToken: own.ReadToken} {
		if err := os.WriteFile(name, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	clone := filepath.Join(t.TempDir(), "own")
	a := newStandingAlone(t, "e2e-owner", "e2e-own", "--own-repo", clone, "--own-git-token-file", tokens, "--own-flux-token-file", readToken)
	f, above, files, child := a.fleet, a.server, a.files, a.child
	files["own-ca.pem"] = string(own.CA)
	declared := "    cloud: eu\n"
	if strings.Count(files["fleet.yaml"], declared) != 1 {
		t.Fatalf("fleet.yaml of the example:\n%s", files["fleet.yaml"])
	}
	files["fleet.yaml"] = strings.Replace(files["fleet.yaml"], declared, declared+fmt.Sprintf(`    repository:
      git:
        url: %s
        username: %s
        caFile: own-ca.pem
        interval: 10s
      environments: [prod]
`, own.URL, own.Username), 1)
	f.commit("The masters", files)
	if !a.madeAlone() {
		return
	}
	x := *f // works in the repository of child, with no credential of the masters
	x.t, x.dir, x.token, x.fluxToken = t, clone, own.Token, own.ReadToken
	f.step("each repository has its part", func(t *testing.T) {
		for _, name := range []string{
			"providers/eu/v1/clusters/regions/" + child + "/cluster.yaml",
			"providers/eu/v1/clusters/prod/shop/cluster.yaml", "providers/eu/v1/mgmt/flux-system/gotk-sync.yaml",
		} {
			own.File(t, "main", name)
		}
		if there := x.git("ls-files", "providers/root"); there != "" {
			t.Errorf("the repository of its own has %s", there)
		}
		authorities := filepath.Join(secrets, "above-ca.pem")
		if err := os.WriteFile(authorities, above.CA, 0o600); err != nil {
			t.Fatal(err)
		}
		from := strings.Replace(above.URL, "https://", "https://"+above.Username+":"+above.Token+"@", 1)
		t.Setenv("GIT_SSL_CAINFO", authorities) // which goes before the configuration
		f.git("pull", "-q", "--ff-only", from, "main")
		if there := f.git("ls-files", "providers/eu", "providers/root/v1/clusters/regions/"+child); there != "" {
			t.Errorf("the masters' repository has %s", there)
		}
		if record := above.File(t, "main", "providers/root/v1/handed-over/"+child+".yaml"); !strings.Contains(record,
			"cluster: regions/"+child) || strings.Contains(record, "handingOver") {
			t.Errorf("the record:\n%s", record)
		}
		f.ok("validate")
		x.ok("validate")
		x.ok("diff")
		f.fails(2, []string{"has a fleet repo of its own, " + own.URL}, append([]string{"init"}, a.of...)...)
	})
	f.step("its Flux follows its own path of its own repository, with its own token", func(t *testing.T) {
		mgmt := x.client(a.kubeconfig)
		url, path, password := sourceOf(t, mgmt)
		if url != own.URL || path != "./providers/eu/v1/mgmt" || password != own.ReadToken {
			t.Errorf("it follows %s of %s", path, url)
		}
	})
	f.step("it works from either repository, without the root", func(t *testing.T) {
		x.ok(append([]string{"init", "-o", "json"}, append(a.bundle, a.of...)...)...)
		for name, where := range map[string]*fleet{"its own": &x, "the masters'": f} {
			eventually(t, "it is Ready, seen from "+name, 5*time.Minute, func() string {
				st, code := where.status(a.of...)
				if code != 0 || len(st.Clusters) != 2 {
					return fmt.Sprintf("exit %d, %d clusters, %+v", code, len(st.Clusters), st.Problems)
				}
				return ""
			})
		}
	})
	a.scales(&x)
	a.nothingToDo()
}

// sourceOf is what the Flux of a management cluster follows, and with which password.
func sourceOf(t *testing.T, c *kube.Client) (url, path, password string) {
	t.Helper()
	key := kube.Key{Namespace: flux.Namespace, Name: flux.Name}
	source := object("source.toolkit.fluxcd.io/v1", "GitRepository")
	sync := object("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
	credentials := &corev1.Secret{}
	for _, o := range []client.Object{source, sync, credentials} {
		if err := c.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
	}
	url, _, _ = unstructured.NestedString(source.Object, "spec", "url")
	path, _, _ = unstructured.NestedString(sync.Object, "spec", "path")
	_, password = flux.PasswordIn(credentials)
	return url, path, password
}
