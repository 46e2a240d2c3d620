// Package cloud has the words in which clouds are asked what they hold of a fleet's clusters. Each package below it asks one cloud.
package cloud

import (
	"context"
	"time"
)

// Cost is how something is paid for, as far as its kind tells.
type Cost string

// What a thing costs while nobody uses it.
const (
	CostHourly  Cost = "hourly"
	CostStorage Cost = "storage"
	CostNone    Cost = "none"
)

// MaxSaid bounds how much of an error is repeated that a cloud answers with, in bytes.
const MaxSaid = 2 << 10

// MaxAnswer bounds an answer of a cloud, in bytes. Its client keeps the whole of it in memory. The largest is vCenter's list of volumes, of
// which there is room for 50,000.
const MaxAnswer = 256 << 20

// Resource is one thing that a cloud holds.
type Resource struct {
	Region string `json:"region"`
	Kind   string `json:"kind"`
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	// Created is when it was made; nil where the cloud does not say.
	Created *time.Time `json:"created,omitempty"`
	Cost    Cost       `json:"cost"`
	// Cluster is the name of the cluster that it belongs to, by its tags; Fleet, the value of v1alpha1.FleetTag. Network is the network that
	// it is in.
	Cluster string `json:"-"`
	Fleet   string `json:"-"`
	Network string `json:"-"`
	// Users are other clusters that its tags name: they use it, too.
	Users []string `json:"-"`
	// Carries tells that what else is in its network cannot do without it: a subnet, a gateway, a route table.
	Carries bool `json:"-"`
}

// Problem is something that a cloud could not be asked, or did not say.
type Problem struct {
	Region string `json:"region,omitempty"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

// Found is what an account said.
type Found struct {
	// Regions that were asked.
	Regions   []string
	Resources []Resource
	// Strangers are what is in some network without the tags of a cluster: machines, load balancers, gateways, subnets and network interfaces.
	// One that has a Cluster belongs to something that goes with that cluster.
	Strangers []Resource
	Problems  []Problem
}

// Account is a cloud as credentials open it.
type Account interface {
	// Cloud is the name of the infrastructure provider: aws.
	Cloud() string
	// Find lists everything that goes with some cluster of Cluster API, whoever's it is. fleet, and the names of clusters, help to find what
	// can only be asked for by them.
	Find(ctx context.Context, fleet string, clusters []string) Found
	// Stages orders the deletable resources as the cloud demands. The resources of one list are deleted at the same time, and the next list
	// begins when they are gone. What it cannot delete is in none.
	Stages(resources []Resource) [][]Resource
	// Delete returns when the resource is gone, or was before.
	Delete(ctx context.Context, resource Resource) error
}

// ByKind returns the resources of each kind in a list of their own, in the order of kinds. A kind without resources has no list, and
// resources of other kinds are left out.
func ByKind(resources []Resource, kinds []string) [][]Resource {
	var lists [][]Resource
	for _, kind := range kinds {
		var list []Resource
		for _, r := range resources {
			if r.Kind == kind {
				list = append(list, r)
			}
		}
		if len(list) > 0 {
			lists = append(lists, list)
		}
	}
	return lists
}
