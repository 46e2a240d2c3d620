package following

import (
	"context"
	"errors"
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// keysAt returns the private keys that the Flux of the cluster at has after the take-over: its own keys, and the fleet's keys on this
// machine, which it gets then.
func keysAt(ctx context.Context, s *session.Session, at *kube.Client) (secret.Keys, error) {
	keys, err := fleetsecrets.ClusterKeys(ctx, at)
	if err != nil {
		return nil, err
	}
	local, err := fleetsecrets.LocalKeys(s.Deps, s.StateFleet(), s.Opts.Dir, s.Opts.AgeKeyFile)
	return append(keys, local...), err
}

// open decrypts objects as Flux does before it applies them. The clear text stays in memory. open returns the reasons why other objects
// stay encrypted.
func (r Rehearsal) open(ctx context.Context, applied []flux.ToApply) (sealed map[kube.Ref]string, err error) {
	sealed = map[kube.Ref]string{}
	var keys secret.Keys
	known := false
	for i, o := range applied {
		if !flux.IsEncrypted(o.Unstructured) {
			continue
		}
		if !known {
			known = true
			if keys, err = r.keys(ctx); ctx.Err() != nil {
				return nil, context.Cause(ctx)
			} else if err != nil {
				r.untold(" with what is encrypted", err)
			}
		}
		inClear, err := opened(o, keys)
		if err != nil {
			sealed[kube.RefOf(o.Unstructured)] = r.whySealed(err)
			continue
		}
		applied[i] = *inClear
	}
	return sealed, nil
}

// whySealed says why an object stays encrypted. It does not use the error of a decrypted file, which may quote the file's content.
func (r Rehearsal) whySealed(err error) string {
	if errors.Is(err, secret.ErrNoKey) {
		return "is encrypted for a key that " + r.Name + " will not have"
	}
	return "is encrypted, and does not decrypt"
}

// opened returns an object in clear text.
func opened(o flux.ToApply, keys secret.Keys) (*flux.ToApply, error) {
	content, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	content, err = secret.DecryptObject(content, keys)
	if err != nil {
		return nil, err
	}
	objects, err := kube.ParseYAML(content)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || kube.RefOf(objects[0]) != kube.RefOf(o.Unstructured) {
		return nil, fmt.Errorf("decrypt %s: it is another object then", kube.RefOf(o.Unstructured))
	}
	return &flux.ToApply{Unstructured: objects[0], By: o.By, Opened: true}, nil
}
