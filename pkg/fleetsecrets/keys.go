// Package fleetsecrets encrypts, edits and rotates the encrypted files of a fleet repo. It also finds and stores the age keys for these
// files: on this machine, and on the management clusters of the fleet.
package fleetsecrets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// The environment variables that the sops program reads its age keys from.
const (
	keyFileVariable = "SOPS_AGE_KEY_FILE"
	keyVariable     = "SOPS_AGE_KEY"
)

// KeyHint says where a person finds a key.
const KeyHint = "give the file with it: --age-key-file or " + keyFileVariable +
	"; it is in the state folder of the machine that made the fleet, and in the Secret " +
	flux.Namespace + "/" + flux.DecryptionSecret + " of its management cluster"

// KeyFile is the file with age keys that a flag names, or else the environment; "" if neither does.
func KeyFile(d management.Deps, file string) string {
	fromVariable, _ := d.LookupEnv(keyFileVariable)
	return cmp.Or(file, fromVariable)
}

// LocalKeys returns the age keys of a fleet that this machine knows: from the given file (empty: from none), from sops' environment
// variables, and from the state folder. root is the folder of the fleet repo. No key at all is no error.
func LocalKeys(d management.Deps, fleet state.Fleet, root, file string) (keys secret.Keys, err error) {
	if name := KeyFile(d, file); name != "" {
		if strings.Contains(name, "AGE-SECRET-KEY-") { // no error may quote it
			return nil, diag.Usage("put it into a private file and name that; the variable "+keyVariable+" takes the key itself",
				"there is an age key where the name of its file belongs")
		}
		if keys, err = readKeys(name, within.Given, ""); err != nil {
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
	stored, err := storedKeys(d, fleet)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	older, err := olderKeys(d, fleet, root)
	return Unique(slices.Concat(keys, stored, older)), err
}

// storedKeys are the fleet's keys in the state folder, if their file belongs to this user.
func storedKeys(d management.Deps, fleet state.Fleet) (secret.Keys, error) {
	file := d.Store.KeyFile(fleet)
	if err := state.CheckOwner(file); err != nil {
		return nil, err
	}
	return readStored(file)
}

// readStored reads a file of the state folder. If the file exists but cannot be read, readStored fails, so that nobody replaces the file.
func readStored(file string) (secret.Keys, error) {
	return readKeys(file, within.Named,
		"put it back from a backup; or move it away, and give the key with --age-key-file, or have `fleetctl connect` bring it from the "+
			"management cluster")
}

// maxKeys is far above what the keys of a fleet need, in bytes.
const maxKeys = 1 << 20

// readKeys reads a file with age keys. No error quotes the file's content.
func readKeys(name string, read func(name string, most int64) ([]byte, error), hint string) (secret.Keys, error) {
	content, err := read(name, maxKeys)
	if err != nil {
		return nil, diag.Wrap("read the age keys", err, hint)
	}
	keys, err := secret.ParseKeys(content)
	return keys, diag.Wrap("read "+name, err, hint)
}

// olderKeys returns keys that an older fleetctl filed by the fleet's name, before fleets had identities. Another fleet of the same name may
// have keys in the same file, so only keys that the repo at root names are returned. The file stays: the other fleet may need the rest.
func olderKeys(d management.Deps, fleet state.Fleet, root string) (secret.Keys, error) {
	if fleet.ID == "" {
		return nil, nil
	}
	filed, err := readStored(d.Store.KeyFile(state.Fleet{Name: fleet.Name}))
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

// recipientsIn returns the public keys that the fleet repo at root is encrypted for, by its rules and by its encrypted files.
func recipientsIn(root string) ([]string, error) {
	rules, err := Rules(root)
	if err != nil {
		return nil, err
	}
	var all []string
	if rules != nil {
		all = rules.Recipients()
	}
	names, err := EncryptedFiles(root)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := within.ReadFile(root, name, fleetrepo.MaxFile)
		if err != nil {
			return nil, err
		}
		// A file that is not encrypted names no key; the command that needs it reports it.
		if some, err := secret.Recipients(content); err == nil {
			all = append(all, some...)
		}
	}
	return all, nil
}

// FleetOf returns the identity and name by which the state folder files the private files of repo's fleet. If the repo has no identity yet,
// the record of the fleet's management cluster may have one that is not committed.
func FleetOf(d management.Deps, repo *fleetrepo.Repo) (state.Fleet, error) {
	fleet := state.Fleet{Name: repo.Fleet.Metadata.Name}
	var err error
	if fleet.ID, err = fleetrepo.ReadIdentity(repo.Dir); err != nil || fleet.ID != "" {
		return fleet, err
	}
	self := ownership.NewRepo(repo.Dir, "", repo.Fleet)
	records, err := d.Store.ListOf(self.Declares)
	if err != nil {
		return fleet, err
	}
	for i := range records {
		if self.Declares(records[i].Name) && self.Owns(&records[i]) {
			fleet.ID = cmp.Or(fleet.ID, records[i].FleetID)
		}
	}
	return fleet, nil
}

// KeepKeys adds keys to the keys of the fleet in the state folder. It waits for other commands that do the same, and loses no key of
// theirs.
func KeepKeys(ctx context.Context, d management.Deps, fleet state.Fleet, keys secret.Keys) error {
	unlock, err := d.Store.LockKeys(ctx, fleet)
	if err != nil {
		return err
	}
	defer unlock()
	stored, err := storedKeys(d, fleet)
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

// ClusterKeys returns the keys with which the Flux of a management cluster decrypts. A cluster without keys is no error.
func ClusterKeys(ctx context.Context, client *kube.Client) (secret.Keys, error) {
	content, err := client.SecretValue(ctx, kube.Key{Namespace: flux.Namespace, Name: flux.DecryptionSecret}, flux.DecryptionKey)
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return secret.ParseKeys(content)
}

// Rules reads the encryption rules of the fleet repo at root. It returns nil if the repo has none.
func Rules(root string) (*secret.Rules, error) {
	content, err := within.ReadFile(root, secret.RulesFile, fleetrepo.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diag.Wrap("read "+secret.RulesFile, err, "")
	}
	return secret.ParseRules(content)
}

// EncryptedFiles lists the files of the fleet repo at root that end in SOPS' suffix: paths with forward slashes, sorted.
func EncryptedFiles(root string) ([]string, error) {
	var names []string
	root, err := filepath.EvalSymlinks(root) // WalkDir looks at a link, and not behind it
	if err != nil {
		return nil, fmt.Errorf("look for encrypted files: %w", err)
	}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
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

// Unique returns keys without repetitions, in their order. It overwrites keys.
func Unique(keys secret.Keys) secret.Keys {
	seen := map[string]bool{}
	return slices.DeleteFunc(keys, func(k secret.Key) bool {
		known := seen[k.Recipient()]
		seen[k.Recipient()] = true
		return known
	})
}
