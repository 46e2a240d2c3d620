package v1alpha1

import (
	"path"
	"strings"
)

// validation checks what validate is told.
func (v *validator) validation(settings Validation) {
	for i, name := range settings.CRDs {
		v.inRepo(itemPath("spec.validate.crds", i), name)
	}
	for i, pattern := range settings.Exclude {
		at := itemPath("spec.validate.exclude", i)
		if !v.inRepo(at, pattern) {
			continue
		}
		if _, err := path.Match(path.Clean(pattern), ""); err != nil {
			v.errorf(RuleValue, at, "* stands for anything in a name, ** for any folders", "%.80q is no pattern", pattern)
		} else if strings.Trim(path.Clean(pattern), "*/.") == "" {
			v.errorf(RuleValue, at, "name a folder or a file", "%.80q is the whole repo: nothing would be checked", pattern)
		}
	}
}

// inRepo checks a path from the top of the repo.
func (v *validator) inRepo(at, name string) bool {
	clean := path.Clean(name)
	if name == "" || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(name, "\\") {
		v.errorf(RuleValue, at, "write it with / from the folder of fleet.yaml", "%.80q is no path in the repo", name)
		return false
	}
	return true
}

// Excluded is the first of the patterns that leaves a file of the repo out; false where none does. fleet.yaml and fleet.lock are never left out.
func (v Validation) Excluded(name string) (int, bool) {
	if name == FileName || name == LockFileName {
		return 0, false
	}
	steps := strings.Split(name, "/")
	for i, pattern := range v.Exclude {
		if leavesOut(strings.Split(path.Clean(pattern), "/"), steps) {
			return i, true
		}
	}
	return 0, false
}

// leavesOut tells whether a pattern matches a path, or a folder that it is in.
func leavesOut(pattern, steps []string) bool {
	switch {
	case len(pattern) == 0:
		return true
	case pattern[0] == "**":
		for i := range steps {
			if leavesOut(pattern[1:], steps[i:]) {
				return true
			}
		}
		return false
	case len(steps) == 0:
		return false
	}
	matches, _ := path.Match(pattern[0], steps[0])
	return matches && leavesOut(pattern[1:], steps[1:])
}
