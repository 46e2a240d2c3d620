package fleetrepo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// AddOptions declare a new cluster.
type AddOptions struct {
	Name, Environment, Flavour string
	// ManagementCluster that makes it; "" means the only one that can.
	ManagementCluster string
	// KubernetesVersion; "" means the management cluster's, or the one in the chart's example.
	KubernetesVersion string
	// Values override the values of the chart's example. Set overrides both.
	Values map[string]any
	Set    []Assignment
	// Flux says which Flux applies the cluster's apps. "" means the cluster's own Flux, if its flavour can run Flux.
	Flux scaffold.FluxMode
	// CNI is a folder of addons/cni with the network of the cluster's pods. "" means the only network of the repo, if
	// the flavour needs one.
	CNI string
}

// Add declares a cluster. It begins with the Kubernetes version, the control plane and the pools of the chart's example, and asks for
// everything else that the example has and the chart has no default for: a region, a project. Errors: names that are unknown or taken,
// a management cluster without the provider that the flavour needs, and values that the chart's schema refuses, all at once.
func (r *Repo) Add(opts AddOptions) (*Edit, error) {
	mgmt, err := r.managementClusterFor(opts.ManagementCluster, opts.Flavour, r.makerOf(opts.Flavour))
	if err != nil {
		return nil, err
	}
	ch, err := r.chart(opts.Flavour)
	if err != nil {
		return nil, err
	}
	if err := opts.oneVersion(); err != nil {
		return nil, err
	}
	if !slices.Contains(r.EnvironmentNames(), opts.Environment) {
		return nil, unknownEnvironment(opts.Environment, r.EnvironmentNames())
	}
	at := r.layoutFor(mgmt, opts.Environment, opts.Flavour)
	values, err := r.valuesOf(opts, ch, mgmt, at)
	if err != nil {
		return nil, err
	}
	e := &Edit{Summary: fmt.Sprintf("Add cluster %s to %s", opts.Name, opts.Environment)}
	if err := r.bringShared(e, mgmt, at, opts.Environment); err != nil {
		return nil, err
	}
	declared, err := r.fluxFor(opts, ch, mgmt, at, e)
	if err != nil {
		return nil, err
	}
	declared.Name, declared.Layout, declared.Environment, declared.Flavour, declared.Values = opts.Name, at, opts.Environment, opts.Flavour,
		values
	files, err := scaffold.ClusterFiles(declared)
	if err != nil {
		return nil, err
	}
	file := files[0]
	if err := r.checkFree(mgmt, opts.Environment, opts.Name, file); err != nil {
		return nil, err
	}
	c, err := parseCluster(place{file.Path, opts.Environment, mgmt, at}, file.Content)
	if err != nil {
		return nil, findingsOf(file.Path, err)
	}
	refused := c.check(ch)
	if err := ch.missing(values); err != nil {
		return nil, cmp.Or(unknownValues(refused), err) // the user may have misspelt the name of the missing value
	}
	if refused != nil {
		return nil, refused
	}
	e.Checks, e.Environments = append(e.Checks, RendersCluster{file.Path}), []string{opts.Environment}
	r.writeText(&e.Changes, files...)
	for _, f := range files {
		if err := r.enlist(&e.Changes, at.Environment(opts.Environment), f.Path, true); err != nil {
			return nil, err
		}
	}
	if err := r.clusterFolder(&e.Changes, declared); err != nil {
		return nil, err
	}
	if err := r.shareChart(e, at, opts.Environment, opts.Flavour); err != nil {
		return nil, err
	}
	if err := r.withEnvironment(e, mgmt, at, opts.Environment); err != nil {
		return nil, err
	}
	return e, r.bringChart(e, ch)
}

// valuesOf returns the values of a new cluster: the chart's example, those of opts, and the tags of the fleet.
func (r *Repo) valuesOf(opts AddOptions, ch *chart, mgmt *v1alpha1.ManagementCluster, at layout.Layout) (map[string]any, error) {
	if opts.KubernetesVersion != "" {
		if _, err := parseVersion(opts.KubernetesVersion); err != nil {
			return nil, err
		}
	}
	values, err := ch.start(cmp.Or(opts.KubernetesVersion, mgmt.KubernetesVersion))
	if err != nil {
		return nil, err
	}
	values = overlay(values, opts.Values)
	dropReplicas(values, opts.Set)
	if values, err = Assign(values, asWanted(ch.schema, opts.Set)); err != nil {
		return nil, err
	}
	return values, r.tagFleet(ch, path.Join(at.Cluster(opts.Environment, opts.Name), clusterFile), values)
}

// shareChart adds the HelmChart that an environment's clusters of a flavour share to the edit, if it is missing.
func (r *Repo) shareChart(e *Edit, at layout.Layout, environment, flavour string) error {
	file, err := scaffold.EnvironmentChart(at, environment, flavour)
	if err != nil {
		return err
	}
	if !r.exists(file.Path) {
		e.Changes.Write(file)
	}
	return r.listed(&e.Changes, path.Dir(file.Path), path.Base(file.Path), true)
}

// dropReplicas removes the number of nodes in the example from pools that get limits instead, because a pool has one or
// the other.
func dropReplicas(values map[string]any, set []Assignment) {
	pools, _ := values["pools"].([]any)
	for _, a := range set {
		if len(a.Path) != 3 || a.Path[0] != "pools" || a.Path[2] != "min" && a.Path[2] != "max" {
			continue
		}
		if i, ok := a.Path[1].(int); ok && i < len(pools) {
			if pool, ok := pools[i].(map[string]any); ok {
				pool = maps.Clone(pool)
				delete(pool, "replicas")
				pools = slices.Clone(pools)
				pools[i] = pool
			}
		}
	}
	if pools != nil {
		values["pools"] = pools
	}
}

// bringChart adds the chart to the edit if the repo has no copy yet.
func (r *Repo) bringChart(e *Edit, ch *chart) error {
	if ch.inRepo {
		return nil
	}
	files, err := scaffold.ChartFiles(ch.flavour)
	if err != nil {
		return err
	}
	e.Changes.Write(files...)
	e.Notes = append(e.Notes, fmt.Sprintf("The chart %s/%s comes with it: it is yours to change.", layout.ChartsDir, ch.flavour))
	return r.lockCharts(e, map[string][]manifest.File{ch.flavour: files})
}

// checkFree returns an error if another cluster of the management cluster has this name, because both would have the
// same namespace there. It also returns an error if another cluster of the environment has this name, because commands
// tell an environment's clusters apart by their names. With environment "", it checks only the management cluster. The
// file of the wanted cluster itself may exist.
func (r *Repo) checkFree(mgmt *v1alpha1.ManagementCluster, environment, name string, wanted manifest.File) error {
	places, err := r.places(name)
	if err != nil {
		return err
	}
	for _, p := range places {
		if p.mgmt != mgmt && p.environment != environment {
			continue
		}
		if there, err := r.read(p.file); err != nil || p.file != wanted.Path || !sameText(there, wanted.Content) {
			hint := "choose another name, or change it with `fleetctl cluster scale` and `fleetctl cluster upgrade`"
			if environment != "" && p.environment != environment {
				hint = "the clusters of a management cluster have names of their own: choose another one, such as " + name + "-" + environment
			}
			return diag.Usage(hint, "there is a cluster %s already: %s", name, p.file)
		}
	}
	return nil
}

// managementClusterFor chooses the management cluster whose providers can make clusters of a flavour. by is what makes them.
func (r *Repo) managementClusterFor(name, flavour string, by maker) (*v1alpha1.ManagementCluster, error) {
	all := r.Fleet.Spec.ManagementClusters
	if name == "" && len(all) > 1 {
		var able []string
		none := true
		for i := range all {
			if by.lacks(&all[i]) == "" {
				none = false
				if all[i].Repository == nil {
					able = append(able, all[i].Name)
				}
			}
		}
		switch {
		case none: // to ask for one of them would mislead
			provider := by.lacks(&all[0])
			return nil, diag.Errorf(
				fmt.Sprintf("`fleetctl provider add %s --management NAME` declares it, and `fleetctl init` installs it", provider),
				"no management cluster of the fleet can make clusters of flavour %s: none has an infrastructure provider %s", flavour, provider)
		case len(able) == 1:
			name = able[0]
		}
	}
	m, err := r.managementCluster(name)
	if err == nil {
		err = refuseElsewhere(m)
	}
	if err != nil {
		return nil, err
	}
	if provider := by.lacks(m); provider != "" {
		return nil, diag.Errorf(fmt.Sprintf("`fleetctl provider add %s --management %s` declares it, and `fleetctl init` installs it", provider,
			m.Name),
			"management cluster %s cannot make clusters of flavour %s: it has no infrastructure provider %s", m.Name, flavour, provider)
	}
	return m, nil
}

// providerOf returns the infrastructure provider that a flavour of fleetctl needs; "" for a team's own flavour.
func providerOf(flavour string) string {
	for _, provider := range scaffold.Providers() {
		if slices.Contains(scaffold.FlavoursFor(provider), flavour) {
			return provider
		}
	}
	return ""
}

// FlavoursToOffer returns the flavours, of fleetctl and of the team, whose clusters a management cluster of the fleet can make.
func (r *Repo) FlavoursToOffer() []string {
	var names []string
	for i := range r.Fleet.Spec.ManagementClusters {
		for _, p := range r.Fleet.Spec.ManagementClusters[i].Providers {
			names = append(names, scaffold.FlavoursFor(p.Name)...)
		}
	}
	for _, name := range r.Flavours() {
		by := r.makerOf(name)
		if by.provider == "" && slices.ContainsFunc(r.Fleet.Spec.ManagementClusters, func(m v1alpha1.ManagementCluster) bool {
			return by.lacks(&m) == ""
		}) {
			names = append(names, name)
		}
	}
	return sortedSet(names)
}

// startingPoint returns the values of the example that fit every cluster.
var startingPoint = []yamledit.Path{{"kubernetesVersion"}, {"controlPlane", "replicas"}, {"pools"}}

// example returns the values of a small cluster in the chart's schema; none if the schema has no example.
func (ch *chart) example() map[string]any {
	examples, _ := ch.schema["examples"].([]any)
	if len(examples) == 0 {
		return nil
	}
	first, _ := examples[0].(map[string]any)
	return first
}

// oneVersion refuses a Kubernetes version beside values with another one: only one of them can have an effect.
func (o AddOptions) oneVersion() error {
	values, err := Assign(o.Values, o.Set)
	if err != nil || o.KubernetesVersion == "" {
		return err
	}
	if other, given := values["kubernetesVersion"]; given && other != o.KubernetesVersion {
		return diag.Usage("leave one of them out", "--version is %s, and the values have kubernetesVersion %v", o.KubernetesVersion, other)
	}
	return nil
}

// start returns the values that a new cluster begins with.
func (ch *chart) start(kubernetesVersion string) (map[string]any, error) {
	values := map[string]any{}
	for _, path := range startingPoint {
		if value := at(ch.example(), path); value != nil {
			changed, err := assign(values, path, value)
			if err != nil {
				return nil, err
			}
			values, _ = changed.(map[string]any)
		}
	}
	if kubernetesVersion != "" {
		values["kubernetesVersion"] = kubernetesVersion
	}
	return values, nil
}

// missing returns an error for values in the example that have no default and were not given.
func (ch *chart) missing(values map[string]any) error {
	all := overlay(ch.defaults, values)
	out := &MissingValuesError{Flavour: ch.flavour}
	var hints []string
	for _, path := range leaves(ch.example(), nil) {
		if value := at(all, path); value == nil || value == "" {
			example := at(ch.example(), path)
			out.Values = append(out.Values, Assignment{Path: path, Value: example})
			hints = append(hints, setFlag(path, example))
		}
	}
	if len(hints) == 0 {
		return nil
	}
	return &diag.Error{Err: out, Hint: "for example: " + strings.Join(hints, " "), Code: diag.ExitUsage}
}

// unknownValues returns the findings in err about values that a flavour does not have; nil if there are none.
func unknownValues(err error) error {
	findings, _ := errors.AsType[diag.Findings](err)
	return slices.DeleteFunc(slices.Clone(findings), func(f diag.Finding) bool { return f.Rule != v1alpha1.RuleUnknownField }).Err()
}

// MissingValuesError lists required values of a flavour that were not given.
type MissingValuesError struct {
	Flavour string
	// Values are the values of the chart's example.
	Values []Assignment
}

func (e *MissingValuesError) Error() string {
	paths := make([]string, 0, len(e.Values))
	for _, v := range e.Values {
		paths = append(paths, v.Path.String())
	}
	return fmt.Sprintf("flavour %s needs values for %s", e.Flavour, strings.Join(paths, ", "))
}

// leaves returns the paths of all single values in fields. It does not enter lists.
func leaves(values map[string]any, prefix yamledit.Path) []yamledit.Path {
	var all []yamledit.Path
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path := append(slices.Clone(prefix), name)
		if inner, ok := values[name].(map[string]any); ok {
			all = append(all, leaves(inner, path)...)
			continue
		}
		all = append(all, path)
	}
	return all
}

// at returns the value at a path of fields, or nil.
func at(values map[string]any, path yamledit.Path) any {
	var value any = values
	for _, s := range path {
		name, _ := s.(string)
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}
