//go:build integration

package promotion

import (
	"net"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// A workload cluster that answers says what its Flux lacks, or why it does not tell. One that does not answer holds nothing up: an API
// server is often reachable from its management cluster only.
func TestLookInside(t *testing.T) {
	c, kubeconfig := kubetest.Start(t)
	manager, err := capi.New(c)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	reach := func(name, server, token string) {
		config, err := clientcmd.Load(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		for _, cluster := range config.Clusters {
			if server != "" {
				cluster.Server = server
			}
		}
		for _, user := range config.AuthInfos {
			if token != "" {
				user.ClientCertificateData, user.ClientKeyData, user.Token = nil, nil, token
			}
		}
		content, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}
		manifest := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: " +
			name + "-kubeconfig, namespace: " + name + "}\nstringData:\n  value: |\n    " +
			strings.ReplaceAll(string(content), "\n", "\n    ") + "\n"
		if _, err := kubetest.ApplyYAML(t.Context(), c, []byte(manifest), kube.ApplyOptions{FieldManager: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	reach("empty", "", "")
	reach("private", "https://"+nobody, "")
	reach("unknown", "", "nobody-has-this-token")
	var clusters []fleetrepo.Cluster
	for _, name := range []string{"empty", "private", "unknown", "remote"} {
		clusters = append(clusters, fleetrepo.Cluster{Name: name, Environment: "dev"})
	}
	applied := flux.Applied{Commit: strings.Repeat("1", 40), Own: []string{"empty", "private", "unknown"}}
	looks := []environmentLook{{Environment: "dev", Applied: applied}}
	p := &run{notAsked: map[string]string{}}
	p.lookInside(t.Context(), manager, clusters, looks, "")
	want := []string{
		"the Flux of cluster empty: GitRepository flux-system/flux-system: it does not exist",
		"the Flux of cluster unknown cannot be asked: ",
	}
	got := looks[0].Missing
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("missing: %q", got)
	}
	asked := p.clustersNotAsked()
	if len(asked) != 1 || asked[0].Cluster != "private" || !strings.Contains(asked[0].Reason, "connection refused") {
		t.Errorf("not asked: %+v", asked)
	}
}
