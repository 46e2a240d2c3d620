package fleetsecrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Options name a file of the fleet repo, and the key that opens it.
type Options struct {
	// Dir is any folder in the fleet repo.
	Dir string
	// File is its path in the fleet repo, with forward slashes.
	File string
	// AgeKeyFile has the private key; empty: sops' environment variables and the state folder.
	AgeKeyFile string
}

// New is a Kubernetes Secret that Encrypt makes.
type New struct {
	Name, Namespace, Type string
	Data                  map[string][]byte
}

// content is its YAML, in clear.
func (n New) content() ([]byte, error) {
	object := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": n.Type,
		"metadata": map[string]any{"name": n.Name, "namespace": n.Namespace}, "data": n.Data,
	}
	content, err := yaml.Marshal(object)
	if err != nil {
		return nil, errors.New("the Secret cannot be encoded")
	}
	return content, nil
}

// Encrypt returns the edit that encrypts a file in place. If n is not nil, the edit makes the file from n, and names it in the
// kustomization.yaml by which Flux applies its folder, if there is one. The public key in the repo is enough.
func Encrypt(o Options, n *New) (func(r *fleetrepo.Repo) (*fleetrepo.Edit, error), error) {
	repo, err := fleetrepo.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	var plain []byte
	if n != nil {
		plain, err = n.content()
	} else {
		plain, err = readSecret(repo, o.File)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(repo.Dir, filepath.FromSlash(o.File))); n != nil && err == nil {
		return nil, diag.Usage("`fleetctl secret edit` changes it", "%s exists already", o.File)
	}
	// It is encrypted once: another try on top of others' commits must not make another file of it.
	rule, err := ruleFor(repo, o.File)
	if err != nil {
		return nil, err
	}
	sealed, err := secret.Encrypt(plain, rule)
	if err != nil {
		return nil, diag.Wrap(o.File, err, "")
	}
	return func(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
		e := privateEdit("Encrypt "+o.File, manifest.File{Path: o.File, Content: sealed})
		if n != nil {
			return e, r.EnlistSecret(e, o.File)
		}
		e.Replaces = []string{o.File} // in clear, as it was read: whether that was committed or not, it must not stay
		return e, nil
	}, nil
}

// privateEdit returns an edit whose difference is not shown: the removed text may be in clear.
func privateEdit(summary string, files ...manifest.File) *fleetrepo.Edit {
	e := &fleetrepo.Edit{Summary: summary, Private: true}
	e.Changes.Write(files...)
	return e
}

// RotateOptions say what `fleetctl secret rotate` encrypts anew.
type RotateOptions struct {
	Dir        string
	AgeKeyFile string
	// Files of the fleet repo; empty: all that are encrypted.
	Files []string
	// NewKey makes a new age key: all files are encrypted for it in the place of the one before.
	NewKey bool
	// Offline leaves it to init to give the new key to the management clusters.
	Offline bool
	// DryRun makes no key and gives none away.
	DryRun bool
}

// Rotate returns the edit that encrypts files with new data keys and, if o asks for it, for a new age key. If one file fails, none changes.
// Before Rotate returns, a new age key is kept on this machine and added to the keys of the fleet's management clusters, so that their Flux
// decrypts the revisions before and after the change.
func Rotate(ctx context.Context, deps management.Deps, o RotateOptions) (func(r *fleetrepo.Repo) (*fleetrepo.Edit, error), error) {
	repo, err := fleetrepo.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	fleet, err := FleetOf(deps, repo)
	if err != nil {
		return nil, err
	}
	keys, err := LocalKeys(deps, fleet, repo.Dir, o.AgeKeyFile)
	if err != nil {
		return nil, err
	}
	rules, err := Rules(repo.Dir)
	if err != nil {
		return nil, err
	}
	if rules == nil {
		return nil, noRules()
	}
	rotation := &rotation{files: o.Files, keys: keys}
	if !o.NewKey {
		return rotation.edit, rotation.try(repo)
	}
	if len(o.Files) > 0 {
		return nil, diag.Usage("leave the files out: a new key is for all of them", "--new-key and files were given")
	}
	key, err := secret.NewKey()
	if err != nil {
		return nil, err
	}
	rotation.replaced, rotation.next = keys.For(rules.Recipients()).Recipients(), key
	if err := rotation.try(repo); err != nil {
		return nil, err
	}
	if o.DryRun {
		return rotation.edit, nil
	}
	keys = append(secret.Keys{key}, keys...)
	if err := KeepKeys(ctx, deps, fleet, keys); err != nil {
		return nil, err
	}
	if !o.Offline {
		if err := giveKeys(ctx, deps, repo, keys); err != nil {
			return nil, err
		}
	}
	return rotation.edit, nil
}

// Hold calls do while no other command of this user encrypts files of the same fleet anew. So the keys, rules and files that do reads are
// still the same when do writes. dir is any folder in the fleet repo.
func Hold(ctx context.Context, d management.Deps, dir string, do func() error) error {
	repo, err := fleetrepo.Open(dir)
	if err != nil {
		return err
	}
	fleet, err := FleetOf(d, repo)
	if err != nil {
		return err
	}
	unlock, err := d.Store.LockSecrets(ctx, fleet)
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// giveKeys adds keys to the decryption keys of the fleet's management clusters. Keys that only a management cluster has stay there.
func giveKeys(ctx context.Context, d management.Deps, repo *fleetrepo.Repo, keys secret.Keys) error {
	id, err := fleetrepo.ReadIdentity(repo.Dir)
	if err != nil {
		return err
	}
	self := ownership.NewRepo(repo.Dir, id, repo.Fleet)
	records, err := d.Store.ListOf(self.Declares)
	if err != nil {
		return err
	}
	given := 0
	for i, r := range records {
		if !self.Owns(&r) {
			continue // another fleet's, which may have the same name
		}
		client, err := (&management.Target{Name: r.Name, Cluster: d.Store.Cluster(r.Name), Record: &records[i]}).Client(ctx)
		if err == nil {
			err = flux.NewSystem(client).AddKeys(ctx, WithKeys(keys))
		}
		if err != nil {
			return diag.Wrap("give the new key to the management cluster "+r.Name, err,
				"correct that first, or give --offline and run `fleetctl init` before the change is pushed")
		}
		given++
	}
	if given == 0 {
		return diag.Errorf("run it where `fleetctl init` was run; or give --offline, and run `fleetctl init` before the change is pushed",
			"no management cluster of the fleet %s is known on this machine", self.Name)
	}
	return nil
}

// WithKeys returns a change of a key file's content that puts keys before the ones in the file.
func WithKeys(keys secret.Keys) func(content []byte) ([]byte, error) {
	return func(content []byte) ([]byte, error) {
		var there secret.Keys
		if len(content) > 0 {
			var err error
			if there, err = secret.ParseKeys(content); err != nil {
				return nil, err
			}
		}
		return Unique(slices.Concat(keys, there)).File(), nil
	}
}

// rotation encrypts files anew.
type rotation struct {
	files    []string // empty: all
	keys     secret.Keys
	replaced []string // recipients that next takes the place of; empty: none
	next     secret.Key
}

func (o *rotation) try(r *fleetrepo.Repo) error {
	_, err := o.edit(r)
	return err
}

func (o *rotation) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	names := o.files
	if len(names) == 0 {
		var err error
		if names, err = EncryptedFiles(r.Dir); err != nil {
			return nil, err
		}
	}
	e := privateEdit(fmt.Sprintf("Encrypt %s again", plain.Count(len(names), "file")))
	for _, name := range names {
		content, err := readSecret(r, name)
		if err != nil {
			return nil, err
		}
		recipients, err := secret.Recipients(content)
		if err != nil {
			return nil, diag.Wrap(name, err, "")
		}
		sealed, err := secret.Rotate(content, o.keys, o.recipients(recipients))
		if err != nil {
			return nil, diag.Wrap(name, err, "")
		}
		e.Changes.Write(manifest.File{Path: name, Content: sealed})
	}
	if len(o.replaced) == 0 {
		return e, nil
	}
	e.Summary = fmt.Sprintf("Encrypt %s with a new age key", plain.Count(len(names), "file"))
	e.Notes = append(e.Notes, "The old key stays on the management cluster and on this machine: earlier revisions need it.",
		"A holder of the old key can still read the old values in Git: change the passwords too if the key has leaked.")
	rules, err := within.ReadFile(r.Dir, secret.RulesFile, fleetrepo.MaxFile)
	if err != nil {
		return nil, err
	}
	if rules, err = secret.Replace(rules, o.replaced, []string{o.next.Recipient()}); err != nil {
		return nil, err
	}
	e.Changes.Write(manifest.File{Path: secret.RulesFile, Content: rules})
	return e, nil
}

// recipients of a file, with the new key in the place of the old one.
func (o *rotation) recipients(old []string) []string {
	if len(o.replaced) == 0 {
		return old
	}
	kept := slices.DeleteFunc(slices.Clone(old), func(r string) bool { return slices.Contains(o.replaced, r) })
	return append(kept, o.next.Recipient())
}

// ruleFor returns the repo's rule for encrypting a file.
func ruleFor(r *fleetrepo.Repo, file string) (secret.Rule, error) {
	rules, err := Rules(r.Dir)
	if err != nil {
		return secret.Rule{}, err
	}
	if rules == nil {
		return secret.Rule{}, noRules()
	}
	return rules.For(file)
}

func noRules() error {
	return diag.Errorf("`fleetctl init` writes it; with --scaffold it does so without a management cluster",
		"there is no %s in the fleet repo", secret.RulesFile)
}

// readSecret reads a file of the repo. A missing file is a usage error that names files near it.
func readSecret(r *fleetrepo.Repo, name string) ([]byte, error) {
	if _, err := manifest.SafeJoin(r.Dir, name); err != nil {
		return nil, diag.Usage("name a file in the fleet repo", "%v", err)
	}
	content, err := within.ReadFile(r.Dir, name, fleetrepo.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		names, _ := EncryptedFiles(r.Dir) // for the hint alone
		hint := "`fleetctl secret encrypt FILE --from-file KEY=-` makes one from standard input"
		if nearest := diag.Nearest(name, names); nearest != "" {
			hint = "did you mean " + nearest + "?"
		} else if len(names) > 0 && len(names) <= 20 {
			hint = "there are: " + strings.Join(names, ", ")
		}
		return nil, diag.Usage(hint, "there is no file %s", name)
	}
	return content, diag.Wrap("read "+name, err, "")
}
