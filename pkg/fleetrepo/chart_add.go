package fleetrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/clustertemplate"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// AddChart makes a chart from a cluster template of clusterctl. file is the template's name in findings. It is no error if the repo
// already has the same chart. Errors: a bad name, the name of another chart, and all parts of the template that a chart cannot express,
// with their lines.
func (r *Repo) AddChart(name, file string, content []byte) (*Edit, error) {
	if err := scaffold.CheckName("chart", name, 63); err != nil {
		return nil, err
	}
	if BringsChart(name) {
		return nil, diag.Usage("choose another name", "fleetctl brings a chart %s itself", name)
	}
	version, err := scaffold.ExampleVersion()
	if err != nil {
		return nil, err
	}
	dir := path.Join(layout.ChartsDir, name)
	chart, err := clustertemplate.New(clustertemplate.Options{Name: name, Dir: dir, File: file, Content: content, ExampleVersion: version})
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Add chart %s of a cluster template", name)}
	other, err := r.otherFile(dir, chart.Files)
	switch {
	case err != nil:
		return nil, err
	case other != "" && r.exists(path.Join(dir, "Chart.yaml")):
		return nil, diag.Errorf("choose another name, or `fleetctl chart remove "+name+"` first",
			"there is a chart %s already, and it is another one: %s differs", name, plain.Unbroken(other))
	case other != "":
		return nil, diag.Errorf("choose another name, or move it away first",
			"%s exists already: a chart needs a folder of its own", plain.Unbroken(other))
	}
	r.writeText(&e.Changes, chart.Files...)
	e.Notes = append(e.Notes, chartNotes(name, chart)...)
	return e, nil
}

// BringsChart tells whether fleetctl brings a chart of that name along.
func BringsChart(name string) bool {
	_, err := scaffold.ChartFiles(name)
	return err == nil
}

// chartNotes returns notes on how to make clusters with the chart, and on what the team still has to do.
func chartNotes(name string, chart *clustertemplate.Chart) []string {
	command := []string{"fleetctl cluster add NAME --flavour " + name}
	for _, v := range chart.Variables {
		switch {
		case v.Required && v.Value == "kubernetesVersion":
			command = append(command, "--version v1.X.Y")
		case v.Required && !v.Credential:
			command = append(command, "--set "+v.Value+"=…")
		}
	}
	notes := []string{fmt.Sprintf("It has %s: %s/%s/README.md lists them. ", plain.Count(len(chart.Variables), "value"), layout.ChartsDir,
		name) + "`" + strings.Join(command, " ") + "` makes a cluster."}
	for _, v := range chart.Variables {
		if v.Credential {
			notes = append(notes,
				fmt.Sprintf("The value %s of line %d is a credential by its name, and must not be put in Git in clear: change the chart, so that "+
					"the object refers to a Secret.", v.Value, v.Line))
		}
	}
	for _, s := range chart.Secrets {
		notes = append(notes,
			fmt.Sprintf("The Secret %s of line %d is not in the chart, where it would be in Git in clear: `fleetctl secret encrypt` makes it for "+
				"each cluster.", plain.Unbroken(s.Name), s.Line))
	}
	return notes
}

// otherFile returns a file in a folder, or in place of the folder, that is not among files with the same content; "" if
// there is none.
func (r *Repo) otherFile(dir string, files []manifest.File) (other string, err error) {
	err = within.WalkDir(r.Dir, dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == dir:
			return fs.SkipAll
		case err != nil:
			return err
		case entry.IsDir() && !slices.ContainsFunc(files, func(f manifest.File) bool { return f.Path == name }):
			return nil
		case entry.Type().IsRegular():
			content, err := r.read(name)
			if err != nil {
				return err
			}
			if slices.ContainsFunc(files, func(f manifest.File) bool { return f.Path == name && manifest.SameText(f.Content, content) }) {
				return nil
			}
		}
		other = name
		return fs.SkipAll
	})
	if err != nil {
		return "", fmt.Errorf("look for files in %s: %w", dir, err)
	}
	return other, nil
}

// RemoveChart removes a chart that no cluster uses from the repo, with the HelmCharts that pack it for environments.
// Errors: an unknown chart, and a chart that clusters use.
func (r *Repo) RemoveChart(name string) (*Edit, error) {
	charts, err := r.Charts()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(charts, func(c Chart) bool { return c.Name == name }) {
		var names []string
		for _, c := range charts {
			names = append(names, c.Name)
		}
		return nil, diag.Unknown("chart", name, names, "`fleetctl chart add` makes one")
	}
	clusters, findings, err := r.Clusters()
	if err != nil {
		return nil, err
	}
	if err := findings.Err(); err != nil {
		return nil, err
	}
	var has []string
	for _, c := range clusters {
		if c.Flavour == name && !c.Manifests {
			has = append(has, c.Environment+"/"+c.Name)
		}
	}
	if len(has) > 0 {
		return nil, diag.Errorf("delete them first: `fleetctl cluster remove "+has[0]+"`", "clusters are made of chart %s: %s", name,
			strings.Join(has, ", "))
	}
	e := &Edit{Summary: "Remove chart " + name}
	for _, l := range r.layouts() {
		for _, env := range r.EnvironmentNames() {
			file := l.EnvironmentChart(env, name)
			if r.exists(file) {
				e.Changes.Delete(file)
			}
			if err := r.listed(&e.Changes, path.Dir(file), path.Base(file), false); err != nil {
				return nil, err
			}
		}
	}
	for _, dir := range []string{path.Join(layout.ChartsDir, name), path.Join(broughtDir, name)} {
		if err := r.deleteFolder(&e.Changes, dir); err != nil {
			return nil, err
		}
	}
	return e, r.unlockChart(e, name)
}

// unlockChart removes a chart from fleet.lock.
func (r *Repo) unlockChart(e *Edit, name string) error {
	if !r.exists(v1alpha1.LockFileName) {
		return nil
	}
	lock, err := r.readLock()
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(lock.Charts), func(c v1alpha1.LockedChart) bool { return c.Name == name })
	if len(kept) == len(lock.Charts) {
		return nil
	}
	lock.Charts = kept
	return r.writeLock(e, lock)
}

// ChartNames returns the names of the charts in the repo.
func (r *Repo) ChartNames() []string {
	names, err := r.folders(layout.ChartsDir)
	if err != nil {
		return nil
	}
	return names
}
