package validate

import (
	"fmt"
	"path"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Excluded is a path of spec.validate.exclude, with the files and objects that it leaves out.
type Excluded struct {
	Path string `json:"path"`
	// Files counts the files of the repo, Objects the objects that Flux applies from them, and Findings the findings that are left out.
	Files    int `json:"files"`
	Objects  int `json:"objects"`
	Findings int `json:"findings"`
}

// settingsIn returns spec.validate of fleet.yaml. It is empty if fleet.yaml cannot be read, which is a finding of its own.
func settingsIn(dir string) v1alpha1.Validation {
	content, err := within.ReadFile(dir, v1alpha1.FileName, within.MostNamed)
	if err != nil {
		return v1alpha1.Validation{}
	}
	fleet, err := v1alpha1.Decode(v1alpha1.FileName, content)
	if err != nil {
		return v1alpha1.Validation{}
	}
	return fleet.Spec.Validate
}

// leaveOut drops the findings about excluded objects, counts these objects, and reports excluded paths that do not exist. A finding stays
// if a whole folder is not rendered because of it. Otherwise nobody would know that the rest of the folder is not checked either.
func (r *run) leaveOut(out *Result, settings v1alpha1.Validation, findings diag.Findings) diag.Findings {
	if len(settings.Exclude) == 0 {
		return findings
	}
	out.Excluded = make([]Excluded, len(settings.Exclude))
	for i, pattern := range settings.Exclude {
		out.Excluded[i].Path = pattern
	}
	for _, f := range r.tree.files {
		if i, ok := r.exclusion.Of(f.path); ok {
			out.Excluded[i].Files++
		}
	}
	objects := 0
	if r.rendered != nil {
		for _, o := range r.rendered.Objects {
			if i, ok := r.exclusion.Of(o.Source.File); ok {
				out.Excluded[i].Objects++
				objects++
			}
		}
	}
	unrendered := false // a fault keeps applied objects from being rendered, and its finding is dropped
	left := slices.DeleteFunc(findings, func(f diag.Finding) bool {
		i, ok := r.exclusion.Of(f.File)
		takesFolder, isRenderers := r.unrendered[sayingOf(f)]
		if !ok || takesFolder {
			return false
		}
		out.Excluded[i].Findings++
		unrendered = unrendered || isRenderers && f.Severity == diag.SeverityError
		return true
	})
	for i, e := range out.Excluded {
		if e.Files == 0 {
			left = append(left, r.fleetFinding(RuleUnused, fmt.Sprintf("spec.validate.exclude[%d]", i),
				fmt.Sprintf("no file of the repo is left out by %.80s", e.Path), "remove it"))
		}
	}
	out.Files -= total(out.Excluded)
	out.Objects -= objects
	if out.Objects == 0 && (objects > 0 || unrendered) {
		left = append(left, r.fleetFinding(RuleNothing, "spec.validate.exclude",
			"everything that Flux applies is excluded, so nothing was checked", "exclude less"))
	}
	return left
}

// checkSilenced reports a repo without any built object whose comments silence all errors. Otherwise the result would look like success.
func (r *run) checkSilenced(out *Result) diag.Findings {
	told := slices.ContainsFunc(out.Findings, func(f diag.Finding) bool { return f.Severity == diag.SeverityError })
	if r.rendered == nil || out.Objects > 0 || out.Ignored == 0 || told || !r.lacksObjects() {
		return nil
	}
	return diag.Findings{r.fleetFinding(RuleNothing, "spec.managementClusters",
		"nothing could be built, so nothing was checked, and comments silence the reasons", "remove the comments")}
}

// notExcluded returns the objects that fleet.yaml does not exclude. A finding about a kind as a whole points at one of them.
func (r *run) notExcluded(all []*object) []*object {
	return slices.DeleteFunc(slices.Clone(all), func(o *object) bool {
		_, excluded := r.exclusion.Of(o.Source.File)
		return excluded
	})
}

func total(all []Excluded) (files int) {
	for _, e := range all {
		files += e.Files
	}
	return files
}

// addDeclared adds the CRDs in the files and folders that fleet.yaml names, and reports files and folders without CRDs.
func (s *schemas) addDeclared(r *run) {
	for i, name := range r.fleet.Spec.Validate.CRDs {
		at := fmt.Sprintf("spec.validate.crds[%d]", i)
		name = path.Clean(name)
		if !r.tree.has(name) {
			s.findings = append(s.findings, r.fleetFinding(RuleMissingPath, at, fmt.Sprintf("there is no %.80s in the repo", name),
				"name a folder or a file with CRDs"))
			continue
		}
		files := r.tree.below(name)
		if f := r.tree.byPath[name]; f != nil {
			files = []*file{f}
		}
		found := 0
		for _, f := range files {
			if f.content == nil || f.path != name && !isYAML(f.path) && path.Ext(f.path) != ".json" {
				continue
			}
			n, err := s.Add(f.path, f.content)
			if err != nil {
				s.findings = append(s.findings, finding(RuleBadCRD, f.path, 1, 0, err.Error(), ""))
			}
			found += n
		}
		if found == 0 {
			s.findings = append(s.findings, r.fleetFinding(RuleUnused, at, fmt.Sprintf("there is no CRD in %.80s", name),
				"name a folder or a file with CustomResourceDefinitions"))
		}
	}
}
