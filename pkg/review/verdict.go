package review

import (
	"fmt"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// Lost returns the clusters that leave the repo although `fleetctl cluster remove` has not prepared this on the older
// side.
func (r *Report) Lost() []Impact {
	return r.pick(func(i *Impact) bool { return i.Kind == ImpactDeleteCluster && !i.Requested })
}

// Opened returns the clusters whose protection is removed by something else than `fleetctl cluster remove`.
func (r *Report) Opened() []Impact {
	return r.pick(func(i *Impact) bool { return i.Kind == ImpactUnprotect && !i.Requested })
}

func (r *Report) pick(wanted func(*Impact) bool) []Impact {
	var all []Impact
	for n := range r.Impact {
		if wanted(&r.Impact[n]) {
			all = append(all, r.Impact[n])
		}
	}
	return all
}

// objection is a reason to stop a pipeline, with the clusters that it is about.
type objection struct {
	clusters []string
	// text says what is wrong with these clusters. comment says the same for a pull request.
	text, comment, hint string
}

// objections returns the objections to the change, the gravest first.
func (r *Report) objections() []objection {
	lost := objection{
		text:    "this takes clusters out of the repo that were not removed with fleetctl",
		comment: "A cluster leaves the repo that was not removed with `fleetctl cluster remove`.",
		hint:    "restore the files, and remove a cluster with `fleetctl cluster remove`, in its two steps",
	}
	steps := objection{
		text:    "both steps of fleetctl cluster remove are in this range",
		comment: "Both steps of `fleetctl cluster remove` are in this range: Flux has to apply the first one alone.",
		hint:    "have Flux apply the first step alone, before the second is merged or promoted",
	}
	opened := objection{
		text:    "this takes the protection of clusters away, and not with fleetctl cluster remove",
		comment: "The protection of a cluster is removed, and not with `fleetctl cluster remove`.",
		hint:    "restore the protection; to delete a cluster, use `fleetctl cluster remove`, in its two steps",
	}
	for _, i := range r.Lost() {
		o := &lost
		if i.BothSteps {
			o = &steps
		}
		o.clusters = append(o.clusters, clusterID{i.Environment, i.Cluster}.String())
	}
	for _, i := range r.Opened() {
		opened.clusters = append(opened.clusters, clusterID{i.Environment, i.Cluster}.String())
	}
	var all []objection
	for _, o := range []objection{lost, steps, opened} {
		if len(o.clusters) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// Err returns the reasons to stop a pipeline: problems that keep the newer side from being rendered, clusters that would be lost, and
// clusters that would lose their protection.
func (r *Report) Err() error {
	if err := r.Problems.Err(); err != nil {
		return &diag.Error{Op: "render", Err: err, Code: diag.ExitNotReady}
	}
	var texts, hints []string
	for _, o := range r.objections() {
		texts = append(texts, fmt.Sprintf("%s: %s", o.text, strings.Join(o.clusters, ", ")))
		hints = append(hints, o.hint)
	}
	if len(texts) == 0 {
		return nil
	}
	return diag.NotReady(strings.Join(hints, "; "), "%s", strings.Join(texts, "; "))
}
