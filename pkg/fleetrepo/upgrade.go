package fleetrepo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// kubeletSkew is how many minor versions nodes may be behind the control plane.
const kubeletSkew = 3

// UpgradeOptions say what to upgrade to.
type UpgradeOptions struct {
	// Version of Kubernetes.
	Version string
	// Pools to upgrade; empty: all of them.
	Pools []string
	// Values that change with the version, such as an image, by path.
	Values []Assignment
}

// Upgrade returns the next step of a cluster's upgrade. The first step upgrades the control plane and holds every pool
// at its version. Once that is in the file, a second call lets the pools follow. Upgrade refuses what Kubernetes and
// Cluster API refuse: a downgrade, skipping a minor version, and nodes more than three minor versions behind the
// control plane.
func (r *Repo) Upgrade(name string, opts UpgradeOptions) (*Edit, error) {
	target, err := parseVersion(opts.Version)
	if err != nil {
		return nil, err
	}
	c, err := r.find(name)
	if err != nil {
		return nil, err
	}
	for _, pool := range opts.Pools {
		if _, _, err := r.findPool(name, pool); err != nil {
			return nil, err
		}
	}
	current, err := parseVersion(c.KubernetesVersion)
	if err != nil {
		return nil, findingsOf(c.File, fmt.Errorf("values.kubernetesVersion: %w", err))
	}
	if err := r.checkStep(c, current, target); err != nil {
		return nil, err
	}
	if ch, err := r.chart(c.Flavour); err == nil { // without a chart, the edit says what is wrong
		opts.Values = asWanted(ch.schema, opts.Values)
	}
	var e *Edit
	if target.EQ(current) {
		e, err = r.upgradePools(c, opts)
	} else {
		e, err = r.upgradeControlPlane(c, target, opts)
	}
	if err != nil {
		return nil, err
	}
	e.Notes = append(e.Notes, c.imagesOf(current, opts.Values)...)
	return e, nil
}

// checkStep refuses a step that a control plane cannot take.
func (r *Repo) checkStep(c *declared, current, target semver.Version) error {
	switch {
	case target.LT(current):
		return diag.Usage("a control plane never goes back; restore it from a backup instead", "cannot downgrade cluster %s from v%s to v%s",
			c.Name, current, target)
	case target.Major != current.Major || target.Minor > current.Minor+1:
		return diag.Usage(fmt.Sprintf("upgrade step by step: `fleetctl cluster upgrade %s --version v%d.%d.0`", r.called(c.Environment, c.Name),
			current.Major, current.Minor+1), "cannot upgrade cluster %s from v%s to v%s: a control plane takes one minor version at a time",
			c.Name, current, target)
	}
	for _, p := range c.Pools {
		version, err := c.poolVersion(p, current)
		if err != nil {
			return err
		}
		switch {
		case version.GT(current):
			return diag.Errorf("remove kubernetesVersion of the pool", "%s:%d: pool %s is at v%s, ahead of its control plane at v%s", c.File,
				p.Line, p.Name, version, current)
		case version.Major == target.Major && version.Minor+kubeletSkew < target.Minor:
			return diag.Usage(fmt.Sprintf("upgrade the pool first: `fleetctl cluster upgrade %s --version v%s --pool %s`",
				r.called(c.Environment, c.Name), current, p.Name),
				"cannot upgrade cluster %s to v%s: pool %s is at v%s, and nodes may be %d minor versions behind", c.Name, target,
				p.Name, version, kubeletSkew)
		}
	}
	return nil
}

func (c *declared) poolVersion(p Pool, control semver.Version) (semver.Version, error) {
	if p.KubernetesVersion == "" {
		return control, nil
	}
	version, err := parseVersion(p.KubernetesVersion)
	if err != nil {
		return version, findingsOf(c.File, fmt.Errorf("pool %s: %w", p.Name, err))
	}
	return version, nil
}

func (r *Repo) upgradeControlPlane(c *declared, target semver.Version, opts UpgradeOptions) (*Edit, error) {
	if len(opts.Pools) > 0 {
		return nil, diag.Usage("run it without --pool first", "the control plane of cluster %s goes first: it is at %s",
			c.Name, c.KubernetesVersion)
	}
	ch, err := r.chart(c.Flavour)
	if err != nil {
		return nil, err
	}
	changes := assignments(opts.Values)
	changes = append(changes, set("v"+target.String(), values("kubernetesVersion")...))
	held := 0
	if ch.schema == nil || schemaAt(ch.schema, yamledit.Path{"pools", 0, "kubernetesVersion"}) != nil {
		for i, p := range c.Pools {
			if p.KubernetesVersion == "" {
				changes = append(changes, set(c.KubernetesVersion, values("pools", i, "kubernetesVersion")...))
			}
			held++
		}
	}
	e, err := r.apply(c, fmt.Sprintf("Upgrade the control plane of cluster %s to v%s", c.Name, target), changes...)
	if err == nil && held > 0 {
		e.Notes = append(e.Notes,
			fmt.Sprintf("The control plane goes first; the pools stay where they are. When `fleetctl status` shows it Ready, "+
				"run `fleetctl cluster upgrade %s --version v%s` again for the pools.", r.called(c.Environment, c.Name), target))
	}
	return e, err
}

// upgradePools lets the pools follow their control plane.
func (r *Repo) upgradePools(c *declared, opts UpgradeOptions) (*Edit, error) {
	changes := assignments(opts.Values)
	var names, held []string
	for i, p := range c.Pools {
		switch {
		case p.KubernetesVersion == "":
		case len(opts.Pools) == 0 || slices.Contains(opts.Pools, p.Name):
			changes = append(changes, remove(values("pools", i, "kubernetesVersion")...))
			names = append(names, p.Name)
		default:
			held = append(held, p.Name+" at "+p.KubernetesVersion)
		}
	}
	e, err := r.apply(c, fmt.Sprintf("Upgrade pools of cluster %s to %s: %s", c.Name, c.KubernetesVersion, strings.Join(names, ", ")),
		changes...)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 && len(changes) == 0 {
		e.AsWanted = c.isAt(held)
	}
	if len(names) == 0 {
		return e, nil
	}
	e.Notes = append(e.Notes, fmt.Sprintf("The control plane is at %s; now pools follow it: %s. Their nodes are replaced.",
		c.KubernetesVersion, strings.Join(names, ", ")))
	if len(held) > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("Held until the same command names them, or names no pool: %s.", strings.Join(held, ", ")))
	}
	return e, r.after(e, c)
}

// isAt says that a cluster has the version already, and which pools are held at another version.
func (c *declared) isAt(held []string) string {
	text := fmt.Sprintf("cluster %s is at %s already", c.Name, c.KubernetesVersion)
	if len(held) > 0 {
		text += ", except for held pools: " + strings.Join(held, ", ")
	}
	return text
}

// imagesOf returns the images in the values that have the old version in their names and were not changed.
func (c *declared) imagesOf(old semver.Version, changed []Assignment) []string {
	var notes []string
	look := func(path ...any) {
		n := c.value(path...)
		at := yamledit.Path(path).String()
		isOld := strings.Contains(text(n), old.String()) || strings.Contains(text(n), strings.ReplaceAll(old.String(), ".", "-"))
		if isOld && !slices.ContainsFunc(changed, func(a Assignment) bool { return a.Path.String() == at }) {
			notes = append(notes, fmt.Sprintf("%s:%d: %s is %s, an image with the old version: give the new one with --set %s", c.File, n.Line, at,
				n.Value, diag.ShellWord(at+"=…")))
		}
	}
	for _, field := range []string{"image", "template"} {
		look(field)
		look("controlPlane", field)
		for i := range c.Pools {
			look("pools", i, field)
		}
	}
	return notes
}

func assignments(all []Assignment) []change {
	var changes []change
	for _, a := range all {
		changes = append(changes, set(a.Value, values(a.Path...)...))
	}
	return changes
}

// parseVersion parses a version such as v1.36.3.
func parseVersion(text string) (semver.Version, error) {
	version, err := semver.Parse(strings.TrimPrefix(text, "v"))
	if err != nil {
		return version, diag.Usage("write it in full, like v1.36.3", "%.60q is not a version of Kubernetes", text)
	}
	if !strings.HasPrefix(text, "v") {
		return version, diag.Usage("did you mean v"+text+"?", "version %.60q does not start with v", text)
	}
	return version, nil
}
