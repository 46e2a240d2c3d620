package graph

// The annotations by which a hand-over recognises its copies and its changes. Each annotation is part of the write that it describes, so
// that a kill cannot separate the two.
const (
	// HandoverMark on a copy at the target has the ID of the hand-over that made the copy. On an object that is detached from a source, it has
	// the ID of the hand-over that removes the object.
	HandoverMark = "fleetctl.dev/handover"
	// SourceMark on a copy is the UID of the original.
	SourceMark = "fleetctl.dev/handover-source"
	// StaysMark on a copy means that the source keeps the original, because other objects there use it too.
	StaysMark = "fleetctl.dev/handover-stays"
	// DeletingMark on a copy means that the original was being deleted.
	DeletingMark = "fleetctl.dev/handover-deleting"
	// HeldMark on a copy means that the hand-over has added Cluster API's pause annotation to it.
	HeldMark = "fleetctl.dev/handover-held"
	// PausedMark on a Cluster or a ClusterClass means that the hand-over has paused it. It has the former value, or "" for none.
	PausedMark = "fleetctl.dev/handover-paused"
	// OwnerMark on a Cluster has the management cluster that manages it; see Owner.
	OwnerMark = "fleetctl.dev/owner"
)

// copyMarks returns the annotations that only copies have.
func copyMarks() []string {
	return []string{HandoverMark, SourceMark, StaysMark, DeletingMark, HeldMark}
}
