// Package roots finds the folders of a Git repository in which the Flux of a cluster begins. The objects of Flux tell: no fleet.yaml and no
// layout of fleetctl is needed, so commands work in repositories that were there before fleetctl.
package roots
