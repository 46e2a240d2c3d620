package following

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Rehearsal describes a cluster that is to take over.
type Rehearsal struct {
	// Name of the cluster.
	Name string
	// AcceptDeletions turns the error about objects that Flux would delete into a warning. Deleted is the hint of that error.
	AcceptDeletions bool
	// Deleted is the hint about objects that Flux would delete. Default: delete them first.
	Deleted string
	// Warn gets what does not keep the cluster from taking over.
	Warn func(string)
	// Ahead, if not nil, reads the objects at the cluster that has the work now, because they are not at the new cluster yet.
	Ahead *flux.Ahead

	// keys returns the keys with which the cluster's Flux decrypts.
	keys func(context.Context) (secret.Keys, error)
}

// Rehearse tries what the Flux of a cluster that is about to take over would do there with its commit, and changes nothing. It returns an
// error for an object that the API server refuses, and for an object that Flux would delete. Changes of charts, and objects that could not
// be tried, are warnings, because they need not fail.
func Rehearse(ctx context.Context, s *session.Session, at *kube.Client, have View, r Rehearsal) error {
	wanted, answer, err := renders(ctx, s, have)
	if err != nil || answer.Broken != "" {
		return r.unrendered(ctx, answer, err)
	}
	r.keys = func(ctx context.Context) (secret.Keys, error) {
		keys, err := keysAt(ctx, s, at)
		if err != nil || r.Ahead == nil {
			return keys, err
		}
		come, err := fleetsecrets.ClusterKeys(ctx, r.Ahead.Source)
		return append(keys, come...), err
	}
	return r.try(ctx, at, answer, flux.ChartOptions{}, func(ref kube.Ref) bool {
		ref.Version = "" // another version of it is the same object
		return wanted[ref]
	})
}

// untold warns of the objects that are not tried.
func (r Rehearsal) untold(what string, says any) {
	r.Warn(fmt.Sprintf("what the Flux of %s would do is not tried%s: %v", r.Name, what, says))
}

// unrendered warns that nothing is tried, because the objects of the fleet repo are not known. It returns an error only if the run has
// ended.
func (r Rehearsal) unrendered(ctx context.Context, answer *wantedAnswer, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		err = errors.New(answer.Broken)
	}
	r.untold("", err)
	return nil
}

// try tries what the Flux of the cluster at would do with the objects of the fleet repo. keep tells whether Flux would keep an object that
// it applied before.
func (r Rehearsal) try(
	ctx context.Context,
	at *kube.Client,
	answer *wantedAnswer,
	o flux.ChartOptions,
	keep func(kube.Ref) bool,
) error {
	applied, installed, err := rehearsed(answer)
	if err != nil {
		return err
	}
	sealed, err := r.open(ctx, applied)
	if err != nil {
		return err
	}
	system := flux.NewSystem(at)
	found, err := system.Rehearse(ctx, applied, keysOfNames(answer.Followed), keep, r.Ahead)
	if err != nil {
		return fmt.Errorf("try what the Flux of %s would do: %w", r.Name, err)
	}
	if r.Ahead != nil { // what charts have made travels, and so do their releases
		system = flux.NewSystem(r.Ahead.Source)
	}
	charts, err := system.RehearseCharts(ctx, installed, o)
	if err != nil {
		return fmt.Errorf("try what the charts of %s would do: %w", r.Name, err)
	}
	for _, err := range slices.Concat(found.Untold, charts.Untold) {
		r.untold(" with all", err)
	}
	left := slices.Clone(answer.Elsewhere)
	for _, ref := range found.Encrypted {
		left = append(left, ref.String()+", which "+sealed[ref])
	}
	if len(left) > 0 {
		r.untold(" with these", plain.Phrases(left, mostNamed))
	}
	for _, does := range []struct {
		what string
		to   []string
	}{{"make", charts.Makes}, {"change", charts.Changes}} {
		if len(does.to) > 0 {
			r.Warn(fmt.Sprintf("the charts that the Flux of %s installs would %s: %s", r.Name, does.what, plain.Phrases(does.to, mostNamed)))
		}
	}
	return r.judge(found)
}

// mostNamed bounds a list in a warning or an error.
const mostNamed = 8

// judge returns the reasons that keep the cluster from taking over.
func (r Rehearsal) judge(found *flux.Rehearsal) error {
	errs := found.Refused
	hint := "correct the fleet repo and push"
	if len(found.Deletes) > 0 {
		says := "it would delete " + plain.Names(refNames(found.Deletes), mostNamed) + ", which the fleet repo does not have"
		if r.AcceptDeletions {
			r.Warn("the Flux of " + r.Name + ": " + says)
		} else {
			errs, hint = append(errs, errors.New(says)), hint+"; "+cmp.Or(r.Deleted, "what is to be deleted, have deleted before")
		}
	}
	return diag.Wrap("try what the Flux of "+r.Name+" would do with the fleet repo", errors.Join(errs...), hint)
}

// rehearsed returns the objects that Kustomizations apply from the fleet's own branch, and the objects of that branch's charts.
func rehearsed(answer *wantedAnswer) (applied []flux.ToApply, installed []flux.ToInstall, err error) {
	for _, o := range answer.Objects {
		if len(o.Content) == 0 {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(o.Content); err != nil {
			return nil, nil, fmt.Errorf("read %s %s: %w", o.Kind, o.Name, err)
		}
		if o.By != "" {
			applied = append(applied, flux.ToApply{Unstructured: obj, By: kube.ParseKey(o.By)})
		} else {
			installed = append(installed, flux.ToInstall{Unstructured: obj, Release: kube.ParseKey(o.Release)})
		}
	}
	return applied, installed, nil
}

func keysOfNames(all []string) []kube.Key {
	keys := make([]kube.Key, 0, len(all))
	for _, full := range all {
		keys = append(keys, kube.ParseKey(full))
	}
	return keys
}
