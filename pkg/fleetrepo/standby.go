package fleetrepo

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Standby is a standby that fleet.yaml declares.
type Standby struct {
	Name string `json:"name"`
	// Of is the management cluster that it takes over from.
	Of   string `json:"of"`
	Host string `json:"host"`
}

// Standbys lists the standbys of fleet.yaml, in its order.
func (r *Repo) Standbys() ([]Standby, error) {
	all := make([]Standby, 0, len(r.Fleet.Spec.Standbys))
	for i := range r.Fleet.Spec.Standbys {
		s := &r.Fleet.Spec.Standbys[i]
		all = append(all, Standby{Name: s.Name, Of: s.Of, Host: string(s.Host.Type)})
	}
	return all, nil
}

// StandbyNames are the standbys that fleet.yaml declares.
func (r *Repo) StandbyNames() []string {
	names := make([]string, 0, len(r.Fleet.Spec.Standbys))
	for i := range r.Fleet.Spec.Standbys {
		names = append(names, r.Fleet.Spec.Standbys[i].Name)
	}
	return names
}

// AddStandby declares a standby in fleet.yaml. It is no error if fleet.yaml already has the same one; then Of may be empty. Errors: a taken
// name, and everything that makes fleet.yaml invalid.
func (r *Repo) AddStandby(s v1alpha1.Standby) (*Edit, error) {
	e := &Edit{Summary: fmt.Sprintf("Add standby %s of %s", s.Name, s.Of)}
	if there := r.Fleet.Standby(s.Name); there != nil {
		if s.Of != "" && s.Of != there.Of || !hasHost(there.Host, s.Host) {
			return nil, diag.Usage("choose another name, or change it in "+v1alpha1.FileName,
				"there is a standby %s already, and it is another", s.Name)
		}
		e.AsWanted = "standby " + s.Name + " is there"
		return e, nil
	}
	_, err := r.editFleet(e, func(f *fleetFile) error { return f.append("standbys", v1alpha1.Node(s)) })
	if err != nil {
		return nil, inFlags(err, fmt.Sprintf("spec.standbys[%d]", len(r.Fleet.Spec.Standbys)), nil)
	}
	e.Notes = append(e.Notes, fmt.Sprintf("`fleetctl init --management %s` makes it.", s.Name))
	return e, nil
}

// RemoveStandby removes a standby from fleet.yaml. It does not delete the cluster itself: teardown does. Error: an
// unknown standby.
func (r *Repo) RemoveStandby(name string) (*Edit, error) {
	i := slices.Index(r.StandbyNames(), name)
	if i < 0 {
		return nil, diag.Unknown("standby", name, r.StandbyNames(), "`fleetctl standby add "+name+"` makes one")
	}
	e := &Edit{Summary: "Remove standby " + name}
	_, err := r.editFleet(e, func(f *fleetFile) error { return f.removeStandby(i) })
	e.Notes = append(e.Notes, "An existing cluster stays: before this change, run `fleetctl teardown --management "+name+"`.")
	return e, err
}

// ActivateStandby replaces a management cluster by the standby that has taken over from it. The entry of the management
// cluster in fleet.yaml gets the standby's name and host, and references to the old name get the new one. The edit has
// no changes if the standby has replaced it already. Error: an unknown standby.
func (r *Repo) ActivateStandby(name, of string) (*Edit, error) {
	e := &Edit{Summary: fmt.Sprintf("%s takes over from %s", name, of)}
	managed := r.ManagementClusterNames()
	if slices.Contains(managed, name) && !slices.Contains(managed, of) {
		return e, nil
	}
	i, at := slices.Index(r.StandbyNames(), name), slices.Index(managed, of)
	if i < 0 {
		return nil, diag.Unknown("standby", name, r.StandbyNames(), "`fleetctl standby add "+name+"` makes one")
	}
	if at < 0 {
		return nil, diag.Unknown("management cluster", of, managed, "fleet.yaml declares none")
	}
	s := r.Fleet.Spec.Standbys[i]
	_, err := r.editFleet(e, func(f *fleetFile) error {
		cluster := yamledit.Path{"spec", "managementClusters", at}
		if err := f.setText(append(slices.Clone(cluster), "name"), name); err != nil {
			return err
		}
		if err := f.drop(append(slices.Clone(cluster), "parent")); err != nil { // a cluster that makes the old one does not make the new one
			return err
		}
		host := append(slices.Clone(cluster), "host")
		if err := f.drop(host); err != nil {
			return err
		}
		if err := f.write(host, v1alpha1.Node(s.Host)); err != nil {
			return err
		}
		if err := f.renameManagement(of, name); err != nil {
			return err
		}
		return f.removeStandby(i)
	})
	return e, err
}

func (f *fleetFile) setText(at yamledit.Path, text string) error {
	return f.take(yamledit.Set(f.src, 0, at, text))
}

// drop removes a field, if it exists.
func (f *fleetFile) drop(at yamledit.Path) error { return f.take(yamledit.Remove(f.src, 0, at)) }

// removeStandby removes one of the standbys, and the list with its last standby.
func (f *fleetFile) removeStandby(i int) error {
	if len(f.repo.Fleet.Spec.Standbys) == 1 {
		return f.drop(yamledit.Path{"spec", "standbys"})
	}
	return f.take(yamledit.RemoveItem(f.src, 0, yamledit.Path{"spec", "standbys", i}))
}

// write adds a mapping, field by field.
func (f *fleetFile) write(at yamledit.Path, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := f.write(append(slices.Clone(at), n.Content[i].Value), n.Content[i+1]); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if err := f.take(yamledit.Append(f.src, 0, at, item)); err != nil {
				return err
			}
		}
	default:
		var value any
		if err := n.Decode(&value); err != nil {
			return f.take(nil, err)
		}
		return f.take(yamledit.Set(f.src, 0, at, value))
	}
	return nil
}

// renameManagement changes a management cluster's name where other entries refer to it: its children, standbys, and notifications.
func (f *fleetFile) renameManagement(old, now string) error {
	spec := f.repo.Fleet.Spec
	var places []yamledit.Path
	for i := range spec.ManagementClusters {
		if spec.ManagementClusters[i].Parent == old {
			places = append(places, yamledit.Path{"spec", "managementClusters", i, "parent"})
		}
	}
	for i := range spec.Standbys {
		if spec.Standbys[i].Of == old {
			places = append(places, yamledit.Path{"spec", "standbys", i, "of"})
		}
	}
	for i := range spec.Notifications {
		for j, name := range spec.Notifications[i].ManagementClusters {
			if name == old {
				places = append(places, yamledit.Path{"spec", "notifications", i, "managementClusters", j})
			}
		}
	}
	for _, at := range places {
		if err := f.setText(at, now); err != nil {
			return err
		}
	}
	return nil
}
