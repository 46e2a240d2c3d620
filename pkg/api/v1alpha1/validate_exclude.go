package v1alpha1

import (
	"path"
	"strings"
)

// The limits of spec.validate. They are small because every file of the repo is compared with every pattern.
const (
	maxExclude     = 100
	maxExcludeText = 256
	maxCRDs        = 100
)

// validation checks spec.validate.
func (v *validator) validation(settings Validation) {
	for _, list := range []struct {
		at        string
		has, most int
	}{{"spec.validate.crds", len(settings.CRDs), maxCRDs}, {"spec.validate.exclude", len(settings.Exclude), maxExclude}} {
		if list.has > list.most {
			v.errorf(RuleValue, list.at, "name the folders of these paths instead",
				"the list has %d paths, but at most %d are allowed", list.has, list.most)
		}
	}
	for i, name := range settings.CRDs {
		v.inRepo(itemPath("spec.validate.crds", i), name)
	}
	for i, pattern := range settings.Exclude {
		at := itemPath("spec.validate.exclude", i)
		if !v.inRepo(at, pattern) {
			continue
		}
		if len(pattern) > maxExcludeText {
			v.errorf(RuleValue, at, "name a folder, and ** for the folders above it",
				"%.80q… has %d bytes, but at most %d are allowed", pattern, len(pattern), maxExcludeText)
		} else if _, err := path.Match(path.Clean(pattern), ""); err != nil {
			v.errorf(RuleValue, at, "* stands for anything in a name, ** for any folders", "%.80q is not a valid pattern", pattern)
		} else if strings.Trim(path.Clean(pattern), "*/.") == "" {
			v.errorf(RuleValue, at, "name a folder or a file", "%.80q matches the whole repo: validate would check nothing", pattern)
		}
	}
}

// inRepo checks that name is a path inside the repo.
func (v *validator) inRepo(at, name string) bool {
	clean := path.Clean(name)
	if name == "" || path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") || strings.Contains(name, "\\") {
		v.errorf(RuleValue, at, "write it with / from the folder of fleet.yaml", "%.80q is not a path in the repo", name)
		return false
	}
	return true
}

// Exclusion is spec.validate.exclude in a form that is fast to match with many files. The zero value excludes nothing.
type Exclusion struct {
	patterns [][]string // each pattern, split at its slashes
}

// Exclusion returns the patterns in a form that is fast to match.
func (v Validation) Exclusion() Exclusion {
	var out Exclusion
	for _, pattern := range v.Exclude {
		out.patterns = append(out.patterns, strings.Split(path.Clean(pattern), "/"))
	}
	return out
}

// Of returns the index of the first pattern that excludes a file of the repo, and false if none does. fleet.yaml and fleet.lock are never
// excluded.
func (e Exclusion) Of(name string) (int, bool) {
	if len(e.patterns) == 0 || name == FileName || name == LockFileName {
		return 0, false
	}
	steps := strings.Split(name, "/")
	for i, pattern := range e.patterns {
		if leavesOut(pattern, steps) {
			return i, true
		}
	}
	return 0, false
}

// leavesOut tells whether a pattern matches a path or a folder above it. After a mismatch it returns only to the last **, which then
// matches one more folder. Earlier ** need no retry: they already matched as few folders as possible, so other choices leave less of the
// path for the rest of the pattern.
func leavesOut(pattern, steps []string) bool {
	last, from := -1, 0 // the last ** in the pattern, and the step of the path at which the pattern after it was tried
	for p, s := 0, 0; p < len(pattern); {
		switch {
		case s < len(steps) && pattern[p] == "**":
			last, from = p, s
			p++
		case s < len(steps) && matches(pattern[p], steps[s]):
			p++
			s++
		case last >= 0 && from+1 < len(steps):
			from++
			p, s = last+1, from
		default:
			return false
		}
	}
	return true
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
