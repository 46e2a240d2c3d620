package following

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// Rehearse tries what the Flux of a cluster that is about to take over would do there with the commit that it gets, and changes nothing. An
// object that its API server refuses, or one that Flux would delete, is an error. What could not be tried is a warning: nobody knows that
// it would go wrong.
func Rehearse(ctx context.Context, s *session.Session, at *kube.Client, name string, have View) error {
	untold := func(what string, err error) {
		s.Deps.Report.Warn(fmt.Sprintf("what the Flux of %s would do is not tried%s: %v", name, what, err))
	}
	wanted, answer, err := renders(ctx, s, have)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && answer.Broken != "" {
		err = errors.New(answer.Broken)
	}
	if err != nil {
		untold("", err)
		return nil
	}
	objects, err := toApply(answer)
	if err != nil {
		return err
	}
	found, err := flux.NewSystem(at).Rehearse(ctx, objects, keysOfNames(answer.Followed), func(r kube.Ref) bool {
		r.Version = "" // another version of it is the same object
		return wanted[r]
	})
	if err != nil {
		return fmt.Errorf("try what the Flux of %s would do: %w", name, err)
	}
	for _, err := range found.Untold {
		untold(" with all", err)
	}
	errs := found.Refused
	if len(found.Deletes) > 0 {
		errs = append(errs, fmt.Errorf("it would delete %s, which the fleet repo does not have", plain.Names(refNames(found.Deletes), 8)))
	}
	return diag.Wrap("try what the Flux of "+name+" would do with the fleet repo", errors.Join(errs...),
		"mend the fleet repo and push; what is to be deleted, have deleted before")
}

// toApply are the objects that Kustomizations apply from the fleet's own branch.
func toApply(answer *wantedAnswer) ([]flux.ToApply, error) {
	var objects []flux.ToApply
	for _, o := range answer.Objects {
		if o.By == "" {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(o.Content); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", o.Kind, o.Name, err)
		}
		objects = append(objects, flux.ToApply{Unstructured: obj, By: kube.ParseKey(o.By)})
	}
	return objects, nil
}

func keysOfNames(all []string) []kube.Key {
	keys := make([]kube.Key, 0, len(all))
	for _, full := range all {
		keys = append(keys, kube.ParseKey(full))
	}
	return keys
}
