package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
)

// StateFleet is the identity and the name under which the state folder keeps the fleet's private files.
func (s *Session) StateFleet() state.Fleet {
	return state.Fleet{ID: s.Identity(), Name: s.Fleet.Metadata.Name}
}

// CheckKeys refuses a fleet repo with secrets that this machine cannot decrypt, before anything is made. If the management cluster already
// exists, it has the key: see keyring.
func (s *Session) CheckKeys(ctx context.Context) error {
	rules, err := fleetsecrets.Rules(s.Opts.Dir)
	if err != nil || rules == nil {
		return err
	}
	keys, err := fleetsecrets.LocalKeys(s.Deps, s.StateFleet(), s.Opts.Dir, s.Opts.AgeKeyFile)
	if err != nil || len(keys.For(rules.Recipients())) > 0 {
		return err
	}
	if s.Host != nil {
		if st, err := s.Host.State(ctx); err != nil || st == host.StateRunning || st == host.StateStopped {
			return err
		}
	}
	return s.refuseLostKey(s.Opts.Dir, rules)
}

// refuseLostKey returns an error if the repo has secrets that init did not write itself: with a new key nobody could read them any more.
func (s *Session) refuseLostKey(root string, rules *secret.Rules) error {
	names, err := fleetsecrets.EncryptedFiles(root)
	if err != nil {
		return err
	}
	written := map[string]bool{}
	for _, f := range s.Folders(root) {
		written[f.Credentials(f.Environment)] = true
	}
	names = slices.DeleteFunc(names, func(name string) bool { return written[name] })
	if len(names) == 0 {
		return nil
	}
	return diag.Wrap("decrypt "+names[0], fmt.Errorf("%w: the fleet repo has %s encrypted for %s", secret.ErrNoKey,
		plain.Count(len(names), "file"),
		strings.Join(rules.Recipients(), ", ")), fleetsecrets.KeyHint)
}

// Keyring holds the keys of the fleet repo, the key in use first, and the fleet that the state folder filed them for.
type Keyring struct {
	Keys  secret.Keys
	fleet state.Fleet
}

// Ensure finds the keys of the fleet repo at root, or makes the first key, and keeps them in the state folder. The keys come from this
// machine or, if its state is lost, from the management cluster of client; nil where there is none.
func (k *Keyring) Ensure(ctx context.Context, s *Session, client *kube.Client, root string) (secret.Keys, error) {
	fleet := s.StateFleet()
	if k.Keys != nil && k.fleet == fleet {
		return k.Keys, nil
	}
	keys, err := fleetsecrets.LocalKeys(s.Deps, fleet, root, s.Opts.AgeKeyFile)
	if err != nil {
		return nil, err
	}
	keys = append(keys, k.Keys...) // filed under an identity that another run was faster than
	rules, err := fleetsecrets.Rules(root)
	if err != nil {
		return nil, err
	}
	if client != nil {
		there, err := fleetsecrets.ClusterKeys(ctx, client)
		if err != nil {
			return nil, err
		}
		keys = append(keys, there...)
	}
	if rules != nil {
		if fitting := keys.For(rules.Recipients()); len(fitting) == 0 {
			if err := s.refuseLostKey(root, rules); err != nil {
				return nil, err
			}
		} else {
			keys = append(fitting, keys...) // the one in use comes first
		}
	}
	if len(keys) == 0 {
		key, err := secret.NewKey()
		if err != nil {
			return nil, err
		}
		keys = secret.Keys{key}
	}
	keys = fleetsecrets.Unique(keys)
	if err := fleetsecrets.KeepKeys(ctx, s.Deps, fleet, keys); err != nil {
		return nil, err
	}
	k.Keys, k.fleet = keys, fleet
	return keys, nil
}
