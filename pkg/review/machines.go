package review

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/render"
)

// machines has the fields of control planes, MachineDeployments and MachinePools that are about their machines.
type machines struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		ClusterName string `json:"clusterName"`
		Replicas    *int   `json:"replicas"`
		Version     string `json:"version"` // only control planes
		Template    struct {
			Spec struct {
				Version           string    `json:"version"`
				InfrastructureRef reference `json:"infrastructureRef"`
				Bootstrap         struct {
					ConfigRef reference `json:"configRef"`
				} `json:"bootstrap"`
			} `json:"spec"`
		} `json:"template"`
		MachineTemplate struct {
			InfrastructureRef reference `json:"infrastructureRef"` // only before v1beta2
			Spec              struct {
				InfrastructureRef reference `json:"infrastructureRef"`
			} `json:"spec"`
		} `json:"machineTemplate"`
		KubeadmConfigSpec any `json:"kubeadmConfigSpec"`
	} `json:"spec"`
}

type reference struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// machinesOf reads an object with machines; it returns nil for any other object.
func machinesOf(o *render.Object) *machines {
	if o == nil {
		return nil
	}
	group, _, _ := strings.Cut(o.APIVersion, "/")
	pool := group == capiGroup && (o.Kind == "MachineDeployment" || o.Kind == "MachinePool")
	if !pool && !(group == "controlplane."+capiGroup || strings.HasSuffix(o.Kind, "ManagedControlPlane")) {
		return nil
	}
	m := &machines{}
	if err := json.Unmarshal(o.JSON, m); err != nil {
		return nil // the object does not have Cluster API's form
	}
	return m
}

func (m *machines) isPool() bool { return m.Kind == "MachineDeployment" || m.Kind == "MachinePool" }

// pool is the name of the pool without the name of its cluster.
func (m *machines) pool(c *ObjectChange) string {
	if !m.isPool() {
		return controlPlane
	}
	return strings.TrimPrefix(c.Name, m.Spec.ClusterName+"-")
}

func (m *machines) version() string {
	if m.isPool() {
		return m.Spec.Template.Spec.Version
	}
	return m.Spec.Version
}

func (m *machines) infrastructure() reference {
	switch {
	case m.isPool():
		return m.Spec.Template.Spec.InfrastructureRef
	case m.Spec.MachineTemplate.InfrastructureRef != reference{}:
		return m.Spec.MachineTemplate.InfrastructureRef
	}
	return m.Spec.MachineTemplate.Spec.InfrastructureRef
}

// bootstrap is the configuration of the machines: for a pool the name of a template, for a control plane the
// configuration itself.
func (m *machines) bootstrap() string {
	if m.isPool() {
		return m.Spec.Template.Spec.Bootstrap.ConfigRef.Name
	}
	text, err := json.Marshal(m.Spec.KubeadmConfigSpec)
	if err != nil {
		return ""
	}
	return string(text)
}

// count returns the number of machines, or the minimum if an autoscaler decides. It is 0 if the files do not tell the
// number.
func (m *machines) count() int {
	if m.Spec.Replicas != nil {
		return *m.Spec.Replicas
	}
	low, _ := strconv.Atoi(m.Metadata.Annotations[minAnnotation])
	return low
}

// The annotations with the limits of the autoscaler.
const (
	minAnnotation = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
	maxAnnotation = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
)

// limits returns the limits of the autoscaler, such as 1-5; "" if there are none.
func (m *machines) limits() string {
	low, high := m.Metadata.Annotations[minAnnotation], m.Metadata.Annotations[maxAnnotation]
	if low == "" && high == "" {
		return ""
	}
	return low + "-" + high
}

// size describes for people how many machines there are.
func (m *machines) size() string {
	if l := m.limits(); l != "" {
		return l
	}
	if m.Spec.Replicas == nil {
		return ""
	}
	return strconv.Itoa(*m.Spec.Replicas)
}

func annotationsOf(o *render.Object) map[string]string {
	var fields struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if o == nil || json.Unmarshal(o.JSON, &fields) != nil {
		return nil
	}
	return fields.Metadata.Annotations
}

// fieldsOf returns a copy of an object's spec.
func fieldsOf(o *render.Object) map[string]any {
	var fields struct {
		Spec map[string]any `json:"spec"`
	}
	if o == nil || json.Unmarshal(o.JSON, &fields) != nil {
		return nil
	}
	return fields.Spec
}

// takeLimits removes the sizes from the spec of a cloud's pool, wherever the provider has them, and returns its limits,
// such as 1-5.
func takeLimits(spec map[string]any) string {
	places := []map[string]any{spec}
	if inner, ok := spec["scaling"].(map[string]any); ok {
		places = append(places, inner)
	}
	if list, ok := spec["resources"].([]any); ok && len(list) == 1 { // Azure Service Operator's form
		if resource, ok := list[0].(map[string]any); ok {
			if inner, ok := resource["spec"].(map[string]any); ok {
				places = append(places, inner)
			}
		}
	}
	low, high := any(nil), any(nil)
	for _, at := range places {
		for _, name := range []string{"minSize", "minCount"} {
			if v, ok := at[name]; ok {
				low = v
				delete(at, name)
			}
		}
		for _, name := range []string{"maxSize", "maxCount"} {
			if v, ok := at[name]; ok {
				high = v
				delete(at, name)
			}
		}
		delete(at, "count")
	}
	if low == nil && high == nil {
		return ""
	}
	return fmt.Sprintf("%v-%v", low, high)
}

// sameMachines tells whether the rest of two specs makes the same machines. Labels, taints and tags change in place.
func sameMachines(a, b map[string]any) bool {
	for _, fields := range []map[string]any{a, b} {
		for _, name := range []string{
			"labels", "taints", "additionalTags", "additionalLabels", "kubernetesLabels", "kubernetesTaints", "scaling",
			"updateConfig", "management",
		} {
			delete(fields, name)
		}
	}
	return reflect.DeepEqual(a, b)
}
