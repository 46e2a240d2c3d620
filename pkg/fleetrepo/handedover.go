package fleetrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
)

// HandedOver describes the run in which a management cluster hands over a workload cluster to a management cluster that it has made.
type HandedOver struct {
	At time.Time
	// By says who ran it, and where. Version is the version of fleetctl.
	By, Version string
}

// handedOverEntry is one line of the record.
type handedOverEntry struct {
	Cluster  string `yaml:"cluster"`
	At       string `yaml:"at"`
	By       string `yaml:"by"`
	Fleetctl string `yaml:"fleetctl"`
}

// endedEntry says which run has ended a management cluster, and which cluster that was.
type endedEntry struct {
	UID      string `yaml:"uid,omitempty"`
	At       string `yaml:"at"`
	By       string `yaml:"by"`
	Fleetctl string `yaml:"fleetctl"`
}

// The lists of the record: clusters that were handed over, and clusters whose hand-over a run has begun.
const (
	handedOverList  = "handedOver"
	handingOverList = "handingOver"
)

func newRecord(from, to string) []byte {
	return []byte("# What " + from + " has handed over to " + to + ", which it made, and what it has begun to. fleetctl keeps it.\n" +
		handedOverList + ": []\n")
}

// entry returns the record's entry for a cluster.
func (run *HandedOver) entry(c ClusterName) (*yaml.Node, error) {
	item := &yaml.Node{}
	return item, item.Encode(handedOverEntry{Cluster: c.String(), At: run.At.UTC().Format(time.RFC3339), By: run.By, Fleetctl: run.Version})
}

// HandedOverBy returns the clusters of which the fleet repo says that the management cluster called name has handed them over to a
// management cluster that it made: that one, by the name of the cluster.
func (r *Repo) HandedOverBy(name string) (map[string]string, error) {
	parent, err := r.managementCluster(name)
	if err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for _, m := range r.Fleet.Spec.ManagementClusters {
		if m.Parent != name {
			continue
		}
		file := parent.Layout().HandedOver(m.Name)
		src, err := r.generated(file)
		if err != nil {
			return nil, err
		}
		record, err := readHandOvers(src)
		if err != nil {
			return nil, diag.Wrap("read "+file, err, "correct it in an editor: it says which clusters "+m.Name+" has taken over")
		}
		for _, entry := range record.HandedOver {
			owners[entry.Cluster[strings.LastIndex(entry.Cluster, "/")+1:]] = m.Name
		}
	}
	return owners, nil
}

// handOvers is the content of the record.
type handOvers struct {
	HandedOver  []handedOverEntry `yaml:"handedOver"`
	HandingOver []handedOverEntry `yaml:"handingOver"`
}

// readHandOvers decodes the record, with the entries in its order. An empty src has none.
func readHandOvers(src []byte) (*handOvers, error) {
	record := &handOvers{}
	return record, yaml.Unmarshal(src, record)
}

// begun reads the hand-overs that a run has begun and no run has ended. A missing record has none.
func (r *Repo) begun(m *Master, parent *v1alpha1.ManagementCluster) error {
	name := parent.Layout().HandedOver(m.Name)
	src, err := r.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	record, err := readHandOvers(src)
	if err != nil {
		return diag.Wrap("read "+name, err, "correct it in an editor: it says which clusters "+m.Name+" may have taken over already")
	}
	for _, entry := range record.HandingOver {
		i := slices.IndexFunc(m.Clusters, func(c ClusterName) bool { return c.String() == entry.Cluster })
		if i < 0 || slices.Contains(m.Begun, m.Clusters[i]) {
			continue
		}
		m.Begun = append(m.Begun, m.Clusters[i])
		m.ByWhom = strings.TrimSpace(fmt.Sprintf("%s, %s", entry.At, entry.By))
	}
	return nil
}

// BeginHandOver notes, in the folder of the management cluster that made another one, which clusters a run is about to
// hand to the other one. Flux has to read the note before the first of these clusters is handed over. Then a machine
// that knows only Git sees that the hand-over may have happened. Transfer removes the note.
func (r *Repo) BeginHandOver(m *Master, run *HandedOver) (*Edit, error) {
	parent, err := r.managementCluster(m.Parent)
	if err != nil {
		return nil, err
	}
	name := parent.Layout().HandedOver(m.Name)
	src, err := r.generated(name)
	if err != nil {
		return nil, err
	}
	if src == nil {
		src = newRecord(parent.Name, m.Name)
	}
	record, err := readHandOvers(src)
	if err != nil {
		return nil, diag.Wrap("change "+yamledit.At(name, err), err, "correct it in an editor, or delete it")
	}
	e := &Edit{Summary: "Begin to hand over to " + m.Name, AsWanted: name + " says so"}
	for _, c := range m.Clusters {
		if slices.ContainsFunc(record.HandingOver, func(entry handedOverEntry) bool { return entry.Cluster == c.String() }) {
			continue
		}
		item, err := run.entry(c)
		if err != nil {
			return nil, err
		}
		if src, err = yamledit.Append(src, 0, yamledit.Path{handingOverList}, item); err != nil {
			return nil, diag.Wrap("change "+yamledit.At(name, err), err, "correct it in an editor, or delete it")
		}
	}
	e.Changes.Write(manifest.File{Path: name, Content: src})
	return e, nil
}

// NoteEnded notes, beside the records of its hand-overs, that the management cluster called name has ended. With this note, init makes
// the management cluster again without asking what has become of it, and removes the note. uid is the UID of the ended management
// cluster, as in ManagementID; "" if the run does not know it.
func (r *Repo) NoteEnded(name, uid string, run *HandedOver) (*Edit, error) {
	m, err := r.managementCluster(name)
	if err != nil {
		return nil, err
	}
	file := m.Layout().Ended(name)
	content, err := yaml.Marshal(map[string]endedEntry{
		"ended": {UID: uid, At: run.At.UTC().Format(time.RFC3339), By: run.By, Fleetctl: run.Version},
	})
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: "Note that " + name + " has ended", AsWanted: file + " says so"}
	e.Changes.Write(manifest.File{Path: file, Content: append([]byte("# "+name+" has handed over what it had, and has ended. "+
		"fleetctl keeps this file, and removes it when it makes "+name+" again.\n"), content...)})
	return e, nil
}

// record writes the hand-over of a cluster into the folder of the management cluster that handed it over: the cluster,
// the time, and the run. It removes the cluster's note of a begun hand-over.
func (r *Repo) record(e *Edit, c *declared, to *v1alpha1.ManagementCluster, run *HandedOver) error {
	if run == nil || to.Parent != c.mgmt.Name {
		return nil
	}
	name := c.mgmt.Layout().HandedOver(to.Name)
	cluster := ClusterName{c.Environment, c.Name}
	src, err := r.generated(name)
	if err != nil {
		return err
	}
	if src == nil {
		src = newRecord(c.mgmt.Name, to.Name)
	}
	item, err := run.entry(cluster)
	if err != nil {
		return err
	}
	const mend = "correct it in an editor, or delete it"
	if src, err = yamledit.Append(src, 0, yamledit.Path{handedOverList}, item); err != nil {
		return diag.Wrap("change "+yamledit.At(name, err), err, mend)
	}
	record, err := readHandOvers(src)
	if err != nil {
		return diag.Wrap("change "+yamledit.At(name, err), err, mend)
	}
	for i, entry := range slices.Backward(record.HandingOver) {
		if entry.Cluster != cluster.String() {
			continue
		}
		if src, err = yamledit.RemoveItem(src, 0, yamledit.Path{handingOverList, i}); err != nil {
			return diag.Wrap("change "+yamledit.At(name, err), err, mend)
		}
	}
	e.Changes.Write(manifest.File{Path: name, Content: src})
	return nil
}
