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

// Rehearsal is about a cluster that is to take over.
type Rehearsal struct {
	// Name of the cluster.
	Name string
	// AcceptDeletions makes a warning of what its Flux would delete. Without it, that is an error, with the hint Deleted.
	AcceptDeletions bool
	// Deleted is the hint for what its Flux would delete. Default: to have it deleted before.
	Deleted string
	// Warn is told what does not keep it from taking over.
	Warn func(string)
	// Ahead, if not nil, tells of the cluster that has the work now: nothing of it is here yet.
	Ahead *flux.Ahead

	// keys are those with which its Flux decrypts.
	keys func(context.Context) (secret.Keys, error)
}

// Rehearse tries what the Flux of a cluster that is about to take over would do there with the commit that it gets, and changes nothing. An
// object that its API server refuses, or one that Flux would delete, is an error. What the charts would change is a warning, and so is what
// could not be tried: nobody knows that it would go wrong.
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

// untold warns of what is not tried.
func (r Rehearsal) untold(what string, says any) {
	r.Warn(fmt.Sprintf("what the Flux of %s would do is not tried%s: %v", r.Name, what, says))
}

// unrendered warns that nothing is tried, because what Flux would apply is not known. The error is that of an end of the run.
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

// try tries what the Flux of the cluster at would do with what the fleet repo has for it. keep says what it would keep of what it applied
// before.
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

// judge says what keeps the cluster from taking over.
func (r Rehearsal) judge(found *flux.Rehearsal) error {
	errs := found.Refused
	hint := "mend the fleet repo and push"
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

// rehearsed are the objects that Kustomizations apply from the fleet's own branch, and those that its charts make.
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
