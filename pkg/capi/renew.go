package capi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/capi/credentials"
	"github.com/fleetctl/fleetctl/pkg/capi/releases"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// Renewed is a provider that got other values for its variables.
type Renewed struct {
	releases.Provider
	// Variables are the changed variables. Objects are the objects of the cluster that got their values.
	Variables, Objects []string
	// Restarted are the restarted Deployments. They read the changed values only at their start.
	Restarted []string
}

// NeedsValuesError says that the cluster keeps values of variables that this installation needs, because it must apply the provider.
type NeedsValuesError struct {
	Provider releases.Provider
	Names    []string
}

// Error names the provider and the variables.
func (e *NeedsValuesError) Error() string {
	return fmt.Sprintf("%s must be applied, and this needs values for %s", e.Provider, strings.Join(e.Names, ", "))
}

// renewal is the work for one running provider whose variables have new values.
type renewal struct {
	provider  releases.Provider
	variables []string
	objects   []*unstructured.Unstructured
	restart   []kube.Key
}

// Held returns the record of the values that the providers on the management cluster were given.
func (m *Manager) Held(ctx context.Context) (*credentials.Record, error) {
	return credentials.Read(ctx, m.kube)
}

// renewals returns the work for running providers whose variables have new values. If an earlier run gave a value for a variable and this
// run does not, the value stays. It is an error if another part of the provider must be applied, because that would remove the value.
func (m *Manager) renewals(ctx context.Context, source *releases.Source, providers []releases.Provider, todo *plan) ([]renewal, error) {
	held, err := m.Held(ctx)
	if err != nil {
		return nil, err
	}
	var all []renewal
	var against []error
	for i, p := range providers {
		components := todo.wanted[i]
		p.Version = components.Version()
		r, err := m.renewal(ctx, source, p, held, todo, components)
		if err != nil {
			against = append(against, err)
		} else if r != nil {
			all = append(all, *r)
		}
	}
	return all, errors.Join(against...)
}

// leaves tells whether a plan does not change a provider.
func (p *plan) leaves(components repository.Components) bool {
	return !slices.Contains(p.missing, components) && p.upgradeOf(components) == nil
}

// renewal returns the work for one provider, or nil if there is none. left means that the plan does not change the provider otherwise. If
// the plan applies the provider, it applies all objects. Then only the Deployments that this does not change need a restart.
func (m *Manager) renewal(
	ctx context.Context,
	source *releases.Source,
	p releases.Provider,
	held *credentials.Record,
	todo *plan,
	components repository.Components,
) (*renewal, error) {
	left := todo.leaves(components)
	given, named, err := source.Given(ctx, p)
	if err != nil {
		return nil, err
	}
	v := variables{provider: p, given: given, left: left}
	v.changed, v.known = held.Changed(p.Label(), given)
	v.kept = slices.DeleteFunc(slices.Clone(source.Kept()), func(name string) bool { _, ok := named[name]; return !ok })
	v.dropped = slices.DeleteFunc(held.Dropped(p.Label(), named, given), func(name string) bool { return slices.Contains(v.kept, name) })
	if len(v.kept) > 0 && !left {
		return nil, &NeedsValuesError{Provider: p, Names: v.kept}
	}
	if len(v.dropped) > 0 && (!left || len(v.changed) > 0) {
		return nil, diag.Errorf(
			"export it, or set its source under `variables:` of the provider in fleet.yaml; `value: \"\"` removes it",
			"%s was given a value for %s by an earlier run, but this run has none", p, strings.Join(v.dropped, ", "))
	}
	if !left && len(v.changed) == 0 {
		return nil, nil
	}
	parts, err := source.FromVariables(ctx, p, components.TargetNamespace())
	if err != nil {
		return nil, err
	}
	r := &renewal{provider: p, variables: v.changed}
	var differing []string
	for _, part := range parts {
		differs, err := m.outdated(ctx, part, v)
		if err != nil {
			return nil, err
		}
		if differs {
			r.objects = append(r.objects, part.Unstructured)
			differing = append(differing, part.Variables...)
		}
	}
	r.restart = readersOf(components, r.objects)
	if v.known {
		r.restart = append(r.restart, pendingOf(held.Providers[p.Label()], components)...)
	}
	if !left {
		r.objects = nil
		r.restart = slices.DeleteFunc(r.restart, func(key kube.Key) bool { return !todo.running[key] })
	}
	if len(r.objects) == 0 && len(r.restart) == 0 {
		return nil, nil
	}
	if len(r.variables) == 0 {
		slices.Sort(differing)
		r.variables = slices.Compact(differing)
	}
	return r, nil
}

// variables are the facts about a provider's variables in one run.
type variables struct {
	provider releases.Provider
	given    map[string]string
	// changed are variables with other values than in the last run, if these are known. kept are variables whose values the cluster keeps.
	// dropped are variables for which an earlier run gave a value, and this run does not.
	changed, kept, dropped []string
	known                  bool
	left                   bool // this run does not change the provider otherwise
}

// outdated tells whether part must be applied because the cluster's object has other values.
func (m *Manager) outdated(ctx context.Context, part releases.Valued, v variables) (bool, error) {
	if touches(part.Variables, v.kept) {
		there, err := m.kube.Exists(ctx, part.GroupVersionKind(), kube.RefOf(part.Unstructured).Key)
		if err != nil {
			return false, fmt.Errorf("look at %s: %w", kube.RefOf(part.Unstructured), err)
		}
		if !there || touches(part.Variables, v.changed) {
			return false, &NeedsValuesError{Provider: v.provider, Names: v.kept}
		}
		return false, nil
	}
	if touches(part.Variables, v.dropped) {
		return false, nil
	}
	differs := v.known && touches(part.Variables, v.changed)
	// A Deployment that somebody has changed by hand stays so until its variables change. If the former values are unknown, compare it.
	unknown := !v.known && touches(part.Variables, slices.Collect(maps.Keys(v.given)))
	if v.left && (part.GroupVersionKind() != kube.DeploymentKind || unknown) {
		var err error
		if differs, err = m.differs(ctx, part.Unstructured); err != nil {
			return false, err
		}
	}
	if differs && v.left && !v.known {
		return true, m.mayHoldMore(ctx, v.provider, part, v.given)
	}
	return differs, nil
}

// mayHoldMore refuses to apply an existing object with defaults for variables without a value in this run. An earlier run may have given
// values for them. No record has these values, and the defaults would overwrite them.
func (m *Manager) mayHoldMore(ctx context.Context, p releases.Provider, part releases.Valued, given map[string]string) error {
	lost := slices.DeleteFunc(slices.Clone(part.Variables), func(name string) bool { _, ok := given[name]; return ok })
	if len(lost) == 0 {
		return nil
	}
	ref := kube.RefOf(part.Unstructured)
	there, err := m.kube.Exists(ctx, part.GroupVersionKind(), ref.Key)
	if err != nil {
		return fmt.Errorf("look at %s: %w", ref, err)
	}
	if !there {
		return nil
	}
	slices.Sort(lost)
	return diag.Errorf("export it, or set its source under `variables:` of the provider in fleet.yaml; `value: \"\"` chooses the default",
		"%s of %s differs: an earlier run may have given a value for %s, but this run has none", ref, p, strings.Join(slices.Compact(lost), ", "))
}

func touches(names, others []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(others, name) })
}

// pendingOf returns the Deployments that a killed run has not restarted.
func pendingOf(known *credentials.Provider, components repository.Components) []kube.Key {
	var keys []kube.Key
	for _, key := range kube.DeploymentKeys(kube.Pointers(components.Objs())) {
		if slices.Contains(known.Restart, key.String()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// announce records the Deployments to restart before anything is changed. If this run is killed, the next run restarts them.
func (m *Manager) announce(ctx context.Context, all []renewal) error {
	if len(all) == 0 {
		return nil
	}
	return credentials.Change(ctx, m.kube, func(h *credentials.Record) {
		for _, r := range all {
			p := h.Providers[r.provider.Label()]
			if p == nil {
				p = &credentials.Provider{Variables: map[string]credentials.Value{}}
				h.Providers[r.provider.Label()] = p
			}
			for _, key := range r.restart {
				p.Restart = append(p.Restart, key.String())
			}
			slices.Sort(p.Restart)
			p.Restart = slices.Compact(p.Restart)
		}
	})
}

// renew writes the new values into a provider's objects, and restarts the Deployments that read them only at their start.
func (m *Manager) renew(ctx context.Context, r renewal) (*Renewed, error) {
	result := &Renewed{Provider: r.provider, Variables: r.variables}
	restart := map[string]kube.Key{}
	for _, key := range r.restart {
		restart[key.String()] = key
	}
	objects := make([]*unstructured.Unstructured, len(r.objects))
	for i, obj := range r.objects {
		var err error
		if objects[i], err = keepAuthorities(ctx, m.kube, obj); err != nil {
			return nil, err
		}
	}
	changes, err := m.kube.Apply(ctx, objects, kube.ApplyOptions{ForceConflicts: true})
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		result.Objects = append(result.Objects, c.Ref.String())
		if c.Kind == kube.DeploymentKind.Kind && c.Action == kube.Configured {
			delete(restart, c.Key.String()) // its own change has restarted it
			result.Restarted = append(result.Restarted, c.Key.String())
		}
	}
	mark := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartMark, time.Now().UTC().Format(time.RFC3339Nano))
	for _, key := range restart {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		err := m.kube.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(mark)), client.FieldOwner(restartOwner))
		if err != nil {
			return nil, fmt.Errorf("restart Deployment %s: %w", key, err)
		}
		result.Restarted = append(result.Restarted, key.String())
	}
	slices.Sort(result.Restarted)
	return result, nil
}

// keepHeld records which values the providers have now.
func (m *Manager) keepHeld(
	ctx context.Context,
	source *releases.Source,
	providers []releases.Provider,
	origins map[string]credentials.Origin,
) error {
	type entry struct {
		provider releases.Provider
		given    map[string]string
		secrets  map[string]bool
	}
	var entries []entry
	for _, p := range providers {
		given, _, err := source.Given(ctx, p)
		if err != nil {
			return err
		}
		e := entry{provider: p, given: given, secrets: map[string]bool{}}
		if len(given) > 0 {
			parts, err := source.FromVariables(ctx, p, credentials.Key.Namespace) // any namespace will do: only the kinds matter
			if err != nil {
				return err
			}
			for _, part := range parts {
				for _, name := range part.Variables {
					secret := part.GetKind() == "Secret" && !credentials.IsNone(p.Name, name, given[name])
					e.secrets[name] = e.secrets[name] || secret
				}
			}
		}
		entries = append(entries, e)
	}
	return credentials.Change(ctx, m.kube, func(h *credentials.Record) {
		for _, e := range entries {
			h.Give(e.provider.Label(), e.given, func(name string) bool { return e.secrets[name] }, origins, time.Now())
		}
	})
}

func (m *Manager) renewAll(ctx context.Context, all []renewal, result *InstallResult, detail func(string)) error {
	for _, r := range all {
		detail("writing the changed variables of " + r.provider.String())
		renewed, err := m.renew(ctx, r)
		if err != nil {
			return fmt.Errorf("change the variables of %s: %w", r.provider, err)
		}
		result.Renewed = append(result.Renewed, *renewed)
	}
	return nil
}
