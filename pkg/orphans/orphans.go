// Package orphans finds the resources that clouds still have of a fleet's clusters and that no living management cluster owns. Such
// resources are, for example, machines that run and cost money after their management cluster is gone.
package orphans

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Options say whose orphans Find looks for, and where.
type Options struct {
	// Fleet is the identity of the fleet; "" if its repo has none yet.
	Fleet string
	// Living are the clusters that the answering management clusters manage, by name. The value is the name of the management cluster.
	Living map[string]string
	// Declared are the names of the clusters in the fleet repo. Unread lists the files with problems, which may declare other clusters.
	Declared []string
	Unread   []string
	// Unasked are the management clusters that did not answer. Nobody knows which clusters they own.
	Unasked []Unasked
	// Accounts to ask. NotOpened are the accounts that could not be opened.
	Accounts  []cloud.Account
	NotOpened []CloudReport
	// NotListed are the providers of the fleet whose clouds fleetctl cannot ask.
	NotListed []string
	// AccountsNotAsked are accounts with clusters of the fleet that the credentials at hand do not open.
	AccountsNotAsked []AccountNotAsked
}

// AccountNotAsked is an account of a cloud that was not asked, because the credentials at hand do not open it. Nothing is known of it, and
// it keeps nothing in other accounts from being deleted.
type AccountNotAsked struct {
	Cloud string `json:"cloud"`
	// Account is its number, or "" if nothing tells it.
	Account string `json:"account,omitempty"`
	// Identity of the fleet that leads to the account, as KIND NAME.
	Identity string `json:"identity"`
	Why      string `json:"why"`
	Hint     string `json:"hint,omitempty"`
}

// String names the account, and says why it was not asked.
func (a AccountNotAsked) String() string {
	if a.Account == "" {
		return a.Cloud + ", the account of " + a.Identity + ": " + a.Why
	}
	return a.Cloud + " account " + a.Account + " of " + a.Identity + ": " + a.Why
}

// Unasked is a management cluster that nobody could ask.
type Unasked struct {
	Name  string `json:"name"`
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	// Answers tells that the management cluster exists, but does not know yet which clusters it owns. So nobody can say that it no longer
	// exists.
	Answers bool `json:"answers"`
}

// Report is what was found.
type Report struct {
	FormatVersion string `json:"formatVersion"`
	Fleet         string `json:"fleet"`
	// Complete tells whether all clouds and all management clusters have answered.
	Complete bool          `json:"complete"`
	Clouds   []CloudReport `json:"clouds"`
	// NotListed are the providers whose clouds fleetctl cannot ask. Nothing is known of these clouds.
	NotListed []string `json:"cloudsNotListed"`
	// AccountsNotAsked are accounts of which nothing is known either.
	AccountsNotAsked []AccountNotAsked `json:"accountsNotAsked"`
	Unasked          []Unasked         `json:"managementClustersNotAsked"`
	Clusters         []Cluster         `json:"clusters"`
	// Others counts the resources of other fleets in the same accounts. The report does not list them.
	Others int `json:"ofOtherFleets"`

	living           map[string]string
	declared, unread []string
}

// CloudReport is one account of a cloud.
type CloudReport struct {
	Cloud string `json:"cloud"`
	// Account is the number of the account, or "" if it is not known.
	Account  string          `json:"account,omitempty"`
	Regions  []string        `json:"regions"`
	Problems []cloud.Problem `json:"problems"`
}

// Where names the account, and the region of a problem.
func (c CloudReport) Where(region string) string {
	where := c.Cloud
	if c.Account != "" {
		where += " account " + c.Account
	}
	return strings.TrimSpace(where + " " + region)
}

// Proof is the evidence that a resource belongs to this fleet.
type Proof string

// The proofs, the strongest first.
const (
	// ProofTag: the tags of the resource have the identity of the fleet.
	ProofTag Proof = "tag"
	// ProofNetwork: the resource is in a network of its cluster that has the fleet's tag.
	ProofNetwork Proof = "network"
	// ProofNone: the tags, or whatever a cloud has instead of tags, name a cluster and no fleet.
	ProofNone Proof = "none"
)

// Resource is a resource in a cloud, with the evidence for its owner.
type Resource struct {
	cloud.Resource
	Proof Proof `json:"proof"`
}

// Cluster is a cluster with resources in a cloud that no known management cluster manages.
type Cluster struct {
	Name  string `json:"name"`
	Cloud string `json:"cloud"`
	// Proven tells whether all listed resources have a proof that they are the fleet's.
	Proven bool `json:"proven"`
	// Declared tells whether the fleet repo still declares the cluster. A new management cluster would make it again.
	Declared bool `json:"declared"`
	// UsedBy are the resources of others that are in a network of the cluster, or use a part of the network. Without the network they
	// would be cut off.
	UsedBy    []string   `json:"usedBy"`
	Resources []Resource `json:"resources"`

	account cloud.Account
}

// Find asks all accounts and reports the orphans. An account that does not answer becomes a problem in the report.
func Find(ctx context.Context, o Options) *Report {
	report := &Report{
		FormatVersion: "1", Fleet: o.Fleet, Clouds: slices.Clone(o.NotOpened), Clusters: []Cluster{},
		Unasked: append([]Unasked{}, o.Unasked...), living: o.Living,
		NotListed: append([]string{}, o.NotListed...), AccountsNotAsked: append([]AccountNotAsked{}, o.AccountsNotAsked...),
		declared: o.Declared, unread: o.Unread,
	}
	known := slices.Clone(o.Declared)
	for name := range o.Living {
		known = append(known, name)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, account := range o.Accounts {
		found := account.Find(ctx, o.Fleet, known)
		report.Clouds = append(report.Clouds, CloudReport{
			Cloud: account.Cloud(), Account: found.Account, Regions: append([]string{}, found.Regions...),
			Problems: append([]cloud.Problem{}, found.Problems...),
		})
		report.add(o, account, found)
	}
	slices.SortFunc(report.Clusters, func(x, y Cluster) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Cloud, y.Cloud)) })
	report.Complete = len(o.Unasked) == 0 && len(o.NotListed) == 0 && len(o.AccountsNotAsked) == 0 && report.Answered()
	return report
}

// Answered tells whether every cloud that was asked has answered all questions.
func (r *Report) Answered() bool {
	return !slices.ContainsFunc(r.Clouds, func(c CloudReport) bool { return len(c.Problems) > 0 })
}

// add adds the resources of one account, except those of living clusters and those of other fleets.
func (r *Report) add(o Options, account cloud.Account, found cloud.Found) {
	resources := found.Resources
	type owned struct{ network, cluster string }
	owners := map[owned]string{} // the fleets of networks: of what another cluster has in one, that proves nothing
	for _, resource := range resources {
		if resource.Network == resource.ID && resource.Fleet != "" {
			owners[owned{resource.Network, resource.Cluster}] = resource.Fleet
		}
	}
	clusters := map[string]*Cluster{}
	for _, resource := range resources {
		owner, proof := resource.Fleet, ProofTag
		if owner == "" {
			owner, proof = owners[owned{resource.Network, resource.Cluster}], ProofNetwork
		}
		switch {
		case owner == "":
			proof = ProofNone
		case owner != o.Fleet:
			r.Others++
			continue
		}
		if _, lives := o.Living[resource.Cluster]; lives {
			continue
		}
		c := clusters[resource.Cluster]
		if c == nil {
			c = &Cluster{
				Name: resource.Cluster, Cloud: account.Cloud(), Proven: true, Declared: slices.Contains(o.Declared, resource.Cluster),
				account: account,
			}
			clusters[resource.Cluster] = c
		}
		c.Proven = c.Proven && proof != ProofNone
		c.Resources = append(c.Resources, Resource{Resource: resource, Proof: proof})
	}
	for _, c := range clusters {
		c.UsedBy = c.usedBy(o.Fleet, found)
		r.Clusters = append(r.Clusters, *c)
	}
}

// MostNamed is how many users of a resource or a network a text for people names. Any user of an account can make thousands.
const MostNamed = 10

// usedBy returns the resources of others that need the networks of the cluster. Others chose their names, so each is on one line.
func (c *Cluster) usedBy(fleet string, found cloud.Found) []string {
	users, networks := []string{}, map[string]bool{}
	for _, r := range c.Resources {
		if r.Carries && r.Proof != ProofNone {
			networks[r.Region+" "+r.Network] = r.Network != ""
			for _, user := range r.Users {
				users = append(users, fmt.Sprintf("cluster %s (%s %s)", plain.Line(user), r.Kind, plain.Line(r.ID)))
			}
		}
	}
	for _, r := range slices.Concat(found.Resources, found.Strangers) {
		switch {
		case !networks[r.Region+" "+r.Network], r.Cluster == c.Name && (r.Fleet == "" || r.Fleet == fleet):
		case r.Cluster == "":
			users = append(users, strings.TrimSuffix(fmt.Sprintf("%s %s (%s)", r.Kind, plain.Line(r.ID), plain.Line(r.Name)), " ()"))
		default:
			users = append(users, fmt.Sprintf("cluster %s (%s %s)", plain.Line(r.Cluster), r.Kind, plain.Line(r.ID)))
		}
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// Count returns the number of orphans.
func (r *Report) Count() int {
	n := 0
	for _, c := range r.Clusters {
		n += len(c.Resources)
	}
	return n
}
