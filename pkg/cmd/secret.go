package cmd

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// encrypting is a part of the help of the secret commands.
const encrypting = `

The private age key comes from --age-key-file, from the environment variables of sops (SOPS_AGE_KEY_FILE, SOPS_AGE_KEY) or from the state
folder, where init has put it. It is never in Git, and no value is ever printed.`

func newSecretCmd(f *factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "secret",
		Short: "Encrypt, edit and rotate the secrets in the fleet repo",
		Long: `Encrypt, edit and rotate the secrets in the fleet repo. Secrets are files in the SOPS format, named *.sops.yaml and encrypted
with age; the sops program reads and writes them too. The management cluster's Flux decrypts them.`,
	}
	c.AddCommand(newSecretEncryptCmd(f), newSecretEditCmd(f), newSecretRotateCmd(f))
	return c
}

// secretInRepo returns the folder of the fleet repo, and the slash-separated path in it of the file that name refers to from the working
// folder.
func (f *factory) secretInRepo(name string) (dir, file string, err error) {
	repo, err := f.fleetRepo()
	if err != nil {
		return "", "", err
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", "", err
	}
	file, err = filepath.Rel(repo.Dir, path)
	if err != nil || !filepath.IsLocal(file) {
		return "", "", diag.Usage("name a file in the fleet repo, from the folder that you are in",
			"%s is not in the fleet repo %s", name, repo.Dir)
	}
	return repo.Dir, filepath.ToSlash(file), nil
}

// secretEncryptOptions are the flags of secret encrypt.
type secretEncryptOptions struct {
	changeFlags
	secret   fleetsecrets.New
	literals []string
	files    []string
	// dir is the folder of the fleet repo, and file the path of the file in it.
	dir, file string
	// made is the Secret that the flags describe; nil if they describe none.
	made *fleetsecrets.New
}

func newSecretEncryptCmd(f *factory) *cobra.Command {
	o := &secretEncryptOptions{}
	c := &cobra.Command{
		Use:   "encrypt FILE",
		Short: "Encrypt a file in place, or make an encrypted Secret",
		Long: `Encrypt a file of the fleet repo in place. With --from-file or --from-literal, make the file: a Secret with these values. The
kustomization.yaml by which Flux applies its folder gets its name. The rules in .sops.yaml say which fields are encrypted and for which
keys. The public key is enough.

Everybody who can list the processes of this machine sees a literal, and it stays in your shell's history: prefer a file, or - for standard
input.` + editingFlags,
		Example: `  fleetctl secret encrypt providers/docker/v1/clusters/dev/common/sync/registry.sops.yaml --commit
  pass show shop/db | fleetctl secret encrypt db.sops.yaml --namespace shop --from-file password=-
  fleetctl secret encrypt db.sops.yaml --name db --from-file=./tls.crt --from-file=./tls.key`,
		Args: cobra.ExactArgs(1),
		RunE: running(f, o, runSecretEncrypt),
	}
	fs := c.Flags()
	fs.StringVar(&o.secret.Name, "name", "", "name of a new Secret (default: the file's)")
	fs.StringVar(&o.secret.Namespace, "namespace", "flux-system", "namespace of a new Secret")
	fs.StringVar(&o.secret.Type, "type", "Opaque", "type of a new Secret")
	fs.StringArrayVar(&o.files, "from-file", nil,
		"[KEY=]FILE: a value of a new Secret, from a file or - for standard input; repeat for several")
	fs.StringArrayVar(&o.literals, "from-literal", nil, "KEY=VALUE: a value of a new Secret; repeat for several")
	o.changeFlags.add(c)
	return c
}

func (o *secretEncryptOptions) complete(f *factory, args ...string) (err error) {
	if o.dir, o.file, err = f.secretInRepo(args[0]); err != nil {
		return err
	}
	o.made, err = o.newSecret(f, o.file)
	return err
}

func runSecretEncrypt(ctx context.Context, f *factory, o *secretEncryptOptions) error {
	encrypt, err := fleetsecrets.Encrypt(fleetsecrets.Options{Dir: o.dir, File: o.file}, o.made)
	if err != nil {
		return err
	}
	return runChange(ctx, f, &o.changeFlags, change.Options{Edit: encrypt})
}

// newSecret returns the Secret that the flags describe; nil if they describe none.
func (o *secretEncryptOptions) newSecret(f *factory, file string) (*fleetsecrets.New, error) {
	if len(o.files)+len(o.literals) == 0 {
		return nil, nil
	}
	n := o.secret
	n.Data = map[string][]byte{}
	if n.Name == "" {
		n.Name, _, _ = strings.Cut(filepath.Base(file), ".")
	}
	put := func(key string, value []byte) error {
		if _, twice := n.Data[key]; twice || key == "" {
			return diag.Usage("give each value another key: --from-file KEY=FILE", "a key is given twice or empty: %q", key)
		}
		n.Data[key] = value
		return nil
	}
	for _, given := range o.files {
		key, from, ok := strings.Cut(given, "=")
		if !ok {
			key, from = filepath.Base(given), given
		}
		value, err := readInput(f, from, "a value of the Secret", "--from-file")
		if err != nil {
			return nil, err
		}
		if from == "-" {
			value = bytes.TrimSuffix(value, []byte("\n"))
		}
		if err := put(key, value); err != nil {
			return nil, err
		}
	}
	for _, given := range o.literals {
		key, value, ok := strings.Cut(given, "=")
		if !ok {
			return nil, diag.Usage("write --from-literal KEY=VALUE", "--from-literal has no key")
		}
		if err := put(key, []byte(value)); err != nil {
			return nil, err
		}
	}
	return &n, nil
}

// secretEditOptions are the flags of secret edit.
type secretEditOptions struct {
	changeFlags
	secret fleetsecrets.EditOptions
}

func newSecretEditCmd(f *factory) *cobra.Command {
	o := &secretEditOptions{}
	c := &cobra.Command{
		Use:   "edit FILE",
		Short: "Edit an encrypted file in your editor",
		Long: `Edit an encrypted file in the editor that VISUAL or EDITOR names (default: vi). The editor gets a private temporary file, in
memory if the system offers that. The temporary file is deleted when the editor ends. Values that you do not change stay byte for byte the
same in the encrypted file.

If the text cannot be encrypted, committed or pushed, it is kept in the state folder, encrypted for the same recipients, and the error names
the file. Go on with --from FILE, which deletes the kept file once the text is in the fleet repo. Each text that the editor saves is
kept in this way until the command ends. So a killed command loses nothing that was saved, and the next secret edit of the file names
what was kept.` + editingFlags + encrypting,
		Example: `  fleetctl secret edit providers/docker/v1/clusters/dev/common/sync/registry.sops.yaml --commit
  EDITOR="code --wait" fleetctl secret edit registry.sops.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: running(f, o, runSecretEdit),
	}
	addKeyFlag(c, &o.secret.AgeKeyFile)
	c.Flags().StringVar(&o.secret.From, "from", "", "begin with the text that a failed edit has kept in this file")
	o.add(c)
	return c
}

func (o *secretEditOptions) complete(f *factory, args ...string) (err error) {
	if o.secret.Dir, o.secret.File, err = f.secretInRepo(args[0]); err != nil {
		return err
	}
	_, err = f.changeOptions(&o.changeFlags) // check these flags before the user works in the editor
	return err
}

func runSecretEdit(ctx context.Context, f *factory, o *secretEditOptions) error {
	e := o.secret
	deps, err := f.deps()
	if err != nil {
		return err
	}
	e.Change = func(text []byte, problem error, saved func([]byte)) ([]byte, error) {
		if problem != nil {
			ui.Fail(f.streams, problem)
		}
		edited, err := editText(ctx, f, filepath.Base(e.File), text, saved)
		if err == nil && problem != nil && bytes.Equal(edited, text) {
			err = diag.Wrap("edit "+e.File, problem, "nothing was changed")
		}
		return edited, err
	}
	e.Write = func(edit func(*fleetrepo.Repo) (*fleetrepo.Edit, error)) error {
		return runChange(ctx, f, &o.changeFlags, change.Options{Edit: edit})
	}
	return fleetsecrets.Edit(ctx, deps, e)
}

func addKeyFlag(c *cobra.Command, keyFile *string) {
	c.Flags().StringVar(keyFile, "age-key-file", "",
		"file with the private age key of the fleet (default: SOPS_AGE_KEY_FILE, SOPS_AGE_KEY, or the state folder's)")
}

// secretRotateOptions are the flags of secret rotate.
type secretRotateOptions struct {
	changeFlags
	rotate fleetsecrets.RotateOptions
}

func (o *secretRotateOptions) complete(f *factory, args ...string) (err error) {
	if o.rotate.Dir, err = f.repoDir(); err != nil {
		return err
	}
	for _, name := range args {
		_, file, err := f.secretInRepo(name)
		if err != nil {
			return err
		}
		o.rotate.Files = append(o.rotate.Files, file)
	}
	o.rotate.DryRun = o.dryRun
	return nil
}

func runSecretRotate(ctx context.Context, f *factory, o *secretRotateOptions) error {
	deps, err := f.deps()
	if err != nil {
		return err
	}
	return fleetsecrets.Hold(ctx, deps, o.rotate.Dir, func() error {
		rotate, err := fleetsecrets.Rotate(ctx, deps, o.rotate)
		if err != nil {
			return err
		}
		return runChange(ctx, f, &o.changeFlags, change.Options{Edit: rotate})
	})
}

func newSecretRotateCmd(f *factory) *cobra.Command {
	o := &secretRotateOptions{}
	rotate := &o.rotate
	c := &cobra.Command{
		Use:   "rotate [FILE]...",
		Short: "Encrypt secrets again: with new data keys, or with a new age key",
		Long: `Encrypt files again: the named files, or all encrypted files. If one of them fails, none is changed. Each file gets a new data
key.

With --new-key, the files are encrypted for a new age key in place of the old one. The new key is kept in the state folder. The management
clusters of the fleet that this machine knows get it beside the old key, so that they can decrypt the revisions before and after the
change.` +
			editingFlags + encrypting,
		Example: `  fleetctl secret rotate --commit
  fleetctl secret rotate --new-key --push`,
		RunE: running(f, o, runSecretRotate),
	}
	addKeyFlag(c, &rotate.AgeKeyFile)
	c.Flags().BoolVar(&rotate.NewKey, "new-key", false, "make a new age key and encrypt all files for it")
	c.Flags().BoolVar(&rotate.Offline, "offline", false,
		"with --new-key, do not give the key to the management clusters: the next fleetctl init does")
	o.add(c)
	return c
}
