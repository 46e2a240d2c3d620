package render

import (
	"bytes"
	"encoding/json"
	"strings"
)

// capiGroup is the end of the API groups of Cluster API and its providers.
const capiGroup = "cluster.x-k8s.io"

// IsCluster tells whether an object is a Cluster of Cluster API.
func IsCluster(o *Object) bool {
	return o.Kind == "Cluster" && strings.HasPrefix(o.APIVersion, capiGroup+"/")
}

// IsManifestCluster tells whether an object is a Cluster of Cluster API that is in no folder of the layout, and that a management cluster
// makes.
func IsManifestCluster(o *Object) bool {
	return IsCluster(o) && len(o.Targets) == 0 && o.Environment == "" && o.Cluster == ClusterID(o.Namespace, o.Name)
}

// HoldsMachines tells whether machines or the infrastructure of a cluster go with an object of Cluster API or of one of its providers. A
// Cluster holds all of it, and is not meant.
func HoldsMachines(o *Object) bool {
	group, _, _ := strings.Cut(o.APIVersion, "/")
	if group != capiGroup && !strings.HasSuffix(group, "."+capiGroup) || IsCluster(o) {
		return false
	}
	for _, end := range []string{"Cluster", "ControlPlane", "MachineDeployment", "MachinePool", "MachineSet", "Machine"} {
		if strings.HasSuffix(o.Kind, end) {
			return true
		}
	}
	return false
}

// capiObject has the fields of Cluster API objects that refer to their cluster and to their parts.
type capiObject struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		ClusterName string `json:"clusterName"`
	} `json:"spec"`
}

// objectPlace identifies an object for references to it. It has the kind without the group, because no two groups of Cluster API have a
// kind of the same name.
type objectPlace struct{ mgmt, namespace, kind, name string }

// clusterNamer assigns objects to the clusters that they belong to.
type clusterNamer struct {
	objects map[objectPlace]*Object
	// shared are parts of several clusters, which are assigned to none.
	shared map[*Object]bool
}

// nameClusters assigns objects outside of the layout's folders to their clusters: objects that name a cluster, and the objects that these
// refer to.
func nameClusters(all []*Object) {
	var clusters []*Object
	for _, o := range all {
		if o.Cluster == "" && len(o.Targets) == 0 && IsCluster(o) {
			clusters = append(clusters, o)
		}
	}
	if len(clusters) == 0 {
		return
	}
	n := &clusterNamer{objects: map[objectPlace]*Object{}, shared: map[*Object]bool{}}
	ids := map[objectPlace]string{}
	for _, o := range clusters {
		o.Cluster = ClusterID(o.Namespace, o.Name)
		ids[objectPlace{o.ManagementCluster, o.Namespace, o.Kind, o.Name}] = o.Cluster
	}
	begin := clusters
	for _, o := range all {
		group, _, _ := strings.Cut(o.APIVersion, "/")
		if o.Cluster != "" || len(o.Targets) > 0 || !strings.HasSuffix(group, capiGroup) {
			continue
		}
		n.objects[objectPlace{o.ManagementCluster, o.Namespace, o.Kind, o.Name}] = o
		var says capiObject
		if json.Unmarshal(o.JSON, &says) != nil {
			continue // its schema reports it
		}
		for _, name := range []string{says.Spec.ClusterName, says.Metadata.Labels[capiGroup+"/cluster-name"]} {
			if id, ok := ids[objectPlace{o.ManagementCluster, o.Namespace, "Cluster", name}]; ok {
				o.Cluster = id
				begin = append(begin, o)
				break
			}
		}
	}
	for _, o := range begin {
		n.spread(o, o.Cluster)
	}
	for o := range n.shared {
		o.Cluster = ""
	}
}

// spread assigns the objects that an object refers to, and the objects to which they refer.
func (n *clusterNamer) spread(o *Object, id string) {
	if !bytes.Contains(o.JSON, []byte(`Ref"`)) {
		return
	}
	var content struct {
		Spec map[string]any `json:"spec"`
	}
	if json.Unmarshal(o.JSON, &content) != nil {
		return
	}
	eachReference(content.Spec, func(kind, name string) {
		other := n.objects[objectPlace{o.ManagementCluster, o.Namespace, kind, name}]
		switch {
		case other == nil || n.shared[other] || other.Cluster == id:
		case other.Cluster != "":
			n.shared[other] = true
		default:
			other.Cluster = id
			n.spread(other, id)
		}
	})
}

// partRefs are the fields that name the parts of a cluster. Other fields name objects that clusters share, such as their class or an
// identity.
var partRefs = map[string]bool{"infrastructureRef": true, "controlPlaneRef": true, "configRef": true}

func eachReference(value any, visit func(kind, name string)) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			eachReference(v, visit)
		}
	case map[string]any:
		for field, v := range value {
			inner, _ := v.(map[string]any)
			if kind, _ := inner["kind"].(string); partRefs[field] && kind != "" {
				name, _ := inner["name"].(string)
				visit(kind, name)
				continue
			}
			eachReference(v, visit)
		}
	}
}
