package templates_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// change is a row of a README's table "What a change does": the values, and the effect of changing them.
type change struct {
	values []string
	effect string
}

// rolls tells whether the effect is that new machines replace old ones.
func (c change) rolls() bool {
	return strings.Contains(c.effect, "are replaced, one by one") || strings.Contains(c.effect, "node by node")
}

// fixed tells whether the value cannot be changed. The tests then ignore its effect on templates.
func (c change) fixed() bool {
	return strings.HasPrefix(c.effect, "set at the start") || strings.HasPrefix(c.effect, "refused by")
}

// The README's table "What a change does" names every value of the chart. If Cluster API makes the machines, the test changes each value of
// the case "everything" in turn. A change replaces machines of the control plane, or of the pool, exactly if the README says so. The name
// of an immutable template changes exactly if its content changes.
func TestChanges(t *testing.T) {
	for _, flavour := range flavours(t) {
		t.Run(flavour, func(t *testing.T) {
			table := changesOf(t, flavour)
			s := schemaOf(t, flavour)
			walk(s, "", func(at string, of *schema) {
				if of.Properties == nil && of.Items == nil || of.Items != nil && of.Items.Properties == nil {
					rowOf(t, table, strings.TrimSuffix(strings.TrimPrefix(at, "."), "[]"))
				}
			})
			if !slices.Contains(machineCharts(t), flavour) {
				return
			}
			everything := cases(t, flavour)[flavour+"-everything"]
			base, err := rendered(t, "x", flavour, everything)
			if err != nil {
				t.Fatal(err)
			}
			tried := 0
			for _, at := range leaves(everything, s, nil) {
				path := withoutNumbers(at.path)
				if row := rowOf(t, table, path); !row.fixed() && path != "pools[].name" {
					tried += tryChange(t, flavour, everything, base, at, row)
				}
			}
			if tried < 20 {
				t.Errorf("only %d values were changed", tried)
			}
		})
	}
}

// tryChange changes one value, and compares the effect on the objects with the README. It returns 1.
func tryChange(t *testing.T, flavour string, values map[string]any, base []object, at leaf, row change) int {
	t.Helper()
	var now []object
	err := errors.New("it has no other value")
	for _, other := range others(at) {
		if now, err = rendered(t, "x", flavour, at.with(values, other)); err == nil {
			break
		}
	}
	if err != nil {
		t.Errorf("%s cannot be changed: %v", at.path, err)
		return 0
	}
	checkImmutable(t, at.path, base, now)
	before, after := machines(t, base), machines(t, now)
	controlPlane := before["KubeadmControlPlane/x"] != after["KubeadmControlPlane/x"]
	pools := slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(name string) bool {
		return strings.HasPrefix(name, "MachineDeployment/") && before[name] != after[name]
	})
	switch {
	case (controlPlane || pools) != row.rolls():
		t.Errorf("%s: machines of the control plane are replaced: %v, of pools: %v; the README says: %s", at.path,
			controlPlane, pools, row.effect)
	case strings.HasPrefix(at.path, "controlPlane.") && pools, strings.HasPrefix(at.path, "pools[") && controlPlane:
		t.Errorf("%s: machines of the control plane are replaced: %v, of pools: %v", at.path, controlPlane, pools)
	}
	return 1
}

// machines returns, for the control plane and for each pool, the content on whose change Cluster API replaces the machines.
func machines(t *testing.T, objects []object) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, o := range objects {
		var decides any
		spec, _ := o["spec"].(object)
		switch o["kind"] {
		case "KubeadmControlPlane":
			template, _ := spec["machineTemplate"].(object)
			inner, _ := template["spec"].(object)
			decides = []any{spec["version"], spec["kubeadmConfigSpec"], inner["infrastructureRef"]}
		case "MachineDeployment":
			template, _ := spec["template"].(object)
			inner, _ := template["spec"].(object)
			inner = maps.Clone(inner)
			delete(inner, "deletion") // changed in place
			decides = inner
		default:
			continue
		}
		text, err := json.Marshal(decides)
		if err != nil {
			t.Fatal(err)
		}
		found[nameOf(o)] = string(text)
	}
	if len(found) < 2 {
		t.Fatalf("only %v has machines", found)
	}
	return found
}

// checkImmutable checks that the name of a template changes exactly when its content changes.
func checkImmutable(t *testing.T, what string, before, after []object) {
	t.Helper()
	byName, byContent := map[string]string{}, map[string]string{}
	for _, o := range slices.Concat(before, after) {
		kind, _ := o["kind"].(string)
		if !strings.HasSuffix(kind, "MachineTemplate") && kind != "KubeadmConfigTemplate" {
			continue
		}
		content, err := json.Marshal(o["spec"])
		if err != nil {
			t.Fatal(err)
		}
		name := nameOf(o)
		if was, ok := byName[name]; ok && was != string(content) {
			t.Errorf("%s: %s has another content under the same name:\n%s\n%s", what, name, was, content)
		}
		byName[name] = string(content)
		owner := name[:strings.LastIndex(name, "-")] + string(content)
		if was, ok := byContent[owner]; ok && was != name {
			t.Errorf("%s: %s and %s have the same content", what, was, name)
		}
		byContent[owner] = name
	}
}

func nameOf(o object) string {
	metadata, _ := o["metadata"].(object)
	return fmt.Sprintf("%s/%s", o["kind"], metadata["name"])
}

// machineCharts returns the charts whose machines Cluster API makes. They have a hash in the names of their machine templates.
func machineCharts(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(flavours(t),
		func(f string) bool { return !strings.HasSuffix(f, "-kubeadm") && f != "docker" && f != "in-memory" })
}

var (
	changesTable = regexp.MustCompile(`\n## What a change does\n\| Change \| Effect \|\n\|---\|---\|\n((?:\|.*\n)+)`)
	inBackticks  = regexp.MustCompile("`([^`]+)`")
)

func changesOf(t *testing.T, flavour string) []change {
	t.Helper()
	table := changesTable.FindSubmatch(read(t, "charts/"+flavour+"/README.md"))
	if table == nil {
		t.Fatalf("the README of %s has no table of what a change does", flavour)
	}
	var all []change
	for row := range strings.Lines(string(table[1])) {
		cells := strings.SplitN(strings.Trim(row, "| \n"), " | ", 2)
		c := change{effect: cells[1]}
		for _, name := range inBackticks.FindAllStringSubmatch(cells[0], -1) {
			c.values = append(c.values, name[1])
		}
		all = append(all, c)
	}
	return all
}

// rowOf returns the row about a value. It is the row that names the value, or the object that has the value, or `x.*` for a value in x, or
// else only the last part of the value's name.
func rowOf(t *testing.T, table []change, path string) change {
	t.Helper()
	for at := path; at != ""; at = strings.TrimSuffix(at[:max(0, strings.LastIndex(at, "."))], "[]") {
		for _, c := range table {
			if slices.Contains(c.values, at) || at != path && slices.Contains(c.values, at+".*") {
				return c
			}
		}
	}
	for _, c := range table {
		if slices.ContainsFunc(c.values, func(name string) bool {
			return regexp.MustCompile(`\.` + regexp.QuoteMeta(name) + `(\.|\[|$)`).MatchString(path)
		}) {
			return c
		}
	}
	t.Errorf("the README does not say what a change of %s does", path)
	return change{effect: "refused by the test"}
}

var numbers = regexp.MustCompile(`\[\d+\]`)

// withoutNumbers turns a path such as pools[1].zones[0] into pools[].zones.
func withoutNumbers(path string) string {
	return strings.TrimSuffix(numbers.ReplaceAllString(path, "[]"), "[]")
}

// leaves returns all places in the values that hold a scalar.
func leaves(in any, s *schema, steps []any) []leaf {
	if s == nil {
		return nil
	}
	var all []leaf
	down := func(step any, inner any, below *schema) {
		all = append(all, leaves(inner, below, append(append([]any{}, steps...), step))...)
	}
	switch in := in.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(in)) {
			below := s.Properties[key]
			if below == nil {
				below = s.free()
			}
			down(key, in[key], below)
		}
		return all
	case []any:
		for i, inner := range in {
			down(i, inner, s.Items)
		}
		return all
	}
	return []leaf{{path: pathOf(steps), schema: s, steps: steps, value: in}}
}

// others returns other values for a place, which the rest of the schema may still refuse.
func others(at leaf) []any {
	var all []any
	for _, v := range at.schema.Enum {
		if v != at.value && v != "" {
			all = append(all, v)
		}
	}
	switch v := at.value.(type) {
	case bool:
		all = append(all, !v)
	case float64:
		all = append(all, v+1, math.Max(0, v-1))
	case int64:
		all = append(all, v+1, v-1)
	case string:
		if v == "" {
			all = append(all, "a")
		}
		for i := len(v) - 1; i >= 0 && len(at.schema.Enum) == 0; i-- {
			for _, other := range []string{"0", "1", "a", "b", "c"} {
				if v[i:i+1] != other && regexp.MustCompile(`[0-9A-Za-z]`).MatchString(v[i:i+1]) {
					if changed := v[:i] + other + v[i+1:]; at.schema.admits(changed) {
						all = append(all, changed)
					}
				}
			}
		}
	}
	return all
}
