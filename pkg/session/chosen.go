package session

import (
	"cmp"
	"errors"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// chosen returns the management cluster or the standby of that name, and for a standby the management cluster that it is a standby of.
func chosen(fleet *v1alpha1.Fleet, name string) (m *v1alpha1.ManagementCluster, standbyOf string, err error) {
	if standby := fleet.Standby(name); standby != nil {
		m, err = fleet.StandbyCluster(standby)
		return m, standby.Of, err
	}
	m, err = fleet.ManagementCluster(name)
	if name == "" || !errors.Is(err, v1alpha1.ErrNoManagementCluster) || len(fleet.Spec.Standbys) == 0 {
		return m, "", err
	}
	names := fleet.ManagementClusterNames()
	for i := range fleet.Spec.Standbys {
		names = append(names, fleet.Spec.Standbys[i].Name)
	}
	return nil, "", &diag.Error{
		Op: "find management cluster or standby " + name, Err: v1alpha1.ErrNoManagementCluster,
		Hint: diag.Among(name, names), Code: diag.ExitUsage,
	}
}

// DeclaredAs is the management cluster in fleet.yaml that the session works on. For a standby it is the management cluster that the standby
// takes over from.
func (s *Session) DeclaredAs() string { return cmp.Or(s.StandbyOf, s.Mgmt.Name) }

// RefuseStandby refuses a standby, for a command that needs a management cluster with clusters.
func (s *Session) RefuseStandby() error {
	if s.StandbyOf == "" {
		return nil
	}
	return diag.Usage("name "+s.StandbyOf+" with --management; `fleetctl standby activate "+s.Mgmt.Name+"` has the standby take over",
		"%s is a standby of %s, and manages nothing", s.Mgmt.Name, s.StandbyOf)
}

// Side is the session's management cluster as a side of a hand-over.
func (s *Session) Side(client *kube.Client) handover.Side {
	return handover.Side{Name: s.Mgmt.Name, Client: client, Standby: s.StandbyOf != ""}
}

// OwnNote tells whether the standby of this command has written the note.
func (s *Session) OwnNote(note *snapshot.Snapshot) bool {
	return s.Waiting != "" && note.HandedOverUID == s.Waiting
}
