package fleetrepo

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// TransferOptions of Transfer.
type TransferOptions struct {
	// Cluster is NAME or ENVIRONMENT/NAME. To is another management cluster of the fleet.
	Cluster, To string
	// AcceptDifferences accepts that the environment at the new management cluster differs from the present one.
	AcceptDifferences bool
	// HandedOver is the run that hands the cluster over. If the present management cluster is the parent of To, the run is recorded in the
	// parent's folder.
	HandedOver *HandedOver
}

// Transfer moves a cluster's folder from its management cluster to another one, whose Flux applies it from then on. If
// the other management cluster has no cluster in the environment yet, the shared files of the environment are copied.
// Transfer changes only Git: the caller has to copy the objects to the other management cluster before the change is
// committed. Errors: an unknown cluster or management cluster, a management cluster without the provider, a taken name,
// an environment with other features there.
func (r *Repo) Transfer(o TransferOptions) (*Edit, error) {
	to, err := r.managementCluster(o.To)
	if err != nil {
		return nil, err
	}
	c, err := r.findBeside(o.Cluster, to)
	if err != nil {
		return nil, err
	}
	if c.mgmt == to {
		return &Edit{
			Summary:  "Transfer cluster " + c.Name,
			AsWanted: fmt.Sprintf("cluster %s is declared for management cluster %s (%s)", c.Name, to.Name, c.File),
		}, nil
	}
	m := r.moverOf(c, r, to)
	e, err := m.arrive(c, o.AcceptDifferences)
	if err != nil {
		return nil, err
	}
	return e, r.leave(e, c, to, o.HandedOver)
}

// arrive writes the moved files to the target.
func (m *mover) arrive(c *declared, acceptDifferences bool) (*Edit, error) {
	if err := m.transferable(c); err != nil {
		return nil, err
	}
	e := &Edit{
		Summary: fmt.Sprintf("Transfer cluster %s from %s to %s", c.Name, c.mgmt.Name, m.to.Name), Environments: []string{c.Environment},
		Checks: []Check{RendersCluster{path.Join(m.at.Cluster(c.Environment, c.Name), path.Base(c.File))}},
	}
	if err := m.common(e, acceptDifferences); err != nil {
		return nil, err
	}
	if err := m.cluster(e, c); err != nil {
		return nil, err
	}
	if err := m.chart(e, c); err != nil {
		return nil, err
	}
	if err := m.into.withEnvironment(e, m.to, m.at, c.Environment); err != nil {
		return nil, err
	}
	if !m.repo.exists(path.Join(path.Dir(c.File), layout.FluxFile)) {
		return e, nil
	}
	_, err := m.into.environmentFlux(&e.Changes, m.to, m.at, c.Environment, m.into.isReleased(m.to, c.Environment))
	return e, err
}

// leave removes the moved files from the source, and records the target there.
func (r *Repo) leave(e *Edit, c *declared, to *v1alpha1.ManagementCluster, run *HandedOver) error {
	if err := r.record(e, c, to, run); err != nil {
		return err
	}
	return r.takeOut(e, c)
}

// findBeside is find for a cluster that two management clusters may declare, because somebody has merged only half of
// the pull request that moves it. It takes the declaration of the management cluster other than to.
func (r *Repo) findBeside(given string, to *v1alpha1.ManagementCluster) (*declared, error) {
	environment, name, qualified := strings.Cut(given, "/")
	if !qualified {
		environment, name = "", given
	}
	places, err := r.places(name)
	if err != nil || strings.ContainsAny(name, `/\.`) || name == "" {
		return r.find(given)
	}
	elsewhere := slices.DeleteFunc(places, func(p place) bool { return p.mgmt == to || environment != "" && p.environment != environment })
	if len(elsewhere) != 1 {
		return r.find(given)
	}
	c, err := r.load(elsewhere[0])
	if err != nil || c == nil {
		return r.find(given)
	}
	return c, nil
}

// transferable returns an error if no other management cluster can have the cluster.
func (m *mover) transferable(c *declared) error {
	r, to := m.repo, m.to
	if c.Removing {
		return diag.Errorf("finish its removal, or cancel it: `fleetctl cluster remove "+c.Name+" --cancel`",
			"cluster %s is being removed", c.Name)
	}
	if r.manages(c.mgmt, c.Name) && !r.ownOf(c, to) {
		return diag.Errorf("let it manage itself: `fleetctl bootstrap --management "+c.Name+" --stand-alone`",
			"cluster %s is a management cluster of this fleet", c.Name)
	}
	if _, err := m.into.managementClusterFor(to.Name, c.Flavour, r.makerOf(c.Flavour)); err != nil {
		return err
	}
	return m.into.checkFree(to, "", c.Name, manifest.File{})
}

// mover moves files from the folders of one management cluster to those of another one, or to those of another cloud.
type mover struct {
	// repo has the files to move, and into gets them. Both are the same repo, unless the target has its own repository.
	repo, into *Repo
	// from is the layout of the files now, and at the new one.
	from, at layout.Layout
	// to is the management cluster that gets them.
	to *v1alpha1.ManagementCluster
	// reseal is nil within one repository.
	reseal      Reseal
	environment string
}

// moverOf moves a cluster to the folders of a management cluster that the same or another repo declares.
func (r *Repo) moverOf(c *declared, into *Repo, to *v1alpha1.ManagementCluster) *mover {
	return &mover{
		repo: r, into: into, from: c.at, to: to, at: into.layoutOf(to, c.Environment, c.Flavour, r.cloudOf(to, c.Flavour)),
		environment: c.Environment,
	}
}

// moved returns a file's text with the folders of the source replaced by those of the target.
func (m *mover) moved(content []byte) []byte {
	a, b := m.from, m.at
	for _, folders := range [][2]string{
		{a.Clusters(), b.Clusters()}, {a.Management(), b.Management()}, {layout.TenantsDir(a.Cloud), layout.TenantsDir(b.Cloud)},
	} {
		content = replaceFolder(content, folders[0], folders[1])
	}
	return content
}

// tenants copies the folders of an environment's tenants to those of another cloud that does not have them yet.
func (m *mover) tenants(e *Edit) error {
	if m.from.Cloud == m.at.Cloud {
		return nil
	}
	for _, environment := range []string{m.environment, ""} {
		from, to := path.Dir(m.from.Tenant(environment, "x")), path.Dir(m.at.Tenant(environment, "x"))
		names, err := m.repo.folders(from)
		if err != nil {
			return err
		}
		for _, name := range names {
			if m.into.exists(path.Join(to, name)) || !m.repo.exists(m.from.TenantFile(m.environment, name)) {
				continue
			}
			files, err := m.read(path.Join(from, name), path.Join(to, name))
			if err != nil {
				return err
			}
			e.Changes.Write(scaffold.Missing(files, m.into.presentWith(&e.Changes))...)
		}
	}
	return nil
}

// replaceFolder replaces a folder in a text if it is a whole path or the beginning of one.
func replaceFolder(content []byte, from, to string) []byte {
	var out []byte
	for {
		i := bytes.Index(content, []byte(from))
		if i < 0 {
			return append(out, content...)
		}
		end := i + len(from)
		out = append(out, content[:i]...)
		if inPath(content[:i], content[end:]) {
			out = append(out, from...)
		} else {
			out = append(out, to...)
		}
		content = content[end:]
	}
}

// inPath tells whether the text between before and after is a part of a longer name.
func inPath(before, after []byte) bool {
	const names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	if len(after) > 0 && strings.IndexByte(names+".", after[0]) >= 0 {
		return true
	}
	before = bytes.TrimSuffix(before, []byte("./"))
	return len(before) > 0 && strings.IndexByte(names+"/", before[len(before)-1]) >= 0
}

// cluster writes the cluster's folder at the target.
func (m *mover) cluster(e *Edit, c *declared) error {
	from, to := path.Dir(c.File), m.at.Cluster(c.Environment, c.Name)
	files, err := m.read(from, to)
	if err != nil {
		return err
	}
	e.Changes.Write(files...)
	for _, f := range files {
		if err := m.into.enlist(&e.Changes, m.at.Environment(c.Environment), f.Path, true); err != nil {
			return err
		}
	}
	return nil
}

// chart copies the HelmChart that the cluster shares with others of its environment, with everything that somebody has
// changed in it, if the target has none.
func (m *mover) chart(e *Edit, c *declared) error {
	if text(yamledit.Find(c.node, "spec", "chartRef", "name")) != layout.ChartName(c.Environment, c.Flavour) {
		return nil // the cluster has its own chart
	}
	from, to := m.from.EnvironmentChart(c.Environment, c.Flavour), m.at.EnvironmentChart(c.Environment, c.Flavour)
	if there, err := m.repo.generated(from); err != nil {
		return err
	} else if there != nil && !m.into.exists(to) {
		e.Changes.Write(manifest.File{Path: to, Content: m.moved(there)})
		return m.into.listed(&e.Changes, path.Dir(to), path.Base(to), true)
	}
	return m.into.shareChart(e, m.at, c.Environment, c.Flavour)
}

// read returns the files of a folder, converted for another folder.
func (m *mover) read(from, to string) ([]manifest.File, error) {
	names, err := m.repo.filesBelow(from)
	if err != nil {
		return nil, fmt.Errorf("list the files in %s: %w", from, err)
	}
	if err := m.repo.onlyFiles(from); err != nil {
		return nil, err
	}
	files := make([]manifest.File, 0, len(names))
	for _, name := range names {
		content, err := m.repo.generated(name)
		if err != nil {
			return nil, err
		}
		at := path.Join(to, strings.TrimPrefix(name, from+"/"))
		if m.reseal != nil {
			if content, err = m.reseal(at, content); err != nil {
				return nil, diag.Wrap("bring "+name+" along", err, "")
			}
		}
		files = append(files, manifest.File{Path: at, Content: m.moved(content)})
	}
	return files, nil
}

// onlyFiles returns an error if a folder has an entry that is neither a file nor a folder, because the move would lose
// it.
func (r *Repo) onlyFiles(dir string) error {
	if !r.exists(dir) {
		return nil
	}
	return within.WalkDir(r.Dir, dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !entry.Type().IsRegular() {
			return diag.Errorf("put the file itself in its place", "%s is a link, which cannot be moved", name)
		}
		return err
	})
}

// common copies the manifests that all clusters of the environment share, if the target has no cluster of this environment yet. Otherwise
// both sides have to be equal, or the cluster would lose objects.
func (m *mover) common(e *Edit, accept bool) error {
	at := m.at
	wanted, err := m.shared()
	if err != nil {
		return err
	}
	used, err := m.used()
	if err != nil {
		return err
	}
	if !used {
		e.Changes.Write(wanted...)
		return m.tenants(e)
	}
	var differ []string
	for _, f := range wanted {
		if path.Base(f.Path) == layout.KeepFile {
			continue
		}
		there, err := m.into.generated(f.Path)
		if err != nil {
			return err
		}
		if !bytes.Equal(there, f.Content) {
			differ = append(differ, strings.TrimPrefix(f.Path, at.Environment(m.environment)+"/"))
		}
	}
	if len(differ) == 0 || accept {
		return nil
	}
	slices.Sort(differ)
	return diag.Errorf("make them the same: `fleetctl feature enable NAME --environment "+m.environment+"`, `fleetctl feature disable` and "+
		"`fleetctl tenant add` change an environment at all its management clusters; or agree with --accept-differences",
		"environment %s differs at management cluster %s: the cluster would get the manifests of the environment there; compare %s in %s and %s",
		m.environment, m.to.Name, plain.Names(differ, 5), m.from.Environment(m.environment), at.Environment(m.environment))
}

// shared returns the files that all clusters of the environment share, converted for the target.
func (m *mover) shared() ([]manifest.File, error) {
	wanted, err := m.read(m.from.Cluster(m.environment, layout.CommonDir), m.at.Cluster(m.environment, layout.CommonDir))
	return slices.DeleteFunc(wanted, func(f manifest.File) bool { // each management cluster has its own copies of these
		return strings.HasPrefix(f.Path, m.at.WorkloadFlux(m.environment)+"/") || strings.HasPrefix(f.Path, m.at.Sync(m.environment)+"/")
	}), err
}

// used tells whether the target has a cluster in the environment.
func (m *mover) used() (bool, error) {
	places, err := m.into.places("")
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(places, func(p place) bool {
		return p.mgmt == m.to && p.at == m.at && p.environment == m.environment && m.into.exists(p.file)
	}), nil
}

// takeOut removes a cluster's folder from the folders of its management cluster.
func (r *Repo) takeOut(e *Edit, c *declared) error {
	dir := path.Dir(c.File)
	if err := r.deleteFolder(&e.Changes, dir); err != nil {
		return err
	}
	if err := r.unlist(&e.Changes, path.Dir(dir), path.Base(dir)); err != nil {
		return err
	}
	return r.dropChart(e, c)
}
