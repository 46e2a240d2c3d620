package fleetrepo

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// AddFeatureChart adds a feature from a Helm chart, and its digest to fleet.lock. If the feature of that chart exists already, it gets the
// version. Errors: a bad name, an invalid address or version, another feature of that name, and values for an existing feature.
func (r *Repo) AddFeatureChart(name string, c scaffold.FeatureChart, digest ChartDigest) (*Edit, error) {
	files, err := scaffold.FeatureChartFiles(name, c)
	if err != nil {
		return nil, err
	}
	missing := scaffold.Missing(files, r.exists)
	switch {
	case len(missing) == 0:
		e, err := r.moveFeatureChart(name, c, files)
		if err != nil {
			return nil, err
		}
		return e, r.lockFeature(e, name, files, digest)
	case len(missing) < len(files):
		return nil, otherFeature(name)
	}
	e := &Edit{Summary: fmt.Sprintf("Add feature %s: %s %s", name, c.URL, c.Version)}
	e.Changes.Write(missing...)
	values, err := r.valuesOfFeature(name)
	if err != nil {
		return nil, err
	}
	if len(values) > 0 {
		e.Notes = append(e.Notes, "It gets the values that a feature of this name had: "+
			strings.Join(slices.Sorted(maps.Keys(values)), ", ")+".")
	}
	e.Notes = append(e.Notes,
		fmt.Sprintf("Its values are in %s; `fleetctl feature values %s` gives environments and clusters others; `fleetctl feature enable %s` "+
			"gives it to clusters.", valuesForAll(name), name, name))
	return e, r.lockFeature(e, name, files, digest)
}

func otherFeature(name string) error {
	return diag.Errorf("choose another name, or add the chart's objects to it by hand", "there is a feature %s already", name)
}

// valuesForAll is the file with the values of a feature's chart for all clusters.
func valuesForAll(name string) string {
	return path.Join(layout.FeaturesDir, name, "namespaced", "values.yaml")
}

// moveFeatureChart changes an existing feature to another version of its chart. files are the files of a new feature
// with that version.
func (r *Repo) moveFeatureChart(name string, c scaffold.FeatureChart, files []manifest.File) (*Edit, error) {
	e := &Edit{Summary: fmt.Sprintf("Move feature %s to version %s of its chart", name, c.Version)}
	dir := path.Dir(valuesForAll(name))
	for file, fields := range map[string][]yamledit.Path{
		"source.yaml":  {{"kind"}, {"spec", "url"}},
		"release.yaml": {{"spec", "chart", "spec", "chart"}},
	} {
		there, made, err := r.beside(path.Join(dir, file), files)
		if err != nil {
			return nil, err
		}
		differs := func(field yamledit.Path) bool { return fieldOf(there, field) != fieldOf(made, field) }
		if slices.ContainsFunc(fields, differs) {
			return nil, otherFeature(name)
		}
		for _, version := range []yamledit.Path{{"spec", "ref", "tag"}, {"spec", "chart", "spec", "version"}} {
			if !differs(version) {
				continue
			}
			if fieldOf(there, version) == "" || fieldOf(there, yamledit.Path{"spec", "ref", "digest"}) != "" ||
				fieldOf(there, yamledit.Path{"spec", "ref", "semver"}) != "" {
				return nil, diag.Errorf("change it there in an editor", "%s does not have the version where fleetctl writes it", path.Join(dir, file))
			}
			if there, err = yamledit.Set(there, 0, version, fieldOf(made, version)); err != nil {
				return nil, diag.Wrap("change "+yamledit.At(path.Join(dir, file), err), err, "write the version there in an editor: "+c.Version)
			}
			e.Changes.Write(manifest.File{Path: path.Join(dir, file), Content: there})
		}
	}
	there, made, err := r.beside(valuesForAll(name), files)
	if err != nil {
		return nil, err
	}
	if len(c.Values) > 0 && !manifest.SameText(there, made) {
		return nil, diag.Usage("change them in "+valuesForAll(name)+", or for an environment with `fleetctl feature values "+name+"`",
			"feature %s exists already, and has other values", name)
	}
	return e, nil
}

// beside returns the content of a file in the repo, and its content among files.
func (r *Repo) beside(name string, files []manifest.File) (there, made []byte, err error) {
	if i := slices.IndexFunc(files, func(f manifest.File) bool { return f.Path == name }); i >= 0 {
		made = files[i].Content
	}
	there, err = r.read(name)
	return there, made, err
}

// fieldOf returns the text at a path of the first document in src; "" if there is none.
func fieldOf(src []byte, field yamledit.Path) string {
	documents, err := yamledit.Parse(src)
	if err != nil || len(documents) == 0 {
		return ""
	}
	return text(yamledit.Find(documents[0], field...))
}
