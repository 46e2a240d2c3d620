package v1alpha1

// FleetTag is the tag that everything of a fleet's clusters has in a cloud; its value is the identity of the fleet. Names of clusters collide where several
// fleets share an account: this is what proves whose something is.
const FleetTag = "fleetctl.dev/fleet"
