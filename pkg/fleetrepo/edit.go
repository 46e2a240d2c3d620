package fleetrepo

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/scaffold"
)

// change is one step of an edit. It returns the changed text of a cluster's file. document is the HelmRelease.
type change func(src []byte, document int) ([]byte, error)

func set(value any, path ...any) change {
	return func(src []byte, document int) ([]byte, error) { return yamledit.Set(src, document, path, value) }
}

func remove(path ...any) change {
	return func(src []byte, document int) ([]byte, error) { return yamledit.Remove(src, document, path) }
}

// removeItem is remove for the opposite of add, where a missing list means the same as an empty one.
func removeItem(path ...any) change {
	return func(src []byte, document int) ([]byte, error) { return yamledit.RemoveItem(src, document, path) }
}

func add(item *yaml.Node, path ...any) change {
	return func(src []byte, document int) ([]byte, error) { return yamledit.Append(src, document, path, item) }
}

// values returns the path of a value of the chart.
func values(path ...any) []any { return append([]any{"spec", "values"}, path...) }

// apply makes changes of a cluster's values in order, and checks the result against the chart's schema. An error about a bad value has the
// line in the changed file. The caller also renders the chart's templates: see RendersCluster.
func (r *Repo) apply(c *declared, summary string, changes ...change) (*Edit, error) {
	e, after, err := r.rewrite(c, summary, changes...)
	if err != nil {
		return nil, err
	}
	ch, err := r.chart(c.Flavour)
	if err != nil {
		return nil, diag.Wrap("judge the values of "+c.File, err, "")
	}
	if err := after.check(ch); err != nil {
		return nil, err
	}
	e.Checks = append(e.Checks, RendersCluster{c.File})
	if c.Paused {
		e.Notes = append(e.Notes, fmt.Sprintf("Cluster %s is paused: the change reaches it after `fleetctl cluster resume %s`.", c.Name, c.Name))
	}
	return e, nil
}

// around makes changes outside of a cluster's values. It does not judge the values: a cluster can be paused and removed
// even if its values are invalid.
func (r *Repo) around(c *declared, summary string, changes ...change) (*Edit, error) {
	e, _, err := r.rewrite(c, summary, changes...)
	return e, err
}

// rewrite makes changes of a cluster's file in order, and returns the changed cluster.
func (r *Repo) rewrite(c *declared, summary string, changes ...change) (*Edit, *declared, error) {
	src := c.src
	for _, change := range changes {
		var err error
		if src, err = change(src, c.document); err != nil {
			return nil, nil, diag.Wrap("change "+yamledit.At(c.File, err), err, "change it in an editor")
		}
	}
	after, err := parseCluster(place{c.File, c.Environment, c.mgmt, c.at}, src)
	if err != nil || after == nil {
		return nil, nil, diag.Wrap("change "+yamledit.At(c.File, err), cmp.Or(err, errNoCluster), "change it in an editor")
	}
	e := &Edit{Summary: summary, Environments: []string{c.Environment}}
	e.Changes.Write(manifest.File{Path: c.File, Content: src})
	return e, after, nil
}

// errNoCluster says that a change would leave no cluster in its file.
var errNoCluster = errors.New("it would declare no cluster any more")

// ScaleControlPlane sets the number of a cluster's control plane nodes. Errors: an unknown cluster, a flavour whose
// cloud runs the control plane, a number that the chart refuses.
func (r *Repo) ScaleControlPlane(name string, replicas int) (*Edit, error) {
	c, err := r.find(name)
	if err != nil {
		return nil, err
	}
	ch, err := r.chart(c.Flavour)
	if err != nil {
		return nil, err
	}
	if ch.schema != nil && schemaAt(ch.schema, yamledit.Path{"controlPlane", "replicas"}) == nil {
		return nil, diag.Usage("its pools can be scaled: `fleetctl pool scale`",
			"cluster %s has no control plane nodes of its own: with flavour %s the cloud runs them", c.Name, c.Flavour)
	}
	return r.apply(c, fmt.Sprintf("Scale the control plane of cluster %s to %d", c.Name, replicas),
		set(replicas, values("controlPlane", "replicas")...))
}

// Pause keeps changes in Git from reaching a cluster, or lets them through again. Cluster API still manages its
// machines.
func (r *Repo) Pause(name string, paused bool) (*Edit, error) {
	c, err := r.find(name)
	if err != nil {
		return nil, err
	}
	if paused {
		e, err := r.around(c, "Pause cluster "+c.Name, set(true, "spec", "suspend"))
		if err == nil {
			e.Notes = append(e.Notes, "Changes of the cluster's file no longer reach the cluster. Cluster API still manages its machines.")
		}
		return e, err
	}
	return r.around(c, "Resume cluster "+c.Name, remove("spec", "suspend"))
}

// PoolOptions are the size of a pool, Replicas or Min and Max, and other values of it.
type PoolOptions struct {
	Replicas, Min, Max *int
	Values             map[string]any
}

func (o PoolOptions) check() error {
	switch {
	case o.Replicas != nil && (o.Min != nil || o.Max != nil):
		return diag.Usage("give --replicas for a fixed size, or --min and --max for the autoscaler",
			"a pool has a fixed size or limits, not both")
	case o.Replicas == nil && o.Min == nil && o.Max == nil:
		return diag.Usage("give --replicas, or --min and --max for the autoscaler", "the size of the pool is missing")
	case o.Min != nil && o.Max != nil && *o.Min > *o.Max:
		return diag.Usage("give a --max that is not below --min", "--min %d is more than --max %d", *o.Min, *o.Max)
	}
	for _, s := range o.fields() {
		if s.value < 0 {
			return diag.Usage("give 0 or more", "--%s %d is not a number of nodes", s.name, s.value)
		}
	}
	return nil
}

// checkValues refuses values that another argument sets already. They would have no effect.
func (o PoolOptions) checkValues() error {
	for _, key := range sortedKeys(o.Values) {
		switch {
		case key == "name":
			return diag.Usage("leave it out", "--set name=… has no effect: the pool has its name from the command line")
		case slices.ContainsFunc(o.fields(), func(s sizeField) bool { return s.name == key }):
			return diag.Usage("leave one of them out", "--set %s=… has no effect with --%[1]s", key)
		}
	}
	return nil
}

// size is the pool's size for a summary.
func (o PoolOptions) size() string {
	var parts []string
	for _, s := range o.fields() {
		parts = append(parts, fmt.Sprintf("%s %d", s.name, s.value))
	}
	return strings.Join(parts, ", ")
}

type sizeField struct {
	name  string
	value int
}

func (o PoolOptions) fields() []sizeField {
	var all []sizeField
	for _, s := range []struct {
		name  string
		value *int
	}{{"replicas", o.Replicas}, {"min", o.Min}, {"max", o.Max}} {
		if s.value != nil {
			all = append(all, sizeField{s.name, *s.value})
		}
	}
	return all
}

// AddPool declares a new pool of a cluster. It is no error if the same pool exists already. Errors: an unknown cluster,
// a taken name, values that the chart refuses.
func (r *Repo) AddPool(cluster, pool string, opts PoolOptions) (*Edit, error) {
	if err := scaffold.CheckLabel("pool", pool, 63); err != nil {
		return nil, err
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	c, err := r.find(cluster)
	if err != nil {
		return nil, err
	}
	if err := opts.checkValues(); err != nil {
		return nil, err
	}
	item, err := poolNode(pool, opts)
	if err != nil {
		return nil, err
	}
	summary := fmt.Sprintf("Add pool %s to cluster %s", pool, c.Name)
	if i := c.pool(pool); i >= 0 {
		if sameValue(c.value("pools", i), item) {
			return r.apply(c, summary)
		}
		return nil, diag.Usage("change it with `fleetctl pool scale`", "cluster %s has a pool %s already (%s:%d)", c.Name, pool,
			c.File, c.Pools[i].Line)
	}
	e, err := r.apply(c, summary, add(item, values("pools")...))
	if err == nil && opts.Replicas == nil {
		e.Notes = append(e.Notes, r.autoscalerNote(c)...)
	}
	return e, err
}

// autoscalerNote returns a note if the chart of a cluster could run an autoscaler, but the values do not enable it.
// Then nothing would scale the cluster's pools.
func (r *Repo) autoscalerNote(c *declared) []string {
	ch, err := r.chart(c.Flavour)
	if err != nil || ch.schema == nil || schemaAt(ch.schema, yamledit.Path{"autoscaler", "enabled"}) == nil ||
		text(c.value("autoscaler", "enabled")) == "true" {
		return nil
	}
	return []string{fmt.Sprintf(
		"No autoscaler runs for this cluster yet: set autoscaler.enabled to true under spec.values of %s, or run one yourself.", c.File)}
}

// sameValue tells whether two nodes mean the same.
func sameValue(a, b *yaml.Node) bool {
	var x, y any
	return a.Decode(&x) == nil && b.Decode(&y) == nil && reflect.DeepEqual(x, y)
}

// poolNode writes a pool as a person would: its name and size first.
func poolNode(name string, opts PoolOptions) (*yaml.Node, error) {
	item := &yaml.Node{Kind: yaml.MappingNode}
	field := func(key string, value any) error {
		k, v := &yaml.Node{}, &yaml.Node{}
		if err := k.Encode(key); err != nil {
			return err
		}
		if err := v.Encode(value); err != nil {
			return err
		}
		item.Content = append(item.Content, k, v)
		return nil
	}
	if err := field("name", name); err != nil {
		return nil, err
	}
	for _, s := range opts.fields() {
		if err := field(s.name, s.value); err != nil {
			return nil, err
		}
	}
	for _, key := range sortedKeys(opts.Values) {
		if err := field(key, opts.Values[key]); err != nil {
			return nil, err
		}
	}
	return item, nil
}

// ScalePool changes the size of a pool, also from a fixed size to limits and back.
func (r *Repo) ScalePool(cluster, pool string, opts PoolOptions) (*Edit, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	c, i, err := r.findPool(cluster, pool)
	if err != nil {
		return nil, err
	}
	old := c.Pools[i]
	at := func(field string) []any { return values("pools", i, field) }
	var changes []change
	var note string
	switch {
	case opts.Replicas != nil && old.Min != nil:
		changes = append(changes, remove(at("min")...), remove(at("max")...))
		note = "The autoscaler no longer scales this pool."
	case opts.Replicas == nil && old.Replicas != nil:
		if opts.Min == nil || opts.Max == nil {
			return nil, diag.Usage("give both --min and --max", "pool %s has a fixed size now", pool)
		}
		changes = append(changes, remove(at("replicas")...))
		note = "From now on the autoscaler scales this pool."
	}
	for _, s := range opts.fields() {
		changes = append(changes, set(s.value, at(s.name)...))
	}
	e, err := r.apply(c, fmt.Sprintf("Scale pool %s of cluster %s to %s", pool, c.Name, opts.size()), changes...)
	if err == nil && note != "" {
		e.Notes = append(e.Notes, note)
	}
	if err == nil && opts.Replicas == nil {
		e.Notes = append(e.Notes, r.autoscalerNote(c)...)
	}
	return e, err
}

// RemovePool removes a pool and its nodes. Errors: an unknown cluster or pool, with the most similar name.
func (r *Repo) RemovePool(cluster, pool string) (*Edit, error) {
	c, i, err := r.findPool(cluster, pool)
	if err != nil {
		return nil, err
	}
	ch, err := r.chart(c.Flavour)
	if err != nil {
		return nil, err
	}
	out := remove
	if ch.emptyByDefault("pools") {
		out = removeItem
	}
	e, err := r.apply(c, fmt.Sprintf("Remove pool %s of cluster %s", pool, c.Name), out(values("pools", i)...))
	if err == nil {
		e.Notes = append(e.Notes, fmt.Sprintf("This deletes the pool's nodes (%s); their pods move to other pools, if those have room.",
			c.Pools[i].Size()))
	}
	return e, err
}

func (r *Repo) findPool(cluster, pool string) (*declared, int, error) {
	c, err := r.find(cluster)
	if err != nil {
		return nil, 0, err
	}
	if i := c.pool(pool); i >= 0 {
		return c, i, nil
	}
	var names []string
	for _, p := range c.Pools {
		names = append(names, p.Name)
	}
	return nil, 0, diag.Unknown("pool in cluster "+c.Name+" called", pool, names, "the cluster has no pools; `fleetctl pool add` declares one")
}

// pool returns the index of the pool with that name, or -1.
func (c *declared) pool(name string) int {
	return slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == name })
}

// managementCluster returns the management cluster with that name. With an empty name it returns the only one.
func (r *Repo) managementCluster(name string) (*v1alpha1.ManagementCluster, error) {
	return r.Fleet.ManagementCluster(name)
}
