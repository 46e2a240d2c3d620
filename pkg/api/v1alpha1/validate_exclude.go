package v1alpha1

import (
	"path"
	"strings"
)

// What validate is told is short: every file of the repo is held against every pattern.
const (
	maxExclude     = 100
	maxExcludeText = 256
	maxCRDs        = 100
)

// validation checks what validate is told.
func (v *validator) validation(settings Validation) {
	for _, list := range []struct {
		at        string
		has, most int
	}{{"spec.validate.crds", len(settings.CRDs), maxCRDs}, {"spec.validate.exclude", len(settings.Exclude), maxExclude}} {
		if list.has > list.most {
			v.errorf(RuleValue, list.at, "name the folders that these are in", "%d paths are too many: at most %d are taken", list.has, list.most)
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
				"%.80q… is too long: it has %d bytes, and at most %d are taken", pattern, len(pattern), maxExcludeText)
		} else if _, err := path.Match(path.Clean(pattern), ""); err != nil {
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

// Exclusion is spec.validate.exclude, made ready for many files. That of no patterns leaves nothing out.
type Exclusion struct {
	patterns [][]string // the steps of each
}

// Exclusion makes the patterns ready.
func (v Validation) Exclusion() Exclusion {
	var out Exclusion
	for _, pattern := range v.Exclude {
		out.patterns = append(out.patterns, strings.Split(path.Clean(pattern), "/"))
	}
	return out
}

// Of is the first of the patterns that leaves a file of the repo out; false where none does. fleet.yaml and fleet.lock are never left out.
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

// leavesOut tells whether a pattern matches a path, or a folder that it is in. Where it fails it goes back to the last ** alone, which
// takes one more folder: what stands before that one matched as early as it can, and no other way would leave more of the path.
func leavesOut(pattern, steps []string) bool {
	last, from := -1, 0 // the last **, and the step that what is behind it was tried at
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
