package fleetrepo

// Check is one thing that an edit has to pass before it is made. The kinds of checks are the types of this file.
type Check interface{ isCheck() }

// RendersCluster asks that a chart takes the values of a cluster. Even if the chart's schema takes the values, its templates may refuse
// them when they are rendered.
type RendersCluster struct {
	// File of the cluster, whose values the edit makes or changes.
	File string
}

// KeepsClusters asks that the clusters of changed charts still render.
type KeepsClusters struct {
	// Flavours whose charts the edit changes.
	Flavours []string
}

// AppliesManifests asks that an API server would take manifests that the edit writes.
type AppliesManifests struct {
	// Folder that Flux is to apply.
	Folder string
}

// FollowsStep asks that the step before the edit has reached the cluster: two steps in one commit would be one step.
type FollowsStep struct {
	// File that the step before has changed.
	File string
	// Tag of the cluster's channel; "" for a channel that follows a branch. A change that is not in the tag has not reached the cluster.
	Tag string
	// Remote says that Flux reads the fleet repo from its remote: what is not pushed has not reached the cluster either.
	Remote bool
}

func (RendersCluster) isCheck()   {}
func (KeepsClusters) isCheck()    {}
func (AppliesManifests) isCheck() {}
func (FollowsStep) isCheck()      {}
