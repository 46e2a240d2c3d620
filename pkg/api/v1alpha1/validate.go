package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// What names may be long at most. A management cluster's name becomes part of container and Secret names.
const (
	maxLabel       = 63
	maxClusterName = 40
)

// Validate returns all that is wrong with f or doubtful, in the order of the file, each with its place if f was decoded from
// one. It works before and after SetDefaults.
func Validate(f *Fleet) diag.Findings {
	return validate(f, func(string) bool { return false })
}

// validate leaves out findings about what stands at a broken path.
func validate(f *Fleet, broken func(path string) bool) diag.Findings {
	v := &validator{collector: collector{source: f.source}, broken: broken}
	v.noRemote = f.Spec.Git.URL == "" && !broken("spec.git") && !broken("spec.git.url")
	v.required(reflect.ValueOf(f).Elem(), "")
	v.label("metadata.name", f.Metadata.Name, maxLabel)
	v.git("spec.git", f.Spec.Git)
	v.flux(f.Spec.Flux)
	v.channels(f)
	v.environments(f)
	v.validation(f.Spec.Validate)
	v.managementClusters(f)
	v.standbys(f)
	v.notifications(f)
	return v.sorted()
}

type validator struct {
	collector
	broken func(path string) bool
	// noRemote: spec.git has no URL, so that only this machine has the fleet repo.
	noRemote bool
}

// errorf and warnf are the collector's, silent about what could not be read.
func (v *validator) errorf(rule, path, hint, format string, args ...any) {
	if !v.broken(path) {
		v.collector.errorf(rule, path, hint, format, args...)
	}
}

func (v *validator) warnf(rule, path, hint, format string, args ...any) {
	if !v.broken(path) {
		v.collector.warnf(rule, path, hint, format, args...)
	}
}

// required reports each empty field that must be given. Structs are looked into, so that the finding names what is missing in them.
func (v *validator) required(value reflect.Value, path string) {
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			name := fieldName(field)
			if name == "" {
				continue
			}
			inside := fieldPath(path, name)
			if field.Type.Kind() != reflect.Struct && isRequired(field) && isEmpty(value.Field(i)) {
				v.errorf(RuleRequired, inside, "", "required field is missing")
				continue
			}
			v.required(value.Field(i), inside)
		}
	case reflect.Slice:
		for i := range value.Len() {
			v.required(value.Index(i), itemPath(path, i))
		}
	case reflect.Pointer:
		if !value.IsNil() {
			v.required(value.Elem(), path)
		}
	default: // a scalar has nothing inside
	}
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// label checks a name that Kubernetes must take as a DNS label. An empty one is for required to report, or a default.
func (v *validator) label(path, name string, limit int) {
	switch {
	case name == "":
	case !isLabel(name):
		v.errorf(RuleValue, path, labelHint(name),
			"%.80q is not a DNS label: lower-case letters, digits and hyphens, a letter or digit at both ends", name)
	case len(name) > limit:
		v.errorf(RuleValue, path, "", "%.80q has %d characters, at most %d are possible", name, len(name), limit)
	}
}

func isLabel(s string) bool {
	for i := range len(s) {
		c, inner := s[i], i > 0 && i < len(s)-1
		if ok := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' && inner; !ok {
			return false
		}
	}
	return s != ""
}

// labelHint offers the label that is nearest to name, if there is one.
func labelHint(name string) string {
	label := strings.Trim(strings.Map(func(r rune) rune {
		if r == '_' || r == ' ' || r == '.' {
			return '-'
		}
		return r
	}, strings.ToLower(name)), "-")
	if label != name && isLabel(label) {
		return "did you mean " + label + "?"
	}
	return ""
}

// version checks a version as Kubernetes and its projects tag them.
func (v *validator) version(path, version string) {
	if version == "" {
		return
	}
	if problem, hint := VersionProblem(version); problem != "" {
		v.errorf(RuleValue, path, hint, "%s", problem)
	}
}

// VersionProblem says what is wrong with a version that is not written as Kubernetes and its projects tag them, and what to do; "" where
// nothing is.
func VersionProblem(version string) (problem, hint string) {
	bare, hasV := strings.CutPrefix(version, "v")
	if _, err := semver.Parse(bare); err != nil {
		return fmt.Sprintf("%.60q is not a semantic version", version), "write it in full, like v1.14.2"
	}
	if !hasV {
		return fmt.Sprintf("version %.60q does not start with v", version), "did you mean v" + version + "?"
	}
	return "", ""
}

// oneOf checks a value that must be among known ones.
func (v *validator) oneOf(path, what, value string, known []string) bool {
	if slices.Contains(known, value) {
		return true
	}
	hint := "known: " + strings.Join(known, ", ")
	if nearest := diag.Nearest(value, known); nearest != "" {
		hint = "did you mean " + nearest + "?"
	}
	v.errorf(RuleValue, path, hint, "unknown %s %.60q", what, value)
	return false
}

// refersTo checks a name that must be that of an item of fleet.yaml. Where nothing is declared yet, another finding says so.
func (v *validator) refersTo(path, what, name string, declared []string) {
	if len(declared) == 0 || slices.Contains(declared, name) {
		return
	}
	hint := "there are: " + strings.Join(declared, ", ")
	if nearest := diag.Nearest(name, declared); nearest != "" {
		hint = "did you mean " + nearest + "?"
	} else if len(declared) > 20 {
		hint = "name one that fleet.yaml declares"
	}
	v.errorf(RuleValue, path, hint, "there is no %s %.80q", what, name)
}

// unique reports each item whose key an earlier one has; empty keys do not count.
func unique[T any](v *validator, items []T, path func(i int) string, what string, key func(T) string) {
	uniqueOr(v, "", items, path, what, key)
}

// uniqueOr is unique with what to do about an item whose key an earlier one has.
func uniqueOr[T any](v *validator, hint string, items []T, path func(i int) string, what string, key func(T) string) {
	first := map[string]int{}
	for i, item := range items {
		k := key(item)
		if j, seen := first[k]; seen && k != "" {
			v.errorf(RuleDuplicate, path(i), hint, "%s %.80q exists already%s", what, k, v.inLine(path(j)))
			continue
		}
		first[k] = i
	}
}

// inLine says where path is, if that is known.
func (v *validator) inLine(path string) string {
	if v.source == nil {
		return ""
	}
	return fmt.Sprintf(", in line %d", v.source.at(path).line)
}

// interval checks a duration that goes into a Flux object, which knows no unit below milliseconds.
func (v *validator) interval(path, value string) {
	if value == "" {
		return
	}
	d, err := time.ParseDuration(value)
	switch {
	case err != nil || strings.ContainsAny(value, "nuµμ+"):
		v.errorf(RuleValue, path, "a number and a unit: 30s, 5m, 1h30m", "%.40q is not a duration", value)
	case d < time.Second:
		v.errorf(RuleValue, path, "", "%s is shorter than a second", value)
	}
}
