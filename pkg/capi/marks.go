package capi

// The annotations by which a hand-over knows again what it has made and what it has changed. Each stands in the same write as what it tells
// of, so that no kill comes between them.
const (
	// HandoverMark on a copy at the target is the hand-over that made it; at a source, where something is detached, the one that removes it.
	HandoverMark = "fleetctl.dev/handover"
	// SourceMark on a copy is the UID of what it is the copy of.
	SourceMark = "fleetctl.dev/handover-source"
	// StaysMark on a copy says that the source keeps what it is the copy of, because others there use it, too.
	StaysMark = "fleetctl.dev/handover-stays"
	// DeletingMark on a copy says that somebody had asked for the deletion of what it is the copy of.
	DeletingMark = "fleetctl.dev/handover-deleting"
	// HeldMark on a copy says that Cluster API's annotation for pausing on it is the hand-over's.
	HeldMark = "fleetctl.dev/handover-held"
	// PausedMark on a Cluster or a ClusterClass says that the hand-over has paused it, and what was there before: a value, or "" for none.
	PausedMark = "fleetctl.dev/handover-paused"
	// OwnerMark on a Cluster says which management cluster manages it; see Owner.
	OwnerMark = "fleetctl.dev/owner"
)

// copyMarks belong to a copy alone, and are no part of what it is a copy of.
func copyMarks() []string {
	return []string{HandoverMark, SourceMark, StaysMark, DeletingMark, HeldMark}
}
