package templates_test

import (
	"maps"
	"strings"
	"testing"
)

// oddities are values that look as a setting's do, and that the API server or a provider refuses: of each setting by its path, in every
// chart that has it.
var oddities = map[string][]any{
	"labels": {
		map[string]any{"a..b/x": "y"},
		map[string]any{"a-.b/x": "y"},
		map[string]any{"a.-b/x": "y"},
		map[string]any{strings.Repeat("a", 64): "y"},
		map[string]any{strings.Repeat("a.", 130) + "b/x": "y"},
	},
	"kubernetesVersion": {
		"v1.036.3",
		"v1.36.03",
		"v1.36.3-",
		"v1.36.3-01",
		"v1.36.3-a..b",
		"v1.36.3+",
		"v1.36.3+a+b",
		"v1.36.3-" + strings.Repeat("a", 64),
	},
	"tags":          {map[string]any{"a\nb": "c"}, map[string]any{"a<b": "c"}},
	"identity.name": {"a..b", "a-.b"},
	"network.podCIDR": {
		"10.0.0.0/33",
		"10.0.0.256/24",
		"10.00.0.0/8",
		"10.0.0.0/08",
		"10.0.0/8",
		"fd00:::/8",
		"fd00::/129",
		"1:2:3:4:5:6:7:8:9/64",
	},
	"network.serviceCIDR": {
		"10.0.0.0/33", "10.0.0.256/24", "10.00.0.0/8", "10.0.0.0/08", "10.0.0/8",
	},
	"network.serviceDomain":    {"a..b", "a-.b", strings.Repeat("a", 254)},
	"network.vpcCIDR":          {"10.0.0.0/33", "10.0.0.0/15", "10.0.0.0/29", "10.256.0.0/16"},
	"network.vnetCIDR":         {"10.0.0.0/33"},
	"network.controlPlaneCIDR": {"10.0.0.0/33", "10.0.256.0/28"},
	"network.nodeCIDR":         {"10.0.0.0/33"},
	"network.apiServerIP":      {"10.0.0.256", "10.0.0.01"},
	"network.dnsServiceIP":     {"10.0.0.256", "10.0.0.01"},
	"network.subnet": {
		map[string]any{"name": "nodes", "cidr": "10.0.0.0/33"},
		map[string]any{"name": "nodes", "cidr": "10.0.0.0/30"},
	},
	"controlPlane.access.allowedCIDRs": {[]any{"10.0.0.0/33"}},
	"controlPlane.roleName":            {"r", "a/b", strings.Repeat("a", 65)},
	"nodeRoleName":                     {"a/b", strings.Repeat("a", 65)},
	"controlPlane.profile":             {"a b", "arn:aws:iam::111122223333:instance-profile/nodes"},
	"nodeProfile":                      {"a b"},
	"controlPlane.size":                {"m7i", "_", "7.7"},
	"controlPlane.endpoint.host":       {"10.0.0.256", "fd00:::1", "1:2"},
	"network.vnet.nodeSubnet":          {"a b", "a/b"},
	"network.vnet.controlPlaneSubnet":  {"a b"},
	"network.vnet.name":                {"a/b"},
	"network.vnet.resourceGroup":       {"a/b"},
	"network.addressPool.name":         {"a..b"},
	"network.addressPool.apiGroup":     {"a..b", "-"},
	"machineIdentity": {
		"azure:///subscriptions/\n/resourceGroups/a/providers/Microsoft.ManagedIdentity/userAssignedIdentities/a",
	},
	"pools[].labels": {
		map[string]any{"a..b/x": "y"},
		map[string]any{"a..node.cluster.x-k8s.io/x": "y"},
		map[string]any{"node.cluster.x-k8s.io/a b": "y"},
	},
	"pools[].taints":            {[]any{map[string]any{"key": "a..b/x", "effect": "NoSchedule"}}},
	"pools[].kubernetesVersion": {"v1.036.3", "v1.36.3-"},
	"pools[].size":              {"m7i", "7-"},
	"pools[].capacity":          {map[string]any{"cpu": "4", "memory": "16K"}, map[string]any{"cpu": "0", "memory": "16Gi"}},
}

// No schema accepts an oddity.
func TestSchemaRefusesOddities(t *testing.T) {
	tried := map[string]bool{}
	for _, flavour := range flavours(t) {
		known := map[string]bool{}
		walk(schemaOf(t, flavour), "", func(at string, _ *schema) { known[strings.TrimPrefix(at, ".")] = true })
		validate, example := validator(t, flavour), cases(t, flavour)[flavour+"-everything"]
		for path, values := range oddities {
			for _, value := range values {
				if !known[path] {
					continue
				}
				tried[path] = true
				if err := validate(with(example, path, value)); err == nil {
					t.Errorf("%s takes %s: %v", flavour, path, value)
				}
			}
		}
	}
	for path := range oddities {
		if !tried[path] {
			t.Errorf("no chart has %s", path)
		}
	}
}

// unusual are values that no oddities are: the API server and the providers take them.
var unusual = map[string][]any{
	"kubernetesVersion":         {"v1.36.0-alpha.3.20260101123456", "v1.36.0-20260101123456"},
	"pools[].kubernetesVersion": {"v1.36.0-alpha.3.20260101123456"},
	"pools[].capacity":          {map[string]any{"cpu": "4", "memory": "1073741824Ki"}, map[string]any{"cpu": 4, "memory": "17179869184k"}},
}

// The schemas accept unusual values. The version of EKS is a minor one.
func TestSchemaTakesTheUnusual(t *testing.T) {
	for _, flavour := range flavours(t) {
		known := map[string]bool{}
		walk(schemaOf(t, flavour), "", func(at string, _ *schema) { known[strings.TrimPrefix(at, ".")] = true })
		validate, example := validator(t, flavour), cases(t, flavour)[flavour+"-everything"]
		for path, values := range unusual {
			for _, value := range values {
				if !known[path] || flavour == "aws-eks" && strings.HasSuffix(path, "kubernetesVersion") {
					continue
				}
				if err := validate(with(example, path, value)); err != nil {
					t.Errorf("%s refuses %s: %v: %v", flavour, path, value, err)
				}
			}
		}
	}
}

// with returns values with another value at a path. A value of a pool goes into the first pool.
func with(values map[string]any, path string, value any) map[string]any {
	out := maps.Clone(values)
	first, rest, nested := strings.Cut(path, ".")
	name, inList := strings.CutSuffix(first, "[]")
	switch {
	case !nested:
		out[first] = value
	case inList:
		items := append([]any{}, out[name].([]any)...)
		items[0] = with(items[0].(map[string]any), rest, value)
		out[name] = items
	default:
		below, _ := out[first].(map[string]any)
		out[first] = with(below, rest, value)
	}
	return out
}
