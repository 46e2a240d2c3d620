package graph

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Owner is the management cluster that manages a Cluster. An annotation on the Cluster records it.
type Owner struct {
	Fleet             string `json:"fleet"`
	ManagementCluster string `json:"managementCluster"`
	// UID is the UID of the management cluster's namespace kube-system.
	UID string `json:"uid"`
	// Epoch is the number of hand-overs of the Cluster.
	Epoch int64 `json:"epoch"`
	// From is the UID of the management cluster that has handed the Cluster over to this one; "" if none has.
	From string `json:"from,omitempty"`
}

// String returns the value of the annotation.
func (o Owner) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return ""
	}
	return string(text)
}

// IsAnother tells whether the record names another management cluster than the one whose kube-system has this UID. A record without a UID,
// and the UID "", prove nothing.
func (o Owner) IsAnother(uid string) bool { return uid != "" && o.UID != "" && o.UID != uid }

// OwnerOf returns the Owner in the annotation of a Cluster. It returns the zero value if the annotation is missing or invalid.
func OwnerOf(cluster *unstructured.Unstructured) Owner {
	return OwnerIn(cluster.GetAnnotations())
}

// OwnerIn is OwnerOf for the annotations of a Cluster.
func OwnerIn(annotations map[string]string) Owner {
	var o Owner
	if err := json.Unmarshal([]byte(annotations[OwnerMark]), &o); err != nil {
		return Owner{}
	}
	return o
}

// OwnerDamaged tells whether the annotations of a Cluster have a record of its owner which names none, so that nobody can tell the owner.
func OwnerDamaged(annotations map[string]string) bool {
	_, recorded := annotations[OwnerMark]
	return recorded && OwnerIn(annotations).ManagementCluster == ""
}
