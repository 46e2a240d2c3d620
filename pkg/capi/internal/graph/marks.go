package graph

// The annotations by which a hand-over recognizes its copies and its changes. Each annotation is part of the write that it describes, so
// that no kill comes between them.
const (
	// HandoverMark on a copy at the target names the hand-over that made the copy. On an object that is detached from a source, it names the
	// hand-over that removes the object.
	HandoverMark = "fleetctl.dev/handover"
	// SourceMark on a copy is the UID of the original.
	SourceMark = "fleetctl.dev/handover-source"
	// StaysMark on a copy says that the source keeps the original, because other objects there use it, too.
	StaysMark = "fleetctl.dev/handover-stays"
	// DeletingMark on a copy says that somebody had asked for the deletion of the original.
	DeletingMark = "fleetctl.dev/handover-deleting"
	// HeldMark on a copy says that Cluster API's annotation for pausing on it is the hand-over's.
	HeldMark = "fleetctl.dev/handover-held"
	// PausedMark on a Cluster or a ClusterClass says that the hand-over has paused it, and what was there before: a value, or "" for none.
	PausedMark = "fleetctl.dev/handover-paused"
	// OwnerMark on a Cluster says which management cluster manages it; see Owner.
	OwnerMark = "fleetctl.dev/owner"
)

// copyMarks belong to a copy alone: its original has none of them.
func copyMarks() []string {
	return []string{HandoverMark, SourceMark, StaysMark, DeletingMark, HeldMark}
}
