package lifecycle

import (
	"cmp"
	"errors"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// chosen is the management cluster or the standby of that name, as what it is or would be, and what it is a standby of.
func chosen(fleet *v1alpha1.Fleet, name string) (m *v1alpha1.ManagementCluster, standbyOf string, err error) {
	if standby := fleet.Standby(name); standby != nil {
		m, err = fleet.StandbyCluster(standby)
		return m, standby.Of, err
	}
	m, err = fleet.ManagementCluster(name)
	if name == "" || !errors.Is(err, v1alpha1.ErrNoManagementCluster) || len(fleet.Spec.Standbys) == 0 {
		return m, "", err
	}
	var names []string
	for i := range fleet.Spec.Standbys {
		names = append(names, fleet.Spec.Standbys[i].Name)
	}
	hint := diag.Hint(err) + "; standbys: " + strings.Join(names, ", ")
	if nearest := diag.Nearest(name, names); nearest != "" {
		hint = "did you mean " + nearest + "?"
	}
	return nil, "", &diag.Error{Op: "find management cluster or standby " + name, Err: v1alpha1.ErrNoManagementCluster, Hint: hint, Code: diag.ExitUsage}
}

// declaredAs is the management cluster in fleet.yaml that the session's is of: a standby's is the one that it takes over from.
func (s *session) declaredAs() string { return cmp.Or(s.standbyOf, s.mgmt.Name) }

// refuseStandby is for a command that a management cluster with work is for.
func (s *session) refuseStandby() error {
	if s.standbyOf == "" {
		return nil
	}
	return diag.Usage("name "+s.standbyOf+" with --management; `fleetctl standby activate "+s.mgmt.Name+"` has the standby take over",
		"%s is a standby of %s, and manages nothing", s.mgmt.Name, s.standbyOf)
}

// side is the session's management cluster in a hand-over.
func (s *session) side(client *kube.Client) handover.Side {
	return handover.Side{Name: s.mgmt.Name, Client: client, Standby: s.standbyOf != ""}
}

// ownNote tells whether it is the note of the standby that the command is about.
func (s *session) ownNote(note *snapshot.Snapshot) bool {
	return s.waiting != "" && note.HandedOverUID == s.waiting
}
