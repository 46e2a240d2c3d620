// Package cloud has the interface by which fleetctl lists and deletes the resources of a fleet's clusters in a cloud. Each package below it
// implements the interface for one cloud.
package cloud

import (
	"context"
	"time"
)

// Cost tells how a resource is paid for, as far as its kind tells.
type Cost string

// The costs of an unused resource.
const (
	CostHourly  Cost = "hourly"
	CostStorage Cost = "storage"
	CostNone    Cost = "none"
)

// MaxSaid bounds the quoted text of a cloud's error, in bytes.
const MaxSaid = 2 << 10

// MaxAnswer bounds the answer of a cloud, in bytes. The cloud's client keeps the whole answer in memory. The largest answer is vCenter's
// list of volumes: the bound has room for 50,000 volumes.
const MaxAnswer = 256 << 20

// MostPages bounds the pages of one list. The longest list of a real account has some hundred, and a server that always names another page
// would otherwise be asked forever, while everything it says is kept in memory.
const MostPages = 10_000

// Resource is one resource in a cloud.
type Resource struct {
	Region string `json:"region"`
	Kind   string `json:"kind"`
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	// Created is the time at which the resource was made. It is nil if the cloud does not tell.
	Created *time.Time `json:"created,omitempty"`
	Cost    Cost       `json:"cost"`
	// Cluster is the name of the cluster to which the resource belongs, by its tags. Fleet is the value of its tag v1alpha1.FleetTag. Network
	// is the network that contains it.
	Cluster string `json:"-"`
	Fleet   string `json:"-"`
	Network string `json:"-"`
	// Users are other clusters in its tags. They use the resource, but do not own it.
	Users []string `json:"-"`
	// Carries means that other resources in its network need it: it is a subnet, a gateway or a route table.
	Carries bool `json:"-"`
}

// AtOnce bounds the requests for deletions at once: others use the account's share of requests, too.
const AtOnce = 8

// Problem is a failed request, or information that the cloud did not give.
type Problem struct {
	Region string `json:"region,omitempty"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

// Found is the result of Account.Find.
type Found struct {
	// Account is the number of the account, or "" if the cloud has no accounts or did not tell.
	Account string
	// Regions are the regions that were searched.
	Regions   []string
	Resources []Resource
	// Strangers are resources in a network without the tags of a cluster: machines, load balancers, gateways, subnets and network interfaces.
	// A stranger with a Cluster belongs to a resource of that cluster.
	Strangers []Resource
	Problems  []Problem
}

// Account is an account at a cloud.
type Account interface {
	// Cloud returns the name of the infrastructure provider, such as aws.
	Cloud() string
	// Find lists all resources that belong to a cluster of Cluster API, in this fleet or another. Some resources can only be found by the tag
	// of a fleet or cluster: fleet and clusters are the values to search for.
	Find(ctx context.Context, fleet string, clusters []string) Found
	// Stages orders the deletable resources as the cloud requires. The resources of one list can be deleted at the same time, after the
	// resources of the list before are gone. It leaves out resources that it cannot delete.
	Stages(resources []Resource) [][]Resource
	// Delete deletes a resource, and returns when the resource is gone. It returns nil if the resource does not exist. It is called for all
	// resources of a list of Stages at once, because some of them can wait for each other, and bounds by itself what it asks at once.
	Delete(ctx context.Context, resource Resource) error
}

// ByKind returns one list of resources for each kind, in the order of kinds. It leaves out empty lists, and resources of other kinds.
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
