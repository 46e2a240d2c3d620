package rendertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// extras are further values that clusters may have beside the values of their chart's example. All extras can be combined. The extras under
// "" fit every flavour. The extras under kubeadm fit flavours whose control plane runs on machines.
var extras = map[string][]string{
	"": {"labels: {tier: gold, fleet.example.com/number: '007'}", "labels: {}"},
	"kubeadm": {
		"healthCheck: {enabled: true, nodeStartupTimeoutSeconds: 600, maxUnhealthy: 40%}",
		"network: {podCIDR: 10.244.0.0/16, serviceDomain: fleet.local}", "controlPlane: {replicas: 5}", "kubeletExtraArgs: {v: '4'}",
		"drainTimeoutSeconds: 600",
	},
	"aws-eks": {
		"tags: {cost-center: '42', 'Owned By': 'platform: team @1'}",
		"controlPlane: {access: {public: true, allowedCIDRs: [203.0.113.0/24, 198.51.100.7/32]}}",
		`addons: [{name: vpc-cni, version: v1.20.0-eksbuild.1, configuration: '{"env":{"A":"b"}}'}]`,
	},
	"aws-kubeadm": {
		"tags: {cost-center: '42'}", "diskEncryptionKey: 'arn:aws:kms:eu-central-1:111122223333:key/2'",
		"controlPlane: {size: m7i.xlarge, diskGiB: 100}",
	},
	"azure-aks": {
		"resourceGroup: rg-prod", "controlPlane: {tier: Premium, adminGroupIDs: [00000000-0000-0000-0000-000000000001]}",
		"autoscaler: {extraArgs: {scale-down-unneeded-time: 20m, scale-down-utilization-threshold: '0.4'}}",
	},
	"azure-kubeadm": {"resourceGroup: rg-prod", "controlPlane: {size: Standard_D8s_v5, etcdDiskGiB: 128}"},
	"gcp-gke": {
		"controlPlane: {releaseChannel: stable, binaryAuthorization: true}",
		"nodeServiceAccount: nodes@my-project.iam.gserviceaccount.com",
	},
	"gcp-kubeadm": {
		"shieldedVM: false", "controlPlane: {access: {public: false, global: true}}",
		"nodeServiceAccount: nodes@my-project.iam.gserviceaccount.com",
	},
	"vsphere-kubeadm": {
		`network: {nameservers: [192.0.2.53, "2001:db8::53"]}`,
		`thumbprint: "00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33"`,
	},
	"docker":    {"node: {extraMounts: [{hostPath: /x, containerPath: /y, readOnly: true}]}", "controlPlane: {zones: ['1', 'no']}"},
	"in-memory": {"startup: {vm: 1s, node: 2s, etcd: 500ms}"},
}

// values returns the values of a cluster: those of the chart's example, and some extras. It sets the fields of c that a new pool needs.
func (m *maker) values(c *RandomCluster) (map[string]any, error) {
	values, err := scaffold.ExampleValues(c.Flavour, []string{"v1.36.3", "v1.35.2", "v1.36.0"}[m.IntN(3)])
	if err != nil {
		return nil, err
	}
	if c.Flavour == "azure-kubeadm" {
		values["identity"] = map[string]any{"name": "fleet", "namespace": "flux-system"}
	}
	more := append([]string{}, extras[""]...)
	more = append(more, extras[c.Flavour]...)
	if strings.HasSuffix(c.Flavour, "-kubeadm") {
		more = append(more, extras["kubeadm"]...)
	}
	for _, text := range more {
		var extra map[string]any
		if err := yaml.Unmarshal([]byte(text), &extra); err != nil {
			return nil, err
		}
		if m.chance(35) {
			values = merge(values, extra)
		}
	}
	if err := m.pools(c, values); err != nil {
		return nil, err
	}
	return values, nil
}

// pools gives a cluster an empty list of pools, some pools, or no list.
func (m *maker) pools(c *RandomCluster, values map[string]any) error {
	example, _ := values["pools"].([]any)
	if len(example) == 0 {
		return fmt.Errorf("the example of flavour %s has no pool", c.Flavour)
	}
	first, _ := example[0].(map[string]any)
	if size, ok := first["size"]; ok {
		c.Size["size"] = size
	}
	c.Pools, c.Label = true, label(c.Flavour)
	var pools []any
	if c.Flavour == "azure-aks" || c.Flavour == "gcp-gke" { // these flavours need a pool
		pools = append(pools, first)
	} else if m.chance(8) {
		delete(values, "pools")
		c.Pools = false
		return nil
	}
	names := []string{"general", "gpu", "edge-1", "true", "007", "no", "p"}
	if c.Flavour == "azure-aks" { // no dashes, and no digit at first
		names = []string{"general", "gpu", "edge1", "true", "no", "p"}
	}
	if c.Flavour == "gcp-gke" { // no digit at first
		names = slices.DeleteFunc(names, func(name string) bool { return name == "007" })
	}
	names = slices.DeleteFunc(names, func(name string) bool { return len(pools) > 0 && first["name"] == name })
	m.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:m.IntN(4)] {
		pool := map[string]any{"name": name}
		maps.Copy(pool, c.Size)
		if m.chance(50) {
			pool["replicas"] = 3 * m.IntN(4) // a number that zones can share
		} else {
			pool["min"] = 1 + m.IntN(3)
			pool["max"] = 3 + m.IntN(6)
		}
		if m.chance(40) {
			pool["labels"] = map[string]any{c.Label: "a"}
		}
		if m.chance(30) {
			pool["taints"] = []any{map[string]any{"key": "a", "value": "b", "effect": "NoSchedule"}}
		}
		if m.chance(30) {
			pool["kubernetesVersion"] = "v1.35.1"
		}
		pools = append(pools, pool)
	}
	if pools == nil {
		pools = []any{}
	}
	values["pools"] = pools
	return nil
}

// label returns a label that nodes of a flavour may have.
func label(flavour string) string {
	switch {
	case strings.HasSuffix(flavour, "-kubeadm"), flavour == "docker", flavour == "in-memory":
		return "node.cluster.x-k8s.io/team"
	}
	return "example.com/team"
}

// merge returns base with the values of top on top.
func merge(base, top map[string]any) map[string]any {
	out := maps.Clone(base)
	for name, value := range top {
		below, ok := out[name].(map[string]any)
		if above, also := value.(map[string]any); ok && also {
			out[name] = merge(below, above)
			continue
		}
		out[name] = value
	}
	return out
}
