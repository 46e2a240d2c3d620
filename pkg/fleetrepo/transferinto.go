package fleetrepo

import (
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// TransferInto is the first half of Transfer to a target with its own repository, into. It adds the cluster's folder there, and the shared
// files that the repository lacks. Encrypted files are encrypted again for the target. Errors are those of Transfer, and an environment
// that is not declared there.
func (r *Repo) TransferInto(into *Repo, o TransferOptions, reseal Reseal) (*Edit, error) {
	to, err := into.managementCluster(o.To)
	if err != nil {
		return nil, err
	}
	c, err := r.find(o.Cluster)
	if err != nil {
		return nil, err
	}
	places, err := into.places(c.Name)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(places, func(p place) bool { return p.mgmt == to && p.environment == c.Environment }) {
		return &Edit{
			Summary:  "Transfer cluster " + c.Name,
			AsWanted: fmt.Sprintf("cluster %s is declared for management cluster %s there", c.Name, to.Name),
		}, nil
	}
	if !slices.Contains(into.EnvironmentNames(), c.Environment) {
		return nil, diag.Errorf("`fleetctl environment add "+c.Environment+"` there", "the fleet repo of %s has no environment %s",
			to.Name, c.Environment)
	}
	m := r.moverOf(c, into, to)
	m.reseal = reseal
	e, err := m.arrive(c, o.AcceptDifferences)
	if err != nil {
		return nil, err
	}
	shared, err := r.referred(e.Changes.Files(), reseal, into.exists)
	e.Changes.Write(shared...)
	return e, err
}

// TransferAway is the other half: it removes the cluster's folder from this repo, with the record of the run.
func (r *Repo) TransferAway(o TransferOptions) (*Edit, error) {
	to, err := r.managementCluster(o.To)
	if err != nil {
		return nil, err
	}
	c, err := r.find(o.Cluster)
	if err != nil {
		return nil, err
	}
	if to.Repository == nil {
		return nil, diag.Usage("`fleetctl cluster transfer` moves it within this repository",
			"management cluster %s has no repository of its own", to.Name)
	}
	e := &Edit{Summary: fmt.Sprintf("Transfer cluster %s from %s to %s", c.Name, c.mgmt.Name, to.Name), Environments: []string{c.Environment}}
	return e, r.leave(e, c, to, o.HandedOver)
}

// refuseElsewhere returns an error for a management cluster that has its own repository, because this repo does not
// declare its clusters.
func refuseElsewhere(m *v1alpha1.ManagementCluster) error {
	if m.Repository == nil {
		return nil
	}
	return diag.Errorf("run it in a clone of that; `fleetctl bootstrap --management "+m.Name+" --stand-alone` here makes both",
		"management cluster %s has a fleet repo of its own, %s", m.Name, m.Repository.Git.URL)
}
