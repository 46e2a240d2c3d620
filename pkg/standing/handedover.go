package standing

import (
	"context"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// RefuseHandedOver refuses to make a management cluster of a cluster that has handed its work over, or is about to,
// because two management clusters would act on the same machines. It also refuses to make a standby of a cluster that
// has work, because this work would stop with its providers. It returns the journal that it has read; nil if there is
// none.
func RefuseHandedOver(ctx context.Context, s *session.Session, client *kube.Client) (*handover.Journal, error) {
	journal, err := handover.ReadJournal(ctx, client)
	if err != nil {
		return nil, err
	}
	if journal != nil {
		err = RefuseJournal(s, journal)
	}
	if err == nil && s.StandbyOf != "" {
		err = handover.RefuseWork(ctx, s.Side(client))
	}
	return journal, err
}

// RefuseJournal returns an error for a management cluster whose journal says that another cluster has its work or is
// about to take it, or that it waits for another's work.
func RefuseJournal(s *session.Session, journal *handover.Journal) error {
	switch {
	case journal.IsStandby() && s.StandbyOf == "":
		return handover.AtRest("the management cluster "+s.Mgmt.Name, journal)
	case journal.Activates && (journal.Active() || s.StandbyOf != "" && journal.Role == handover.RoleTarget):
		return diag.Errorf("`"+journal.Command()+"` goes on with it", "%s is taking over from %s", s.Mgmt.Name, journal.Source.Name)
	}
	if journal.Snapshot != "" && journal.Phase != handover.PhaseReleased {
		return diag.Errorf("`fleetctl restore` goes on with it, `fleetctl restore --abort` undoes it",
			"the management cluster %s is being restored from the snapshot %s", s.Mgmt.Name, journal.Snapshot)
	}
	if journal.Around && journal.Active() {
		return handover.BeingFenced("the management cluster "+s.Mgmt.Name, journal)
	}
	if journal.Detach && journal.Phase != handover.PhaseReleased {
		return handover.BeingDetached("the management cluster "+s.Mgmt.Name, journal)
	}
	if !journal.Whole() {
		if journal.Active() && !journal.Detach {
			return handover.InTheMiddle("the management cluster "+s.Mgmt.Name, journal)
		}
		return nil // the source keeps its other clusters
	}
	if journal.Role != handover.RoleSource {
		if journal.Active() && !journal.Phase.Committed() {
			return handover.InTheMiddle("the management cluster "+s.Mgmt.Name, journal) // init would start what the fence holds
		}
		return nil
	}
	if journal.Phase.Committed() {
		return diag.Errorf("work with "+journal.Target.Name+
			"; `fleetctl pivot` finishes what may be left to do, and `fleetctl host delete` ends this one",
			"the management cluster %s has handed its work over to %s", s.Mgmt.Name, journal.Target.Name)
	}
	return diag.Errorf("`fleetctl pivot` goes on with it, `fleetctl pivot --abort` undoes it",
		"the management cluster %s is being handed over to %s", s.Mgmt.Name, journal.Target.Name)
}
