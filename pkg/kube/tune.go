package kube

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Tuning sets the parallelism and the resources of one manager.
type Tuning struct {
	// Manager is the name of the manager's Deployment.
	Manager string
	// Flags are flags of the manager with a number as their value, by name without dashes.
	Flags map[string]int
	// Requests and Limits are those of the manager's container by resource (cpu, memory), as Kubernetes quantities.
	Requests, Limits map[string]string
	// Env are environment variables of the manager, by name.
	Env map[string]string
}

// String returns the tuning in one line: "--kube-api-qps=200 limits.memory=2Gi". Equal tunings have equal strings.
func (t Tuning) String() string {
	words := t.args()
	for _, part := range []struct {
		name    string
		amounts map[string]string
	}{{"requests", t.Requests}, {"limits", t.Limits}, {"env", t.Env}} {
		for _, resource := range slices.Sorted(maps.Keys(part.amounts)) {
			words = append(words, part.name+"."+resource+"="+part.amounts[resource])
		}
	}
	return strings.Join(words, " ")
}

// args returns the flags as arguments, sorted by name.
func (t Tuning) args() []string {
	args := make([]string, 0, len(t.Flags))
	for _, name := range slices.Sorted(maps.Keys(t.Flags)) {
		args = append(args, "--"+name+"="+strconv.Itoa(t.Flags[name]))
	}
	return args
}

// managerContainer is the conventional name of the manager's container in a pod with several containers.
const managerContainer = "manager"

// Tune changes a Deployment in place. It sets or adds flags, resource quantities and variables. It fails if the Deployment has no container
// of the manager.
func Tune(deployment *unstructured.Unstructured, t Tuning) error {
	return EditManager(deployment, func(container map[string]any) error {
		args, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			return err
		}
		for _, arg := range t.args() {
			args = withFlag(args, arg)
		}
		if len(args) > 0 {
			if err := unstructured.SetNestedStringSlice(container, args, "args"); err != nil {
				return err
			}
		}
		for what, amounts := range map[string]map[string]string{"requests": t.Requests, "limits": t.Limits} {
			for resource, amount := range amounts {
				if err := unstructured.SetNestedField(container, amount, "resources", what, resource); err != nil {
					return err
				}
			}
		}
		return setEnv(container, t.Env)
	})
}

// setEnv sets variables of a container. It adds new ones at the end, sorted by name.
func setEnv(container map[string]any, variables map[string]string) error {
	if len(variables) == 0 {
		return nil
	}
	env, _, err := unstructured.NestedSlice(container, "env")
	if err != nil {
		return err
	}
	env = slices.DeleteFunc(env, func(v any) bool {
		variable, _ := v.(map[string]any)
		name, _ := variable["name"].(string)
		_, replaced := variables[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, map[string]any{"name": name, "value": variables[name]})
	}
	return unstructured.SetNestedSlice(container, env, "env")
}

// EditManager calls edit with the manager's container of a Deployment: the container called manager, or the only one.
func EditManager(deployment *unstructured.Unstructured, edit func(container map[string]any) error) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		return fmt.Errorf("read %s: %w", RefOf(deployment), err)
	}
	i := slices.IndexFunc(containers, func(c any) bool {
		container, ok := c.(map[string]any)
		return ok && container["name"] == managerContainer
	})
	if i < 0 && len(containers) == 1 {
		i = 0
	}
	if i < 0 {
		return fmt.Errorf("%s has %s, none of them called %s", RefOf(deployment),
			plain.Count(len(containers), "container"), managerContainer)
	}
	container, ok := containers[i].(map[string]any)
	if !ok {
		return fmt.Errorf("read %s: container %d has no fields", RefOf(deployment), i)
	}
	if err := edit(container); err != nil {
		return fmt.Errorf("change %s: %w", RefOf(deployment), err)
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}

// withFlag replaces a flag in args by arg, --NAME=VALUE, or adds arg at the end.
func withFlag(args []string, arg string) []string {
	flag, value, _ := strings.Cut(arg, "=")
	found := false
	for i, a := range args {
		name, _, inOne := strings.Cut(a, "=")
		switch {
		case strings.TrimLeft(name, "-") != flag[2:] || !strings.HasPrefix(name, "-"):
		case inOne:
			args[i], found = name+"="+value, true
		case i+1 < len(args):
			args[i+1], found = value, true
		}
	}
	if found {
		return args
	}
	return append(args, arg)
}
