package review

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// controlPlane is the name of the pool with the machines of a control plane.
const controlPlane = "control plane"

// foldUpgrades merges the upgrade of a control plane with those of the pools that get the same version.
func (j *judge) foldUpgrades() {
	planes := map[clusterID]int{}
	for i, f := range j.found {
		if f.Kind == ImpactUpgrade && f.Pool == controlPlane {
			planes[clusterID{f.Environment, f.Cluster}] = i
		}
	}
	j.found = slices.DeleteFunc(slices.Clone(j.found), func(f Impact) bool {
		i, ok := planes[clusterID{f.Environment, f.Cluster}]
		if !ok || f.Kind != ImpactUpgrade || f.Pool == controlPlane || f.To != j.found[i].To {
			return false
		}
		j.found[i].Machines += f.Machines
		return true
	})
}

// foldLimits drops the new size of a pool whose limits change, because within the limits the autoscaler decides.
func (j *judge) foldLimits() {
	limits := map[string]bool{}
	id := func(i Impact) string { return clusterID{i.Environment, i.Cluster}.String() + "\x00" + i.Pool }
	for _, f := range j.found {
		if f.Kind == ImpactLimits {
			limits[id(f)] = true
		}
	}
	j.found = slices.DeleteFunc(j.found, func(f Impact) bool { return f.Kind == ImpactScale && limits[id(f)] })
}

// alike is what impacts have in common that are reported in one line.
type alike struct {
	kind                      ImpactKind
	environment, pool, reason string
	from, to                  string
	requested, suspended      bool
	runs                      bool
	// alone is different for each impact that is reported by itself, and 0 for all others.
	alone int
}

// group merges equal impacts on several clusters of an environment, and puts the gravest first. Clusters that are
// removed are named one by one.
func group(found []Impact) []Impact {
	all := []Impact{}
	index := map[alike]int{}
	for n, f := range found {
		k := alike{f.Kind, f.Environment, f.Pool, f.Reason, f.From, f.To, f.Requested, f.Suspended, f.Runs, 0}
		switch f.Kind {
		case ImpactDeleteCluster, ImpactUnprotect:
			k.alone = n + 1 // two clusters with one name count as two
		case ImpactUpgrade:
			k.from = "" // only the target version counts
		case ImpactReplaceMachines:
			k.from = ""
		}
		i, ok := index[k]
		if !ok {
			index[k] = len(all)
			f.Clusters = []string{f.Cluster}
			all = append(all, f)
			continue
		}
		all[i].Machines += f.Machines
		all[i].Clusters = append(all[i].Clusters, f.Cluster)
		all[i].Cluster = ""
		if all[i].From != f.From {
			all[i].From = ""
		}
	}
	for i := range all {
		all[i].Summary = all[i].words()
	}
	slices.SortStableFunc(all, func(a, b Impact) int {
		return cmp.Or(cmp.Compare(slices.Index(gravity, a.Kind), slices.Index(gravity, b.Kind)), cmp.Compare(a.Environment, b.Environment),
			cmp.Compare(a.Summary, b.Summary))
	})
	return all
}

// words describes the impact for people.
func (i *Impact) words() string {
	text := i.sentence()
	if i.Suspended {
		text += " (paused: not before it is resumed)"
	}
	return text
}

func (i *Impact) sentence() string {
	where := clusterID{i.Environment, i.Cluster}.String()
	if i.Cluster == "" {
		where = plain.Count(len(i.Clusters), "cluster")
		if i.Environment != "" {
			where += " of " + i.Environment
		}
	}
	pool := "pool " + i.Pool
	if i.Pool == controlPlane {
		pool = "the control plane"
	}
	machines := plain.Count(i.Machines, "machine")
	switch i.Kind {
	case ImpactDeleteCluster:
		return i.deletion(where)
	case ImpactUnprotect:
		if i.Requested {
			return "takes the protection of cluster " + where + " away: the next step deletes it"
		}
		return "takes the protection of cluster " + where + " away: " + i.Reason
	case ImpactRemovePool:
		if i.Runs {
			return fmt.Sprintf("takes %s of %s (%s) out of the repo; it is protected, %s", pool, where, sizeOr(i.From, machines), runsOn)
		}
		return fmt.Sprintf("removes %s of %s (%s)", pool, where, sizeOr(i.From, machines))
	case ImpactAddPool:
		return fmt.Sprintf("adds %s to %s (%s)", pool, where, sizeOr(i.To, machines))
	case ImpactReplaceMachines:
		if i.Machines == 0 {
			machines = "the machines"
		}
		verb := "replaces"
		if i.Reason == cloudReason {
			verb = "may replace"
		}
		return fmt.Sprintf("%s %s of %s in %s (%s)", verb, machines, pool, where, i.Reason)
	case ImpactUpgrade:
		return i.upgrade(where, pool)
	case ImpactScale:
		return fmt.Sprintf("scales %s of %s from %s to %s", pool, where, i.From, i.To)
	case ImpactLimits:
		return fmt.Sprintf("changes the limits of %s of %s from %s to %s", pool, where, i.From, i.To)
	case ImpactAddCluster:
		if i.Cluster == "" {
			return fmt.Sprintf("adds %s (%s)", where, machines)
		}
		return fmt.Sprintf("adds cluster %s (%s)", where, machines)
	case ImpactOther:
	}
	return i.Summary
}

// cloudReason is the reason of a replacement that the cloud decides on.
const cloudReason = "the cloud's own pool changes"

func sizeOr(size, machines string) string {
	if size == "" {
		return machines
	}
	if size == "1" {
		return "1 machine"
	}
	return size + " machines"
}

func (i *Impact) deletion(where string) string {
	what := fmt.Sprintf("cluster %s (%s)", where, plain.Count(i.Machines, "machine"))
	switch {
	case i.Requested && i.Reason != "":
		return "deletes " + what + ", as fleetctl cluster remove has prepared; but " + i.Reason + ", and does not wait for Cluster API"
	case i.Requested:
		return "deletes " + what + ", as fleetctl cluster remove has prepared"
	case i.Runs:
		return "takes " + what + " out of the repo; " + i.Reason
	case i.partly:
		return "deletes parts of " + what + ": " + i.Reason
	}
	return "deletes " + what + ": " + i.Reason
}

func (i *Impact) upgrade(where, pool string) string {
	what := pool + " of " + where
	if i.Pool == controlPlane {
		what = where
		if i.Cluster != "" {
			what = "cluster " + where
		}
	}
	text := fmt.Sprintf("upgrades %s to %s", what, i.To)
	if i.From != "" {
		text = fmt.Sprintf("%s %s from %s to %s", upOrDown(i.From, i.To), what, i.From, i.To)
	}
	if i.Machines > 0 {
		text += fmt.Sprintf(" (replaces %s)", plain.Count(i.Machines, "machine"))
	}
	return text
}

// upOrDown says whether a change of version is an upgrade or a downgrade. A revert, or a promotion back to an old tag,
// downgrades.
func upOrDown(from, to string) string {
	before, err := semver.ParseTolerant(from)
	after, afterErr := semver.ParseTolerant(to)
	if err == nil && afterErr == nil && after.LT(before) {
		return "downgrades"
	}
	return "upgrades"
}
