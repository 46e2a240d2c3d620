package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// The environment variables that the sops program reads its age keys from.
const (
	keyFileVariable = "SOPS_AGE_KEY_FILE"
	keyVariable     = "SOPS_AGE_KEY"
)

// keyringHint says how to come by a key.
const keyringHint = "give the file with it: --age-key-file or " + keyFileVariable + "; it is in the state folder of who made the fleet, and in the Secret " +
	flux.Namespace + "/" + flux.DecryptionSecret + " of its management cluster"

// localKeys are the age keys of a fleet that this machine knows: those of the file given, of sops' environment variables, and of the state
// folder. root has the fleet repo.
func localKeys(d management.Deps, fleet state.Fleet, root, file string) (keys secret.Keys, err error) {
	fromVariable, _ := d.LookupEnv(keyFileVariable)
	if name := cmp.Or(file, fromVariable); name != "" {
		if strings.Contains(name, "AGE-SECRET-KEY-") { // no error may quote it
			return nil, diag.Usage("put it into a private file and name that; the variable "+keyVariable+" takes the key itself", "there is an age key where the name of its file belongs")
		}
		if keys, err = readKeys(name); err != nil {
			return nil, err
		}
	}
	if text, _ := d.LookupEnv(keyVariable); text != "" {
		more, err := secret.ParseKeys([]byte(text))
		if err != nil {
			return nil, diag.Wrap("read the environment variable "+keyVariable, err, "")
		}
		keys = append(keys, more...)
	}
	stored, err := readKeys(d.Store.KeyFile(fleet))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	older, err := olderKeys(d, fleet, root)
	return unique(slices.Concat(keys, stored, older)), err
}

// readKeys reads a file with age keys. No error quotes it.
func readKeys(name string) (secret.Keys, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, diag.Wrap("read the age keys", err, "")
	}
	keys, err := secret.ParseKeys(content)
	return keys, diag.Wrap("read "+name, err, "")
}

// olderKeys are those that were filed by the fleet's name, before fleets had identities. Another fleet of that name may have put its own there, so
// the repo at root has to name a key. The file stays as it is: what is left in it is for others to ask for.
func olderKeys(d management.Deps, fleet state.Fleet, root string) (secret.Keys, error) {
	if fleet.ID == "" {
		return nil, nil
	}
	filed, err := readKeys(d.Store.KeyFile(state.Fleet{Name: fleet.Name}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	named, err := recipientsIn(root)
	if err != nil {
		return nil, err
	}
	return filed.For(named), nil
}

// recipientsIn are the public keys that the fleet repo at root is encrypted for: by its rules, and by what is encrypted there.
func recipientsIn(root string) ([]string, error) {
	rules, err := readRules(root)
	if err != nil {
		return nil, err
	}
	var all []string
	if rules != nil {
		all = rules.Recipients()
	}
	names, err := encryptedFiles(root)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := within.ReadFile(root, name, fleetrepo.MaxFile)
		if err != nil {
			return nil, err
		}
		if some, err := secret.Recipients(content); err == nil { // who needs what is no such file says so
			all = append(all, some...)
		}
	}
	return all, nil
}

// fleetOf is what the private files of the fleet are found by whose repo that is. One that has no identity in it yet may have got one that is in
// no commit, in the record of its management cluster.
func fleetOf(d management.Deps, repo *fleetrepo.Repo) (state.Fleet, error) {
	fleet := state.Fleet{Name: repo.Fleet.Metadata.Name}
	var err error
	if fleet.ID, err = fleetrepo.ReadIdentity(repo.Dir); err != nil || fleet.ID != "" {
		return fleet, err
	}
	records, err := d.Store.List()
	if err != nil {
		return fleet, err
	}
	self := ownership.NewRepo(repo.Dir, "", repo.Fleet)
	for i := range records {
		if self.Declares(records[i].Name) && self.Owns(&records[i]) {
			fleet.ID = cmp.Or(fleet.ID, records[i].FleetID)
		}
	}
	return fleet, nil
}

// stateFleet is what the private files of the session's fleet are found by.
func (s *session) stateFleet() state.Fleet {
	return state.Fleet{ID: s.identity(), Name: s.fleet.Metadata.Name}
}

// keepKeys adds keys to those that the state folder has by now.
func keepKeys(ctx context.Context, d management.Deps, fleet state.Fleet, keys secret.Keys) error {
	unlock, err := d.Store.LockKeys(ctx, fleet)
	if err != nil {
		return err
	}
	defer unlock()
	stored, err := readKeys(d.Store.KeyFile(fleet))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known := stored.Recipients()
	more := slices.DeleteFunc(slices.Clone(keys), func(k secret.Key) bool { return slices.Contains(known, k.Recipient()) })
	if len(more) == 0 {
		return nil
	}
	return d.Store.WriteKeys(fleet, append(more, stored...).File())
}

// clusterKeys are those that the Flux of a management cluster decrypts with; none where it has none.
func clusterKeys(ctx context.Context, client *kube.Client) (secret.Keys, error) {
	content, err := client.SecretValue(ctx, kube.Key{Namespace: flux.Namespace, Name: flux.DecryptionSecret}, flux.DecryptionKey)
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return secret.ParseKeys(content)
}

// readRules are the rules of the fleet repo at root, nil where it has none.
func readRules(root string) (*secret.Rules, error) {
	content, err := within.ReadFile(root, secret.RulesFile, fleetrepo.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diag.Wrap("read "+secret.RulesFile, err, "")
	}
	return secret.ParseRules(content)
}

// encryptedFiles are the files of the fleet repo that SOPS' suffix names, with forward slashes, sorted.
func encryptedFiles(root string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case !entry.Type().IsRegular() || entry.Name() == secret.RulesFile || !strings.HasSuffix(entry.Name(), secret.Suffix):
			return nil
		}
		relative, err := filepath.Rel(root, name)
		names = append(names, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for encrypted files: %w", err)
	}
	return names, nil
}

// checkKeys refuses, before anything is made, a fleet repo with secrets that nobody here can decrypt. A management cluster that is there
// already has the key: see keyring.
func (s *session) checkKeys(ctx context.Context) error {
	rules, err := readRules(s.opts.Dir)
	if err != nil || rules == nil {
		return err
	}
	keys, err := localKeys(s.deps, s.stateFleet(), s.opts.Dir, s.opts.AgeKeyFile)
	if err != nil || len(keys.For(rules.Recipients())) > 0 {
		return err
	}
	if s.host != nil {
		if st, err := s.host.State(ctx); err != nil || st == host.StateRunning || st == host.StateStopped {
			return err
		}
	}
	return s.refuseLostKey(s.opts.Dir, rules)
}

// refuseLostKey returns an error where the repo has secrets that init did not write itself: they could not be read any more.
func (s *session) refuseLostKey(root string, rules *secret.Rules) error {
	names, err := encryptedFiles(root)
	if err != nil {
		return err
	}
	written := map[string]bool{}
	for _, env := range s.fleet.Spec.Environments {
		written[s.layout().Credentials(env.Name)] = true
	}
	names = slices.DeleteFunc(names, func(name string) bool { return written[name] })
	if len(names) == 0 {
		return nil
	}
	return diag.Wrap("decrypt "+names[0], fmt.Errorf("%w: the fleet repo has %s encrypted for %s", secret.ErrNoKey, plain.Count(len(names), "file"),
		strings.Join(rules.Recipients(), ", ")), keyringHint)
}

// keyring is what the fleet repo is encrypted with, the key in use first, and the fleet that the keys were filed for.
type keyring struct {
	keys  secret.Keys
	fleet state.Fleet
}

// ensure finds the keys that the fleet repo at root is encrypted with, or makes the first one, and keeps them. They come from this
// machine or, where its state was lost, from the management cluster of client.
func (k *keyring) ensure(ctx context.Context, s *session, client *kube.Client, root string) (secret.Keys, error) {
	fleet := s.stateFleet()
	if k.keys != nil && k.fleet == fleet {
		return k.keys, nil
	}
	keys, err := localKeys(s.deps, fleet, root, s.opts.AgeKeyFile)
	if err != nil {
		return nil, err
	}
	keys = append(keys, k.keys...) // filed under an identity that another run was faster than
	rules, err := readRules(root)
	if err != nil {
		return nil, err
	}
	there, err := clusterKeys(ctx, client)
	if err != nil {
		return nil, err
	}
	keys = append(keys, there...)
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
	keys = unique(keys)
	if err := keepKeys(ctx, s.deps, fleet, keys); err != nil {
		return nil, err
	}
	k.keys, k.fleet = keys, fleet
	return keys, nil
}

func unique(keys secret.Keys) secret.Keys {
	seen := map[string]bool{}
	return slices.DeleteFunc(keys, func(k secret.Key) bool {
		known := seen[k.Recipient()]
		seen[k.Recipient()] = true
		return known
	})
}
