package runner

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// variable is how Kubernetes refers to one, or how it writes a dollar sign.
var variable = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// With any flags of a program and any arguments: the rewritten arguments mean the same, a set flag has its value and changes no other
// argument, and variables have the values that Kubernetes gives them.
func FuzzArgs(f *testing.F) {
	for _, help := range []string{pflagHelp, goHelp, fluxHelp, certManagerHelp} {
		f.Add(help, "--leader-elect\n--health-addr=:9440\n-v\n2\n--webhook-port\n9443\n--\n--leader-elect")
	}
	f.Add("      --dry-run string[=\"all\"]   x\n  -q\n", "--dry-run\n$(A)\n--=x\n-\n---a\n$$(A)$(B)$(\n$")
	f.Fuzz(func(t *testing.T, help, lines string) {
		known := parseHelp(help)
		args := strings.Split(lines, "\n")
		set := &argSet{args: parseArgs(args, known), known: known}
		for _, l := range set.listeners(map[int32]bool{8080: true}) {
			if l.port < 1 || l.port > 65535 {
				t.Errorf("listens on %+v", l)
			}
		}
		written := set.strings()
		if again := parseArgs(written, known); !reflect.DeepEqual(again, set.args) {
			t.Errorf("%q are written as %q, which is read as %+v instead of %+v", args, written, again, set.args)
		}
		for _, name := range sortedKeys(known) {
			changed := &argSet{args: slices.Clone(set.args), known: known}
			changed.set(name, "a=b")
			again := &argSet{args: parseArgs(changed.strings(), known), known: known}
			if value, given := again.get(name); !given || value != "a=b" {
				t.Errorf("%s is set, and %q in %q", name, value, changed.strings())
			}
			others := func(a arg) bool { return a.name == name }
			if !slices.Equal(slices.DeleteFunc(again.args, others), slices.DeleteFunc(slices.Clone(set.args), others)) {
				t.Errorf("with %s set, %q became %q", name, written, changed.strings())
			}
		}
		env := map[string]string{"A": "a$(B)", "B": "", lines: "whole"}
		want := variable.ReplaceAllStringFunc(lines, func(found string) string {
			if found == "$$" {
				return "$"
			}
			if value, ok := env[found[2:len(found)-1]]; ok {
				return value
			}
			return found
		})
		if got := expand(lines, env); got != want {
			t.Errorf("%q stands for %q, not %q", lines, want, got)
		}
	})
}
