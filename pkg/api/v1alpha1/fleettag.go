package v1alpha1

// FleetTag is the tag that everything of a fleet's clusters has in a cloud; its value is the identity of the fleet. Names of clusters
// collide where several fleets share an account: this is what proves whose something is.
const FleetTag = "fleetctl.dev/fleet"

// In vSphere a machine says whose it is in its advanced configuration: FleetKey has the identity of the fleet, ClusterKey the name of the
// cluster. A tag of vSphere has to exist before a machine can have it, and a guest can change what begins with "guestinfo.".
const (
	FleetKey   = "fleetctl.fleet"
	ClusterKey = "fleetctl.cluster"
)

// IsFleetMark tells that the value of a field with this name is the identity of a fleet, which a cloud is told.
func IsFleetMark(name string) bool { return name == FleetTag || name == FleetKey }
