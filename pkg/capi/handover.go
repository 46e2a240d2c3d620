package capi

import "github.com/fleetctl/fleetctl/pkg/capi/internal/graph"

// The types of a hand-over between two management clusters. The methods of Manager.Members find, copy and remove a graph.
type (
	// Graph has all objects that belong to the Clusters of a hand-over.
	Graph = graph.Graph
	// Item is an object of a Graph.
	Item = graph.Item
	// GraphOptions are the options of Manager.Graph.
	GraphOptions = graph.GraphOptions
	// CopyOptions are the options of Manager.Copy.
	CopyOptions = graph.CopyOptions
	// RepairOptions are the options of Manager.Repair.
	RepairOptions = graph.RepairOptions
	// Portable is an object in the form of a snapshot.
	Portable = graph.Portable
	// Owner is the management cluster that manages a Cluster. An annotation on the Cluster records it.
	Owner = graph.Owner
)

// The annotations of a hand-over. The package graph explains each.
const (
	HandoverMark = graph.HandoverMark
	SourceMark   = graph.SourceMark
	StaysMark    = graph.StaysMark
	DeletingMark = graph.DeletingMark
	OwnerMark    = graph.OwnerMark
)

// OwnerIn returns the Owner in the annotations of a Cluster. It returns the zero value if there is no such annotation, or if the annotation
// is invalid.
func OwnerIn(annotations map[string]string) Owner { return graph.OwnerIn(annotations) }

// PausedIn returns objects with the Clusters paused for which is returns true. is gets NAMESPACE/NAME.
func PausedIn(objects []Portable, is func(cluster string) bool) ([]Portable, error) {
	return graph.PausedIn(objects, is)
}
