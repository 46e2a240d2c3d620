package fleetrepo

// Check is a condition of an edit. It has to hold before the edit is made. The kinds of checks are the types of this
// file.
type Check interface{ isCheck() }

// RendersCluster requires that a chart accepts the values of a cluster. Values that match the chart's schema may still
// make its templates fail.
type RendersCluster struct {
	// File of the cluster whose values the edit makes or changes.
	File string
}

// KeepsClusters requires that the clusters of changed charts still render.
type KeepsClusters struct {
	// Flavours whose charts the edit changes.
	Flavours []string
}

// AppliesManifests requires that an API server would accept manifests that the edit writes.
type AppliesManifests struct {
	// Folder that Flux is to apply.
	Folder string
}

// FollowsStep requires that the step before the edit has reached the cluster. Two steps in one commit would count as
// one step.
type FollowsStep struct {
	// File that the step before has changed.
	File string
	// Tag of the cluster's channel; "" for a channel that follows a branch. A change that is not in the tag has not reached the cluster.
	Tag string
	// Remote says that Flux reads the fleet repo from its remote. A change that is not pushed has not reached the
	// cluster either.
	Remote bool
}

func (RendersCluster) isCheck()   {}
func (KeepsClusters) isCheck()    {}
func (AppliesManifests) isCheck() {}
func (FollowsStep) isCheck()      {}
