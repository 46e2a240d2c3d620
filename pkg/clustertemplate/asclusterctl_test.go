package clustertemplate_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
	k8syaml "sigs.k8s.io/yaml"
)

// generated is what clusterctl makes of the template with the same values as variables, without Secrets.
func generated(t *testing.T, template string, variables map[string]string) []any {
	t.Helper()
	out, err := yamlprocessor.NewSimpleProcessor().Process([]byte(template), func(name string) (string, error) {
		if value, ok := variables[name]; ok {
			return value, nil
		}
		return "", errors.New("not set")
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for document := range bytes.SplitSeq(out, []byte("\n---")) {
		var object map[string]any
		if err := k8syaml.Unmarshal(document, &object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if len(object) == 0 || object["kind"] == "Secret" {
			continue
		}
		withoutKeep(object)
		all = append(all, object)
	}
	return all
}

// byKind sorts objects: Helm has an order of its own.
func byKind(all []any) []any {
	slices.SortFunc(all, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

// What Helm makes of the chart is what clusterctl makes of the template.
func TestSameAsClusterctl(t *testing.T) {
	clusterctl := map[string]string{
		"CLUSTER_NAME": "demo", "NAMESPACE": "demo", "KUBERNETES_VERSION": "v1.36.3",
		"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "1000000",
	}
	common := map[string]any{"kubernetesVersion": "v1.36.3", "controlPlane": map[string]any{"replicas": 3}}
	for _, c := range []struct {
		name, file, pool string
		variables        map[string]string
		values           map[string]any
	}{
		{
			"openstack", "openstack.yaml", "md-0",
			map[string]string{
				"OPENSTACK_EXTERNAL_NETWORK_ID": "ext", "OPENSTACK_CLOUD": "acme", "OPENSTACK_DNS_NAMESERVERS": "192.0.2.1",
				"OPENSTACK_IMAGE_NAME":       "ubuntu",
				"OPENSTACK_CLOUD_CACERT_B64": "eA==", "OPENSTACK_CLOUD_YAML_B64": "eA==",
			},
			map[string]any{
				"openstackExternalNetworkId": "ext", "openstackCloud": "acme", "openstackDnsNameservers": "192.0.2.1",
				"openstackImageName": "ubuntu",
			},
		},
		{
			"openstack, nothing as by default", "openstack.yaml", "md-0",
			map[string]string{
				"OPENSTACK_EXTERNAL_NETWORK_ID": "ext", "OPENSTACK_CLOUD": "acme", "OPENSTACK_DNS_NAMESERVERS": "192.0.2.1",
				"OPENSTACK_IMAGE_NAME":       "ubuntu",
				"OPENSTACK_CLOUD_CACERT_B64": "eA==", "OPENSTACK_CLOUD_YAML_B64": "eA==", "OPENSTACK_LOAD_BALANCER": "false",
				"BGP_PORT": "1790", "MOTD": "go away",
				"OPENSTACK_FAILURE_DOMAIN": "az7", "OPENSTACK_SSH_KEY_NAME": "ops", "OPENSTACK_NODE_CIDR": "10.0.0.0/8",
			},
			map[string]any{
				"openstackExternalNetworkId": "ext", "openstackCloud": "acme", "openstackDnsNameservers": "192.0.2.1", "openstackImageName": "ubuntu",
				"openstackLoadBalancer": false, "bgpPort": 1790, "motd": "go away", "openstackFailureDomain": "az7", "openstackSshKeyName": "ops",
				"openstackNodeCidr": "10.0.0.0/8",
			},
		},
		{
			"metal3", "metal3.yaml", "workers",
			map[string]string{
				"TEAM": "Platform", "CLUSTER_APIENDPOINT_HOST": "192.0.2.10", "IMAGE_URL": "http://192.0.2.1/a.qcow2",
				"IMAGE_CHECKSUM":      "http://192.0.2.1/a.sha256",
				"IMAGE_CHECKSUM_TYPE": "sha256", "IMAGE_FORMAT": "qcow2", "CTLPLANE_KUBEADM_PRE_COMMANDS": `["systemctl enable --now crio"]`,
			},
			map[string]any{
				"team": "Platform", "clusterApiendpointHost": "192.0.2.10", "imageUrl": "http://192.0.2.1/a.qcow2",
				"imageChecksum":     "http://192.0.2.1/a.sha256",
				"imageChecksumType": "sha256", "imageFormat": "qcow2", "ctlplaneKubeadmPreCommands": []any{"systemctl enable --now crio"},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			template, err := os.ReadFile(filepath.Join("testdata", c.file))
			if err != nil {
				t.Fatal(err)
			}
			chart, err := translate(string(template))
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(c.variables, clusterctl)
			maps.Copy(c.values, common)
			c.values["pools"] = []any{map[string]any{"name": c.pool, "replicas": 1000000}}
			want, got := byKind(generated(t, string(template), c.variables)), byKind(rendered(t, chart, c.values))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("clusterctl -, chart +\n%s\n%s", diff, file(t, chart, "templates/cluster.yaml"))
			}
		})
	}
}

// The values are clusterctl's variables: what it asks for is required, but for what it fills in itself and what only a Secret or a comment
// has.
func TestRequiredAsClusterctlHasIt(t *testing.T) {
	for _, name := range []string{"openstack.yaml", "metal3.yaml"} {
		template, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		chart, err := translate(string(template))
		if err != nil {
			t.Fatal(err)
		}
		known, err := yamlprocessor.NewSimpleProcessor().GetVariableMap(template)
		if err != nil {
			t.Fatal(err)
		}
		without := []string{"CLUSTER_NAME", "NAMESPACE", "OPENSTACK_CLOUD_CACERT_B64", "OPENSTACK_CLOUD_YAML_B64"}
		counts := []string{"CONTROL_PLANE_MACHINE_COUNT", "WORKER_MACHINE_COUNT"}
		for _, v := range chart.Variables {
			def, ok := known[v.Name]
			if !ok || v.Required != (def == nil) && !slices.Contains(counts, v.Name) {
				t.Errorf("%s: %s: required %t, clusterctl has %v", name, v.Name, v.Required, def)
			}
			delete(known, v.Name)
		}
		for left := range known {
			if !slices.Contains(without, left) {
				t.Errorf("%s: the variable %s is no value", name, left)
			}
		}
	}
}
