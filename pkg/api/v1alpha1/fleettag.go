package v1alpha1

// FleetTag is the tag on all cloud resources of a fleet's clusters. Its value is the identity of the fleet. It identifies the owner of a
// resource, because several fleets in one account may use the same cluster names.
const FleetTag = "fleetctl.dev/fleet"

// The keys in the advanced configuration of a vSphere machine. FleetKey has the identity of the fleet, ClusterKey the name of the cluster.
// A vSphere tag would not do, because it must exist before a machine can have it. A key that begins with "guestinfo." would not do, because
// the guest can change it.
const (
	FleetKey   = "fleetctl.fleet"
	ClusterKey = "fleetctl.cluster"
)

// IsFleetMark tells whether a field of this name holds the identity of the fleet.
func IsFleetMark(name string) bool { return name == FleetTag || name == FleetKey }
