package templates_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Exactly one MachineHealthCheck checks the machines of each pool. The limit maxUnhealthy holds for all pools but those on spare capacity:
// a cloud may take all machines of these back at once, and no other controller replaces them.
func TestHealthChecksOfPools(t *testing.T) {
	for _, flavour := range machineCharts(t) {
		t.Run(flavour, func(t *testing.T) {
			values := cases(t, flavour)[flavour+"-everything"]
			everything, spot := checkPools(t, flavour, values)
			if everything == 0 {
				t.Error("no pool has a limit")
			}
			if has := valuesHave(values, "spot"); has != (spot > 0) {
				t.Errorf("%d pools are without a limit; the values have a pool on spare capacity: %v", spot, has)
			}
			pools, _ := values["pools"].([]any)
			if spot == 0 || len(pools) == 0 {
				return
			}
			// A cluster whose pools are all on spare capacity, and one without.
			for _, want := range []bool{true, false} {
				var changed []any
				for _, pool := range pools {
					fields, _ := pool.(map[string]any)
					changed = append(changed, overlay(fields, map[string]any{"spot": want}))
				}
				limited, unlimited := checkPools(t, flavour, overlay(values, map[string]any{"pools": changed}))
				if want && (limited > 0 || unlimited != len(pools)) || !want && (unlimited > 0 || limited != len(pools)) {
					t.Errorf("spot is %v: %d pools have a limit, %d have none", want, limited, unlimited)
				}
			}
		})
	}
}

// valuesHave tells whether a pool of the values sets a field to true.
func valuesHave(values map[string]any, field string) bool {
	pools, _ := values["pools"].([]any)
	for _, pool := range pools {
		if fields, _ := pool.(map[string]any); fields[field] == true {
			return true
		}
	}
	return false
}

// checkPools counts the pools with a limit and those without.
func checkPools(t *testing.T, flavour string, values map[string]any) (limited, unlimited int) {
	t.Helper()
	objects, err := rendered(t, "x", flavour, values)
	if err != nil {
		t.Fatal(err)
	}
	type check struct {
		name     string
		selector labels.Selector
		limit    bool
	}
	var checks []check
	for _, o := range objects {
		if o["kind"] != "MachineHealthCheck" {
			continue
		}
		spec, _ := o["spec"].(object)
		given, _ := spec["selector"].(object)
		parsed := &metav1.LabelSelector{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, parsed); err != nil {
			t.Fatal(err)
		}
		selector, err := metav1.LabelSelectorAsSelector(parsed)
		if err != nil {
			t.Fatal(err)
		}
		checks = append(checks, check{nameOf(o), selector, spec["remediation"] != nil})
	}
	for _, o := range objects {
		if o["kind"] != "MachineDeployment" {
			continue
		}
		spec, _ := o["spec"].(object)
		template, _ := spec["template"].(object)
		metadata, _ := template["metadata"].(object)
		has := labels.Set{}
		own, _ := metadata["labels"].(object)
		for key, value := range own {
			has[key] = fmt.Sprint(value)
		}
		var by []string
		for _, c := range checks {
			if !c.selector.Matches(has) {
				continue
			}
			by = append(by, c.name)
			if c.limit {
				limited++
			} else {
				unlimited++
			}
		}
		if len(by) != 1 {
			t.Errorf("%s checks the machines of %s, want one MachineHealthCheck", by, nameOf(o))
		}
	}
	return limited, unlimited
}
