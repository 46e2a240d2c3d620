package validate

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
)

// apiAddress is the address of the API server of a cluster of vSphere.
type apiAddress struct {
	place      place
	host, port string
}

// endpointOf returns the address in the infrastructure of a cluster; an empty one if Flux fills in a part of it.
func (c *clusterParts) endpointOf(infra *object) (at apiAddress) {
	says := mapping.Fields(c.read(infra).Content).In("spec", "controlPlaneEndpoint")
	at.host, at.port = says.Text("host"), fmt.Sprint(says["port"])
	if strings.Contains(at.host+at.port, "${") {
		return apiAddress{}
	}
	return at
}

// sharedEndpoints reports clusters of vSphere with the address of another one. People choose these addresses by hand, and kube-vip on the
// machines of both clusters announces the same one. It reports nothing of charts.
func (c *clusterParts) sharedEndpoints(all []*object) diag.Findings {
	var out diag.Findings
	owners := map[apiAddress]*object{}
	for _, o := range all {
		if o.content != nil || groupOf(o) != "infrastructure."+clusterGroup || o.Kind != "VSphereCluster" || o.Template != "" ||
			c.read(o).IsManagedElsewhere() {
			continue
		}
		at := c.endpointOf(o)
		for _, at.place = range o.places() {
			owner := owners[at]
			switch {
			case at.host == "":
			case owner == nil:
				owners[at] = o
			case owner.Name != o.Name || owner.Namespace != o.Namespace:
				out = append(out, o.at("spec.controlPlaneEndpoint.host", RuleRefused,
					fmt.Sprintf("%.80s is the address of the %s %.80s, too, in %s, line %d", at.host, owner.Kind, owner.Name, owner.Source.File,
						owner.Source.Line), "give each cluster an address of its own"))
			}
		}
	}
	return out
}

// kubeVIP reports a manifest of kube-vip in the files of a control plane that announces another address than its cluster has. Then nothing
// answers at the address of the cluster.
func (c *clusterParts) kubeVIP(plane, infra *object) {
	end := c.endpointOf(infra)
	if infra.Kind != "VSphereCluster" || end.host == "" {
		return
	}
	spec := mapping.Fields(c.read(plane).Content).In("spec", "kubeadmConfigSpec")
	for i, file := range spec.List("files") {
		text := file.Text("content")
		if !strings.Contains(text, "kube-vip") || strings.Contains(text, "${") || file.Text("encoding") != "" {
			continue
		}
		var pod yaml.Node
		if yaml.Unmarshal([]byte(text), &pod) != nil {
			continue
		}
		for name, want := range map[string]string{"address": end.host, "vip_address": end.host, "port": end.port} {
			value := variableOf(&pod, name)
			if value == nil || value.Value == "" || value.Value == want || want == "0" || want == "<nil>" {
				continue
			}
			field := fmt.Sprintf("spec.kubeadmConfigSpec.files[%d].content", i)
			f := plane.at(field, RuleRefused, fmt.Sprintf("kube-vip has %s: %.80s, and the %s %.80s has %.80s", name, value.Value, infra.Kind,
				infra.Name, want), "write the address of controlPlaneEndpoint in both")
			plane.insideText(&f, field, value.Line)
			c.findings = append(c.findings, f)
		}
	}
}

// variableOf returns the value of a container's variable in the manifest of a pod, or nil.
func variableOf(n *yaml.Node, name string) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		var named bool
		var value *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			named = named || n.Content[i].Value == "name" && n.Content[i+1].Value == name
			if n.Content[i].Value == "value" {
				value = n.Content[i+1]
			}
		}
		if named && value != nil {
			return value
		}
	}
	for _, child := range n.Content {
		if value := variableOf(child, name); value != nil {
			return value
		}
	}
	return nil
}
