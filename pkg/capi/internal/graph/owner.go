package graph

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owner is who manages a Cluster: on the management cluster it is an annotation on the Cluster.
type Owner struct {
	Fleet             string `json:"fleet"`
	ManagementCluster string `json:"managementCluster"`
	// UID of its namespace kube-system.
	UID string `json:"uid"`
	// Epoch is how many times the Cluster has changed hands.
	Epoch int64 `json:"epoch"`
}

// String is how it is written down.
func (o Owner) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	return string(text)
}

// OwnerOf reads the annotation of a Cluster; the zero value where there is none, or none that can be read.
func OwnerOf(cluster *unstructured.Unstructured) Owner {
	return OwnerIn(cluster.GetAnnotations())
}

// OwnerIn is OwnerOf for annotations that were read already.
func OwnerIn(annotations map[string]string) Owner {
	var o Owner
	if err := json.Unmarshal([]byte(annotations[OwnerMark]), &o); err != nil {
		return Owner{}
	}
	return o
}
