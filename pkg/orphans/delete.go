package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Kept is a resource that Delete keeps, and the reason.
type Kept struct {
	Resource
	Why string `json:"why"`
}

// Deletion are the resources of a cluster to delete, in order, and the resources to keep.
type Deletion struct {
	Cluster   string     `json:"cluster"`
	Resources []Resource `json:"resources"`
	Kept      []Kept     `json:"kept"`

	parts []part
}

// part has the resources of the cluster in one account.
type part struct {
	account   cloud.Account
	resources []cloud.Resource
}

// MayOwn returns an error for a management cluster that was not asked and that may own the cluster. It returns nil if gone lists the
// management cluster.
func (u Unasked) MayOwn(cluster string, gone []string) error {
	said := slices.Contains(gone, u.Name)
	switch {
	case u.Answers && said:
		return diag.Errorf(cmp.Or(u.Hint, "bring it to an end"),
			"the management cluster %s is not gone: it answers, and may own the cluster %s: %s", u.Name, cluster, u.Error)
	case u.Answers:
		return diag.Errorf(cmp.Or(u.Hint, "bring it to an end"),
			"the management cluster %s could not say what it owns, and may own the cluster %s: %s", u.Name, cluster, u.Error)
	case said:
		return nil
	}
	return diag.Errorf(cmp.Or(u.Hint, "bring it back")+"; only if it exists nowhere any more, and nothing restores it, add --gone "+u.Name,
		"the management cluster %s could not be asked, and may own the cluster %s: %s", u.Name, cluster, u.Error)
}

// Deletion returns the resources of the cluster that can be deleted: resources with a proof that they are the fleet's, and that nobody else
// uses. gone are the management clusters that no longer exist, as the user says. Errors: a management cluster or a cloud did not answer and
// may own the cluster, or the fleet repo declares the cluster.
func (r *Report) Deletion(name string, gone []string) (*Deletion, error) {
	for _, g := range gone {
		if !slices.ContainsFunc(r.Unasked, func(u Unasked) bool { return u.Name == g }) {
			return nil, diag.Usage("leave --gone "+g+" out",
				"the management cluster %s answers, or fleet.yaml does not have it: it is not one of those that could not be asked", g)
		}
	}
	for _, u := range r.Unasked {
		if err := u.MayOwn(name, gone); err != nil {
			return nil, err
		}
	}
	if owner, lives := r.living[name]; lives {
		return nil, diag.Errorf("`fleetctl cluster remove "+name+"` deletes it",
			"the management cluster %s manages the cluster %s: it is no orphan", owner, name)
	}
	if len(r.unread) > 0 {
		return nil, diag.Errorf("correct what `fleetctl validate` names",
			"the fleet repo may still declare the cluster %s, and cannot be read: %s", name, r.unread[0])
	}
	if slices.Contains(r.declared, name) {
		return nil, diag.Errorf("to have it deleted, remove it from Git first with `fleetctl cluster remove "+name+
			"`; to have it back, restore its management cluster",
			"the fleet repo still declares the cluster %s: it is to live", name)
	}
	for _, c := range r.Clouds {
		for _, p := range c.Problems {
			return nil, diag.Errorf(p.Hint, "nothing is deleted before the cloud has said all that it was asked: %s: %s",
				c.Where(p.Region), p.Text)
		}
	}
	d := &Deletion{Cluster: name, Resources: []Resource{}, Kept: []Kept{}}
	for _, c := range r.Clusters {
		if c.Name != name {
			continue
		}
		if len(c.UsedBy) > 0 {
			return nil, diag.Errorf("remove them from it, or delete by hand what they do not need"+lingering(c.UsedBy),
				"others use the network of the cluster %s, and would lose it: %s", name, plain.Names(c.UsedBy, MostNamed))
		}
		d.add(c)
	}
	return d, nil
}

// lingering adds to a hint what holds for network interfaces: AWS takes those of a load balancer away minutes after the load balancer
// itself, and nothing on them names a cluster.
func lingering(usedBy []string) string {
	if !slices.ContainsFunc(usedBy, func(text string) bool {
		return strings.HasPrefix(text, "network-interface ") && strings.Contains(text, "(ELB ")
	}) {
		return ""
	}
	return "; interfaces of load balancers that were deleted a moment ago go by themselves: run the same command again in some minutes"
}

// add adds the resources of the cluster in one account.
func (d *Deletion) add(c Cluster) {
	proofs, proven := map[string]Proof{}, []cloud.Resource{}
	for _, r := range c.Resources {
		switch {
		case r.Proof == ProofNone:
			d.Kept = append(d.Kept, Kept{r, "nothing on it names a fleet: it may be another one's"})
		case len(r.Users) > 0:
			d.Kept = append(d.Kept, Kept{r, "others use it, too: " + plain.Line(plain.Names(r.Users, MostNamed))})
		default:
			proofs[r.Region+" "+r.ID] = r.Proof
			proven = append(proven, r.Resource)
		}
	}
	p := part{account: c.account}
	for _, stage := range c.account.Stages(proven) {
		p.resources = append(p.resources, stage...)
	}
	for _, r := range proven {
		if !contains(p.resources, r) {
			d.Kept = append(d.Kept, Kept{Resource{r, proofs[r.Region+" "+r.ID]}, "fleetctl does not delete resources of this kind"})
		}
	}
	for _, r := range p.resources {
		d.Resources = append(d.Resources, Resource{r, proofs[r.Region+" "+r.ID]})
	}
	d.parts = append(d.parts, p)
}

func same(x, y cloud.Resource) bool { return x.Region == y.Region && x.Kind == y.Kind && x.ID == y.ID }

func contains(all []cloud.Resource, one cloud.Resource) bool {
	return slices.ContainsFunc(all, func(r cloud.Resource) bool { return same(r, one) })
}

// Only leaves out resources that are not in agreed, too, because the user has not seen them.
func (d *Deletion) Only(agreed *Deletion) {
	seen := func(r cloud.Resource) bool {
		return slices.ContainsFunc(agreed.Resources, func(a Resource) bool { return same(a.Resource, r) })
	}
	d.Resources = slices.DeleteFunc(d.Resources, func(r Resource) bool { return !seen(r.Resource) })
	for i := range d.parts {
		d.parts[i].resources = slices.DeleteFunc(d.parts[i].resources, func(r cloud.Resource) bool { return !seen(r) })
	}
}

// Watch observes Delete.
type Watch struct {
	// Before is called before each stage. An error ends the deletion.
	Before func(ctx context.Context) error
	// Stage is called before each stage of the deletion, with the resources to delete. It returns a function that gets the result.
	Stage func(what string) (ended func(error))
}

// Delete deletes the resources, stage by stage, and returns the deleted resources. It stops at the first stage in which a resource stays,
// because later stages need that resource to be gone.
func (d *Deletion) Delete(ctx context.Context, w Watch) (deleted []Resource, err error) {
	for _, p := range d.parts {
		for _, stage := range p.account.Stages(p.resources) {
			if err := w.Before(ctx); err != nil {
				return deleted, err
			}
			ended := w.Stage(fmt.Sprintf("delete %s (%d)", stage[0].Kind, len(stage)))
			gone, err := deleteStage(ctx, p.account, stage)
			ended(err)
			for _, r := range d.Resources {
				if contains(gone, r.Resource) {
					deleted = append(deleted, r)
				}
			}
			if err != nil {
				return deleted, err
			}
		}
	}
	return deleted, nil
}

// deleteStage deletes the resources of one stage, all at once: each security group waits for those that name it to lose their rules.
func deleteStage(ctx context.Context, account cloud.Account, stage []cloud.Resource) (gone []cloud.Resource, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var failed []error
	for _, r := range stage {
		all.Go(func() {
			err := account.Delete(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("delete %s %s in %s: %w", r.Kind, plain.Line(r.ID), r.Region, err))
				return
			}
			gone = append(gone, r)
		})
	}
	all.Wait()
	slices.SortFunc(failed, func(x, y error) int { return strings.Compare(x.Error(), y.Error()) })
	return gone, errors.Join(failed...)
}
