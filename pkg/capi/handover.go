package capi

import "github.com/fleetctl/fleetctl/pkg/capi/internal/graph"

// What a hand-over between two management clusters needs. A Manager finds, copies and removes it, by the methods of its Members.
type (
	// Graph is all that belongs to the Clusters that are handed over.
	Graph = graph.Graph
	// GraphOptions of Manager.Graph.
	GraphOptions = graph.GraphOptions
	// CopyOptions of Manager.Copy.
	CopyOptions = graph.CopyOptions
	// RepairOptions of Manager.Repair.
	RepairOptions = graph.RepairOptions
	// Portable is an object as a snapshot keeps it.
	Portable = graph.Portable
	// Owner is who manages a Cluster: on the management cluster it is an annotation on the Cluster.
	Owner = graph.Owner
)

// The annotations of a hand-over that its steps look for; the package graph explains each.
const (
	HandoverMark = graph.HandoverMark
	SourceMark   = graph.SourceMark
	StaysMark    = graph.StaysMark
	DeletingMark = graph.DeletingMark
)

// OwnerIn reads who manages a Cluster from its annotations; the zero value where they do not tell, or not so that it can be read.
func OwnerIn(annotations map[string]string) Owner { return graph.OwnerIn(annotations) }

// PausedIn is objects with the Clusters paused for which is returns true. is gets NAMESPACE/NAME.
func PausedIn(objects []Portable, is func(cluster string) bool) ([]Portable, error) {
	return graph.PausedIn(objects, is)
}
