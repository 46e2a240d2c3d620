package templates_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// common lists the values that a user expects of every flavour. A flavour needs one of the values in each line.
var common = []string{
	"kubernetesVersion", "labels", "region location", "identity",
	"controlPlane.replicas", "controlPlane.size", "controlPlane.access.public", "controlPlane.access.allowedCIDRs",
	"pools[].name", "pools[].size", "pools[].replicas", "pools[].min", "pools[].max", "pools[].spot", "pools[].zones",
	"pools[].labels", "pools[].taints",
	"network.podCIDR", "network.serviceCIDR",
	"healthCheck.enabled", "healthCheck.maxUnhealthy", "autoscaler.enabled",
}

// If a flavour lacks a common value, its README names the value and its schema refuses it.
func TestCommonValues(t *testing.T) {
	for _, flavour := range flavours(t) {
		known := map[string]bool{}
		walk(schemaOf(t, flavour), "", func(at string, _ *schema) { known[strings.TrimPrefix(at, ".")] = true })
		left := leftOut(t, flavour)
		covers := func(list []string, value string) bool {
			return slices.ContainsFunc(list, func(l string) bool { return l == value || strings.HasPrefix(value, l+".") })
		}
		for _, values := range common {
			if !slices.ContainsFunc(strings.Fields(values), func(v string) bool { return known[v] || covers(left, v) }) {
				t.Errorf("%s has none of %s, and its README does not tell why", flavour, values)
			}
		}
		validate, example := validator(t, flavour), schemaOf(t, flavour).Examples[0]
		for _, value := range left {
			if err := validate(overlay(example, valuesWith(example, value))); err == nil {
				t.Errorf("%s takes %s, which its README says it leaves out", flavour, value)
			} else if name := value[strings.LastIndex(value, ".")+1:]; !strings.Contains(fmt.Sprintf("%#v", err), name) {
				t.Errorf("%s: the refusal of %s does not name it: %v", flavour, value, err)
			}
		}
	}
}

var (
	leftOutList = regexp.MustCompile(`\n## What it leaves out\n[^\n]+:\n\n((?:- .*\n)+)\n`)
	leftOutItem = regexp.MustCompile("^- ((?:`[^`]+`, )*`[^`]+`): .")
)

// leftOut returns the values that the flavour does not have, as its README says.
func leftOut(t *testing.T, flavour string) []string {
	t.Helper()
	list := leftOutList.FindSubmatch(read(t, "charts/"+flavour+"/README.md"))
	if list == nil {
		t.Fatalf("the README of %s does not tell what it leaves out", flavour)
	}
	var all []string
	for item := range strings.Lines(string(list[1])) {
		names := leftOutItem.FindStringSubmatch(item)
		if names == nil {
			t.Fatalf("%s: no value in %q", flavour, item)
		}
		for _, name := range inBackticks.FindAllStringSubmatch(names[1], -1) {
			all = append(all, name[1])
		}
	}
	return all
}

// valuesWith returns the example with one more value. A value of a pool goes into the first pool.
func valuesWith(example map[string]any, path string) map[string]any {
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		return map[string]any{first: "a"}
	}
	if name, ok := strings.CutSuffix(first, "[]"); ok {
		items, _ := example[name].([]any)
		item, _ := items[0].(map[string]any)
		return map[string]any{name: []any{overlay(item, valuesWith(item, rest))}}
	}
	return map[string]any{first: valuesWith(nil, rest)}
}
