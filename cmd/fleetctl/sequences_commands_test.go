package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/cmd"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// names are what a fleet repo has, for commands to name.
type names struct {
	environments, clusters, features, tenants, networks, channels, managements []string
	pools                                                                      map[string][]string
}

func (s *sequence) names() names {
	s.Helper()
	r, err := fleetrepo.Open(s.dir)
	if err != nil {
		s.fail("open it: %v", err)
	}
	all, findings, err := r.Clusters()
	if err != nil || findings.Err() != nil {
		s.fail("list its clusters: %v, %v", err, findings)
	}
	n := names{
		environments: r.EnvironmentNames(), features: r.FeatureNames(), tenants: r.TenantNames(), networks: r.NetworkNames(),
		managements: r.ManagementClusterNames(), pools: map[string][]string{},
	}
	for _, c := range all {
		n.clusters = append(n.clusters, c.Name)
		for _, p := range c.Pools {
			n.pools[c.Name] = append(n.pools[c.Name], p.Name)
		}
	}
	for _, c := range r.Fleet.Channels() {
		n.channels = append(n.channels, c.Name)
	}
	return n
}

// args are the arguments of one of these.
func (s *sequence) args(of ...[]string) []string { return of[s.IntN(len(of))] }

// network is what a network of pods consists of, as far as anybody looks at it here.
const network = `apiVersion: v1
kind: ConfigMap
metadata: {name: net, namespace: kube-system}
data: {mtu: "%d"}
`

// command is one of all the commands that change a fleet repo. Most of what it names is there.
func (s *sequence) command() []string {
	n := s.names()
	env, cluster := s.one(append(n.environments, "qa")...), s.one(append(n.clusters, "c1")...)
	feature, tenant := s.one(append(n.features, "logs")...), s.one(append(n.tenants, "shop")...)
	pool := s.one(append(n.pools[cluster], "extra")...)
	number := fmt.Sprint(s.IntN(6))
	if len(n.clusters) == 0 && s.chance(40) {
		return []string{"cluster", "add", "c1", "--environment", env, "--flavour", s.one("docker", "in-memory")}
	}
	families := []func() []string{
		func() []string { return s.onEnvironment(n, env) },
		func() []string { return s.onCluster(n, cluster, env) },
		func() []string { return s.onCluster(n, cluster, env) },
		func() []string { return s.onPool(cluster, pool, number) },
		func() []string { return s.onFeature(n, feature) },
		func() []string { return s.onFeature(n, feature) },
		func() []string { return s.onChannel(n) },
		func() []string { return s.onNetwork(n, number) },
		func() []string { return s.onTenant(n, tenant) },
		func() []string { return s.onManagement(n) },
		func() []string { return s.onSecret(env, cluster, feature) },
		func() []string { return s.onRepo(strings.Fields(s.git("rev-list", "--max-count", "3", "HEAD"))) },
	}
	return families[s.IntN(len(families))]()
}

func (s *sequence) onEnvironment(n names, env string) []string {
	switch s.IntN(7) {
	case 0, 1:
		return []string{"environment", "add", s.one("qa", "staging", "production", "prod-eu", "lab")}
	case 2:
		return []string{"environment", "add", s.one("qa", "production", "prod-eu"), "--channel", s.one(n.channels...)}
	case 3:
		return []string{"environment", "set", env, "--channel", s.one(n.channels...)}
	case 4:
		return []string{"environment", "remove", env}
	case 5:
		return append([]string{"environment", "wire"}, [][]string{nil, {env}}[s.IntN(2)]...)
	default:
		return []string{"environment", s.one("pause", "resume"), env}
	}
}

func (s *sequence) onCluster(n names, cluster, env string) []string {
	flavour := s.one("docker", "docker", "in-memory", "aws-kubeadm", "aws-eks", "azure-aks", "vsphere-kubeadm")
	switch s.IntN(10) {
	case 0, 1, 2:
		args := []string{"cluster", "add", s.one("c1", "c2", "c3"), "--environment", env, "--flavour", flavour}
		switch flavour {
		case "aws-kubeadm", "aws-eks":
			args = append(args, "--set", "region=eu-central-1")
		case "azure-aks":
			args = append(args, "--set", "location=westeurope", "--set", "resourceGroup=fleet")
		}
		if s.chance(30) {
			args = append(args, "--flux", s.one("own", "remote", "none"))
		}
		if s.chance(30) {
			args = append(args, "--cni", s.one(n.networks...))
		}
		return args
	case 3:
		return []string{"cluster", "remove", cluster, "--yes"}
	case 4:
		return []string{"cluster", "remove", cluster, "--cancel"}
	case 5:
		return []string{"cluster", "scale", cluster, "--control-plane", fmt.Sprint(s.IntN(6))}
	case 6:
		return []string{"cluster", "upgrade", cluster, "--skip-health", "--version", s.one("v1.35.4", "v1.36.3", "v1.34.1", "v1.37.0")}
	case 7:
		args := []string{"cluster", "flux", cluster, "--flux", s.one("own", "remote", "none")}
		if s.chance(40) {
			args = append(args, "--cni", s.one(n.networks...))
		}
		return args
	default:
		return []string{"cluster", s.one("pause", "resume"), cluster}
	}
}

func (s *sequence) onPool(cluster, pool, number string) []string {
	size := [][]string{{"--replicas", number}, {"--min", "1", "--max", number}}[s.IntN(2)]
	switch s.IntN(3) {
	case 0:
		return append([]string{"pool", "add", cluster, s.one("extra", "batch")}, size...)
	case 1:
		return []string{"pool", "remove", cluster, pool}
	default:
		return append([]string{"pool", "scale", cluster, pool}, size...)
	}
}

func (s *sequence) onFeature(n names, feature string) []string {
	var whose []string
	switch s.IntN(5) {
	case 0:
		whose = []string{"--environment", s.one(n.environments...)}
	case 1:
		whose = []string{"--cluster=" + s.one(n.clusters...)}
	case 2:
		whose = []string{"--on-management"}
	case 3:
		whose = []string{"--on-management=" + s.one(n.managements...)}
	}
	switch s.IntN(8) {
	case 0, 1:
		return []string{"feature", "add", s.one("logs", "ingress", "gpu")}
	case 2:
		args := []string{
			"feature", "add", s.one("metrics", "backup"), "--chart",
			s.one("oci://registry.example.com/charts/metrics", "https://charts.example.com/metrics"), "--version", "1.2.3",
		}
		return append(args, [][]string{nil, {"--set", "replicas=2"}}[s.IntN(2)]...)
	case 3:
		if len(whose) > 0 && strings.HasPrefix(whose[0], "--on-management") {
			whose = nil
		}
		return append([]string{"feature", "values", s.one(append(n.features, "metrics")...), "--set", "replicas=" + fmt.Sprint(s.IntN(4))},
			whose...)
	case 4, 5:
		return append([]string{"feature", "enable", feature}, whose...)
	case 6:
		return append([]string{"feature", s.one("disable", "pause", "resume"), feature}, whose...)
	default:
		return []string{"feature", "remove", feature}
	}
}

func (s *sequence) onChannel(n names) []string {
	env := s.one(n.environments...)
	switch s.IntN(7) {
	case 0:
		return []string{"channel", "add", s.one("release", "stable"), "--environment", env}
	case 1:
		return []string{"channel", "add", "next", "--branch", "next", "--environment", env}
	case 2:
		return []string{"channel", "add", s.one("release", "stable")}
	case 3:
		return []string{"channel", "remove", s.one(n.channels...)}
	case 4:
		return []string{"channel", s.one("pause", "resume"), s.one(n.channels...)}
	case 5:
		return []string{"promote", "--skip-health", "--channel", s.one(n.channels...)}
	default:
		return []string{"promote", "--skip-health"}
	}
}

func (s *sequence) onNetwork(n names, number string) []string {
	if s.chance(25) {
		return []string{"cni", "remove", s.one(append(n.networks, "calico")...)}
	}
	file := filepath.Join(s.home, "network.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, network, 1400+len(number)+int(number[0])), 0o600); err != nil {
		s.Fatal(err)
	}
	args := []string{"cni", "add", s.one("calico", "cilium"), "--from", file}
	return append(args, [][]string{nil, {"--flavour", s.one("docker", "aws-kubeadm", "in-memory")}}[s.IntN(2)]...)
}

func (s *sequence) onTenant(n names, tenant string) []string {
	var args []string
	if s.chance(30) {
		args = []string{
			"app", "add", s.one("web", "api"), "--tenant", tenant, "--source", "https://git.example.com/web",
			"--path", s.one("", "deploy"),
		}
		if s.chance(40) {
			args = []string{"app", "remove", s.one("web", "api"), "--tenant", tenant}
		}
		return append(args, [][]string{nil, {"--environment", s.one(n.environments...)}}[s.IntN(2)]...)
	}
	if s.chance(30) {
		args = []string{"tenant", "remove", tenant, "--yes"}
	} else {
		args = []string{"tenant", "add", s.one("shop", "team-b")}
		if s.chance(40) {
			args = append(args, "--role", s.one("admin", "edit", "view"))
		}
	}
	return append(args, [][]string{nil, {"--environment", s.one(n.environments...)}}[s.IntN(2)]...)
}

func (s *sequence) onManagement(n names) []string {
	management := s.one(n.managements...)
	switch s.IntN(9) {
	case 6:
		return []string{"identity", "remove", s.one("staging", "dev", "dc1"), "-m", management}
	case 7:
		return s.args(
			[]string{"standby", "add", "spare", "--of", management, "--host", s.one("kind", "embedded")},
			[]string{"standby", "remove", "spare"},
		)
	case 8:
		return s.args(
			append([]string{"notification", "add", s.one("audit", "ops"), "--type", "webhook", "--address", "https://audit.example.com/flux"},
				s.args(nil, []string{"--environment", s.one(n.environments...)}, []string{"--on-management", management})...),
			[]string{"notification", "remove", s.one("audit", "ops")},
		)
	case 0:
		return []string{"provider", "add", s.one("aws", "azure", "gcp", "docker", "vsphere"), "-m", management}
	case 1:
		return []string{"provider", "remove", s.one("aws", "azure", "docker", "gcp"), "-m", management}
	case 2:
		return []string{
			"identity", "add", s.one("staging", "dev"), "--provider", "aws", "-m", management, "--environment",
			s.one(n.environments...), "--role-arn", "arn:aws:iam::111122223333:role/fleet",
		}
	case 3:
		return []string{"identity", "add", "dc1", "--provider", "vsphere", "-m", management, "--namespace", "team-a", "--secret", "dc1-user"}
	case 4:
		args := []string{
			"management", "add", s.one("second", "cloud2"), "--provider", s.one("docker", "aws", "gcp,aws"), "--host",
			s.one("kind", "embedded"),
		}
		return append(args, [][]string{nil, {"--parent", management}}[s.IntN(2)]...)
	default:
		return []string{"management", "remove", management}
	}
}

// onSecret is about secrets. The same command encrypts to other bytes each time, so undo compares with the bytes that were there.
func (s *sequence) onSecret(env, cluster, feature string) []string {
	folder := filepath.Join(s.dir, "providers", "docker", "v1")
	file := s.one(
		filepath.Join(folder, "clusters", env, "common", "sync", "registry.sops.yaml"),
		filepath.Join(folder, "clusters", env, "common", "namespaced", "registry.sops.yaml"),
		filepath.Join(folder, "clusters", env, cluster, "namespaced", "registry.sops.yaml"),
		filepath.Join(folder, "mgmt", "registry.sops.yaml"),
		filepath.Join(s.dir, "features", feature, "namespaced", "registry.sops.yaml"),
		filepath.Join(s.dir, "tenants", "shop", "base", "registry.sops.yaml"),
	)
	switch s.IntN(6) {
	case 0, 1, 2:
		return []string{
			"secret", "encrypt", file, "--from-literal", "password=" + fmt.Sprint(s.IntN(6)), "--namespace", s.one("flux-system", "shop"),
		}
	case 3:
		return []string{"secret", "encrypt", file}
	case 4:
		return []string{"secret", "rotate", "--new-key", "--offline"}
	default:
		return append([]string{"secret", "rotate"}, s.args(nil, []string{file})...)
	}
}

// onRepo is about the repo itself, which has these commits.
func (s *sequence) onRepo(commits []string) []string {
	switch s.IntN(5) {
	case 4:
		return s.onChart()
	case 0:
		return []string{"ci", "add", "--forge", s.one("github", "gitlab", "gitea")}
	case 1:
		return []string{"chart", "update"}
	default:
		return []string{"revert", s.one(commits...)}
	}
}

// onChart is about a chart of the team's own.
func (s *sequence) onChart() []string {
	if s.chance(40) {
		return []string{"chart", "remove", s.one("metal", "docker", "in-memory")}
	}
	file := filepath.Join(s.home, "template.yaml")
	if err := os.WriteFile(file, []byte(clusterTemplate), 0o600); err != nil {
		s.Fatal(err)
	}
	return []string{"chart", "add", "metal", "--from", file}
}

// clusterTemplate is what `clusterctl generate cluster` would fill in, as small as it can be.
const clusterTemplate = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: "${CLUSTER_NAME}"}
spec:
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: Metal3Cluster, name: "${CLUSTER_NAME}"}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: Metal3Cluster
metadata: {name: "${CLUSTER_NAME}"}
spec: {controlPlaneEndpoint: {host: "${API_HOST}", port: 6443}}
`

// notInSequences are the commands that carry a change to Git and that sequences do not run, with the reason.
var notInSequences = map[string]string{
	"adopt":            "it takes a repo over that is no fleet yet, and each sequence begins with one",
	"cluster transfer": "it asks two management clusters",
	"lock":             "it reads releases, which needs a network",
	"secret edit":      "it opens an editor",
	"upgrade plan":     "it reads releases, which needs a network",
}

// TestSequencesHaveAllCommands: a command that carries a change to Git is run in sequences, or it is said why not.
func TestSequencesHaveAllCommands(t *testing.T) {
	s := &sequence{T: t, Rand: rand.New(rand.NewPCG(1, 1)), home: t.TempDir()}
	n := names{
		environments: []string{"dev"}, clusters: []string{"c1"}, features: []string{"logs"}, tenants: []string{"shop"},
		networks: []string{"calico"}, channels: []string{"main"}, managements: []string{"mgmt"},
	}
	run := map[string]bool{}
	for range 500 {
		for _, args := range [][]string{
			s.onEnvironment(n, "dev"), s.onCluster(n, "c1", "dev"), s.onPool("c1", "extra", "1"), s.onFeature(n, "logs"), s.onChannel(n),
			s.onNetwork(n, "1"), s.onTenant(n, "shop"), s.onManagement(n), s.onRepo(nil),
			s.onSecret("dev", "c1", "logs"),
		} {
			run[args[0]], run[args[0]+" "+args[1]] = true, true
		}
	}
	editing := map[string]bool{}
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		if c.Flags().Lookup("commit") != nil {
			editing[path] = true
			if _, excepted := notInSequences[path]; run[path] == excepted {
				t.Errorf("%s: it is in sequences: %t; a reason why not: %t", path, run[path], excepted)
			}
		}
		for _, child := range c.Commands() {
			walk(child, strings.TrimSpace(path+" "+child.Name()))
		}
	}
	walk(cmd.Root(ui.Streams{}), "")
	for path := range notInSequences {
		if !editing[path] {
			t.Errorf("%s is no command that carries a change to Git", path)
		}
	}
	if len(editing) < 40 {
		t.Errorf("the tree has only %d such commands", len(editing))
	}
}
