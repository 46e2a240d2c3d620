package v1alpha1

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// The maximum lengths of names. A management cluster's name becomes part of container and Secret names.
const (
	maxLabel       = 63
	maxClusterName = 40
)

// Validate returns the errors and warnings about f in the order of the file. Each has its place if Decode read f from a file. It works
// before and after SetDefaults.
func Validate(f *Fleet) diag.Findings {
	return validate(f, func(string) bool { return false })
}

// validate is Validate without findings about fields at broken paths.
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
	v.releases(f)
	return v.sorted()
}

type validator struct {
	collector
	broken func(path string) bool
	// noRemote means that spec.git has no URL. Only this machine then has the fleet repo.
	noRemote bool
}

// errorf and warnf are those of the collector, but skip fields that could not be decoded.
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

// required reports each empty field that is required. It descends into structs, so that the finding names the inner field.
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
	default: // a scalar has no fields
	}
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// label checks that a name is a DNS label. It accepts an empty name: required reports a missing name, and other names have defaults.
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

// labelHint suggests the DNS label that is nearest to name, if there is one.
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

// version checks the form of a version.
func (v *validator) version(path, version string) {
	if version == "" {
		return
	}
	if problem, hint := VersionProblem(version); problem != "" {
		v.errorf(RuleValue, path, hint, "%s", problem)
	}
}

// VersionProblem tells what is wrong with a version and how to correct it. A valid version is a semantic version with a leading v, as
// Kubernetes and its projects tag their releases. For a valid version, both results are "".
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

// oneOf checks that a value is one of the known values.
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

// refersTo checks that fleet.yaml declares an item of this name. It reports nothing if no item is declared, because another finding reports
// that.
func (v *validator) refersTo(path, what, name string, declared []string) {
	if len(declared) == 0 || slices.Contains(declared, name) {
		return
	}
	hint := cmp.Or(diag.Among(name, declared), "name one that fleet.yaml declares")
	v.errorf(RuleValue, path, hint, "there is no %s %.80q", what, name)
}

// unique reports each item with the same key as an earlier item. It ignores empty keys.
func unique[T any](v *validator, items []T, path func(i int) string, what string, key func(T) string) {
	uniqueOr(v, "", items, path, what, key)
}

// uniqueOr is unique with a hint.
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

// inLine returns the line of path as text for a message, or "" if it is not known.
func (v *validator) inLine(path string) string {
	if v.source == nil {
		return ""
	}
	return fmt.Sprintf(", in line %d", v.source.at(path).line)
}

// interval checks a duration for a Flux object. Flux accepts no unit below milliseconds.
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
