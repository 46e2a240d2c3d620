package render

import (
	"bytes"
	"encoding/json"
	"strings"
)

// capiGroup is what the groups of Cluster API and its providers end with.
const capiGroup = "cluster.x-k8s.io"

// IsCluster tells whether an object is a workload cluster of Cluster API's.
func IsCluster(o *Object) bool {
	return o.Kind == "Cluster" && strings.HasPrefix(o.APIVersion, capiGroup+"/")
}

// capiObject is what objects of Cluster API say of the cluster that they belong to, and of others that they are made of.
type capiObject struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		ClusterName string `json:"clusterName"`
	} `json:"spec"`
}

// place of an object in its namespace, for what refers to it. References of Cluster API's own objects have a group or a version of it, and
// none of two kinds of one name; so the kind does.
type objectPlace struct{ mgmt, namespace, kind, name string }

// clusterNamer gives objects the clusters that they belong to.
type clusterNamer struct {
	objects map[objectPlace]*Object
	// shared are what several clusters are made of: it belongs to none.
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
			continue // its schema says what is wrong
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

// spread names the objects that an object refers to, and the objects to which they refer.
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
