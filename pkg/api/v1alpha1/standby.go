package v1alpha1

import (
	"slices"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Standby returns the standby of this name, or nil if fleet.yaml declares none.
func (f *Fleet) Standby(name string) *Standby {
	i := slices.IndexFunc(f.Spec.Standbys, func(s Standby) bool { return s.Name == name })
	if name == "" || i < 0 {
		return nil
	}
	return &f.Spec.Standbys[i]
}

// StandbyCluster returns the management cluster that a standby becomes when it takes over: all settings of the management cluster in Of,
// with the standby's name and host. The error is one of ManagementCluster.
func (f *Fleet) StandbyCluster(s *Standby) (*ManagementCluster, error) {
	of, err := f.ManagementCluster(s.Of)
	if err != nil {
		return nil, diag.Wrap("find the management cluster of the standby "+s.Name, err, diag.Hint(err))
	}
	m := *of
	m.Name, m.Host, m.Parent = s.Name, s.Host, ""
	return &m, nil
}

func (v *validator) standbys(f *Fleet) {
	all := f.Spec.Standbys
	at := func(i int) string { return itemPath("spec.standbys", i) }
	for i, s := range all {
		v.label(at(i)+".name", s.Name, maxClusterName)
		named := func(name string) func(ManagementCluster) bool {
			return func(m ManagementCluster) bool { return m.Name == name }
		}
		if slices.ContainsFunc(f.Spec.ManagementClusters, named(s.Name)) {
			v.errorf(RuleDuplicate, at(i)+".name", "give the standby another name", "there is a management cluster %.80s", s.Name)
		}
		of := slices.IndexFunc(f.Spec.ManagementClusters, named(s.Of))
		switch {
		case s.Of == "": // required reports the missing name
		case of < 0:
			v.refersTo(at(i)+".of", "management cluster", s.Of, f.ManagementClusterNames())
		case f.Spec.ManagementClusters[of].Repository != nil:
			v.errorf(RuleValue, at(i)+".of", "declare the standby in the fleet repo of "+s.Of,
				"management cluster %s has a fleet repo of its own", s.Of)
		}
		if v.noRemote {
			v.errorf(RuleRequired, at(i), "add `url:` to spec.git: a remote that outlives this machine",
				"a standby cannot fetch a fleet repo that only this machine has")
			continue
		}
		if s.Host.Type == HostWorkload {
			v.errorf(RuleValue, at(i)+".host.type",
				"use a host that needs no management cluster: "+string(HostKind)+", "+string(HostEmbedded)+" or "+string(HostExisting),
				"a standby cannot run on a workload cluster: it would be lost with the management cluster that makes it")
			continue
		}
		v.host(at(i), &ManagementCluster{Name: s.Name, Host: s.Host})
	}
	unique(v, all, func(i int) string { return at(i) + ".name" }, "standby", func(s Standby) string { return s.Name })
}
