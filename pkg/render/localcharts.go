package render

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/ignore"
	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// readChart returns the files of the chart in a folder that Helm would read.
func readChart(r *repo, dir string) ([]*archive.BufferedFile, error) {
	rules := ignore.Empty()
	if content, err := r.read(path.Join(dir, ignore.HelmIgnore)); err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(content)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()
	var files []*archive.BufferedFile
	err := fs.WalkDir(r.files, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		short := strings.TrimPrefix(name, dir+"/")
		switch {
		case rules.Ignore(short, info) && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir() || rules.Ignore(short, info):
			return nil
		}
		content, err := r.read(name)
		if err != nil {
			return err
		}
		if findings := Screen(name, content); findings != nil && isYAML(name) && !strings.Contains("/"+short, "/templates/") {
			return findings
		}
		files = append(files, &archive.BufferedFile{Name: short, Data: bytes.TrimPrefix(content, []byte("\ufeff"))})
		return nil
	})
	return files, err
}

// addLocal adds the charts of the repo that Chart.yaml depends on by a path (file://../common). Source-controller puts them below charts/,
// too, unless they are there already, and does not look at the dependencies of their own.
func (l *loadedChart) addLocal(r *repo) error {
	added, size := 0, 0
	for _, d := range dependenciesIn(l.files) {
		if !strings.HasPrefix(d.Repository, "file://") || l.holds(d.Name) {
			continue
		}
		dir, err := l.localChart(r, d)
		if err != nil {
			return err
		}
		files, err := readChart(r, dir)
		if err != nil {
			return err
		}
		if err := fits(d, files); err != nil {
			return err
		}
		for _, f := range files {
			size += len(f.Data)
			l.files = append(l.files, &archive.BufferedFile{Name: path.Join("charts", d.Name, f.Name), Data: f.Data})
		}
		if added++; size > maxUnpacked || added > maxInnerCharts {
			return beyond("%s: the charts of the repo that it depends on have more than %d MiB, or are more than %d", l.dir, maxUnpacked>>20,
				maxInnerCharts)
		}
		if l.local == nil {
			l.local = map[string]string{}
		}
		l.local[path.Join("charts", d.Name)] = dir
	}
	return nil
}

// localChart returns the folder of a chart that a dependency names by a path from the folder of the chart.
func (l *loadedChart) localChart(r *repo, d *chart.Dependency) (string, error) {
	at, err := url.Parse(d.Repository)
	if err != nil {
		return "", fmt.Errorf("the dependency %s of the chart %s: %w", d.Name, l.dir, err)
	}
	dir, ok := inside(l.dir, at.Host+at.Path)
	if !ok || !r.isFile(path.Join(dir, chartFile)) {
		return "", diag.Errorf("write the path from the folder of the chart, as in file://../common", "the dependency %s of the chart %s is %s: "+
			"there is no such chart in the repo", d.Name, l.dir, d.Repository)
	}
	return dir, nil
}

// holds tells whether a chart is below charts/.
func (l *loadedChart) holds(name string) bool {
	return slices.ContainsFunc(l.files, func(f *archive.BufferedFile) bool {
		below, ok := strings.CutPrefix(f.Name, "charts/")
		folder, file, nested := strings.Cut(below, "/")
		return ok && (nested && file == chartFile && (folder == name || nameOf(f.Data) == name) ||
			!nested && path.Ext(below) == ".tgz" && strings.HasPrefix(below, name+"-"))
	})
}

// dependenciesIn returns the dependencies that Chart.yaml names, or requirements.yaml in an old chart.
func dependenciesIn(files []*archive.BufferedFile) (all []*chart.Dependency) {
	for _, f := range files {
		if f.Name != chartFile && f.Name != "requirements.yaml" {
			continue
		}
		var says struct {
			Dependencies []*chart.Dependency `json:"dependencies"`
		}
		if Screen(f.Name, f.Data) == nil && yaml.Unmarshal(f.Data, &says) == nil {
			all = append(all, says.Dependencies...)
		}
	}
	return slices.DeleteFunc(all, func(d *chart.Dependency) bool {
		return d == nil || !fs.ValidPath(d.Name) || strings.Contains(d.Name, "/")
	})
}

// fits returns an error if a chart does not have the version that a dependency wants: source-controller then refuses both.
func fits(d *chart.Dependency, files []*archive.BufferedFile) error {
	var says struct {
		Version string `json:"version"`
	}
	for _, f := range files {
		if f.Name != chartFile {
			continue
		}
		if err := yaml.Unmarshal(f.Data, &says); err != nil {
			return nil //nolint:nilerr // who loads it says what is wrong
		}
	}
	wanted, err := semver.NewConstraint(d.Version)
	if d.Version == "" || err != nil {
		return nil //nolint:nilerr // as above
	}
	if has, err := semver.NewVersion(says.Version); err == nil && !wanted.Check(has) {
		return diag.Errorf("change the version under dependencies, or that of the other chart",
			"the dependency %s wants version %s, and the chart of the repo has %s", d.Name, d.Version, says.Version)
	}
	return nil
}

// elsewhere is the error about dependencies that are neither in the repo nor below charts/, and that source-controller fetches.
type elsewhere struct{ error }

func (e elsewhere) Unwrap() error { return e.error }

// missingDependencies returns an error if Chart.yaml names charts that are not below charts/.
func missingDependencies(c *chart.Chart) error {
	for _, wanted := range c.Metadata.Dependencies {
		if slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == wanted.Name }) {
			continue
		}
		err := diag.Errorf("run `helm dependency build` and commit what it makes below charts/",
			"the chart %s depends on %s, which is not below its charts folder", c.Name(), wanted.Name)
		if wanted.Repository != "" && !strings.HasPrefix(wanted.Repository, "file://") {
			return elsewhere{err}
		}
		return err
	}
	return nil
}
