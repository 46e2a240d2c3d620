package fleetsecrets

import (
	"bytes"
	"context"
	"os"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/manifest"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// EditOptions name an encrypted file, and say how to edit it.
type EditOptions struct {
	Options
	// From is the file that a failed edit was kept in. Empty: the edit begins with the file in the fleet repo.
	From string
	// Change gets the clear text and returns the edited text. It is called again, with the problem, until the edited text can be encrypted.
	// An error of Change ends the edit; text that it returns beside an error is kept.
	Change func(text []byte, problem error) ([]byte, error)
	// Write makes the edit of the fleet repo.
	Write func(edit func(r *fleetrepo.Repo) (*fleetrepo.Edit, error)) error
}

// Edit decrypts a file, lets o.Change edit its text, and writes the encrypted result with o.Write. If any step fails, the edited text is
// kept in the state folder, encrypted for the same recipients, and the hint of the error names the file.
func Edit(ctx context.Context, deps management.Deps, o EditOptions) error {
	e, err := openSecret(deps, o)
	if err != nil {
		return err
	}
	if err := e.run(ctx); err != nil {
		return e.keep(err)
	}
	if o.From != "" {
		return diag.Wrap("remove what an earlier edit was kept in", deps.Store.DropEdit(e.fleet, o.From),
			"remove it by hand: its content is in the fleet repo")
	}
	return nil
}

// secretEdit is a file that is being edited.
type secretEdit struct {
	EditOptions
	deps  management.Deps
	repo  *fleetrepo.Repo
	fleet state.Fleet
	keys  secret.Keys

	base, plain []byte // the file, and what it says
	text        []byte // what became of that so far
	sealed      []byte // encrypted; nil until it could be
}

func openSecret(deps management.Deps, o EditOptions) (*secretEdit, error) {
	repo, err := fleetrepo.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	e := &secretEdit{EditOptions: o, deps: deps, repo: repo}
	if e.base, err = readSecret(repo, o.File); err != nil {
		return nil, err
	}
	if e.fleet, err = FleetOf(deps, repo); err != nil {
		return nil, err
	}
	if e.keys, err = LocalKeys(deps, e.fleet, repo.Dir, o.AgeKeyFile); err != nil {
		return nil, err
	}
	if e.plain, err = secret.Decrypt(e.base, e.keys); err != nil {
		return nil, diag.Wrap(o.File, err, "")
	}
	e.text = e.plain
	if o.From == "" {
		return e, nil
	}
	kept, err := within.Given(o.From, 2*fleetrepo.MaxFile) // encrypted, the text is longer
	if err == nil {
		e.text, err = secret.OpenText(kept, e.keys)
	}
	return e, diag.Wrap("read "+o.From, err, "")
}

func (e *secretEdit) run(ctx context.Context) error {
	var problem error
	for {
		edited, err := e.Change(e.text, problem)
		if edited != nil {
			e.text = edited
		}
		if err != nil {
			return err
		}
		if bytes.Equal(e.text, e.plain) {
			e.sealed = e.base
			break
		}
		if e.sealed, problem = secret.Update(e.base, e.text, e.keys); problem == nil {
			break
		}
	}
	return Hold(ctx, e.deps, e.Dir, func() error { return e.Write(e.edit) })
}

func (e *secretEdit) edit(r *fleetrepo.Repo) (*fleetrepo.Edit, error) {
	there, err := readSecret(r, e.File)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(there, e.base) && !bytes.Equal(there, e.sealed) {
		return nil, diag.Errorf("run it again", "%s was changed by others meanwhile", e.File)
	}
	return privateEdit("Change "+e.File, manifest.File{Path: e.File, Content: e.sealed}), nil
}

// keep saves the edited text, unless it is already in the repo, and adds the path to the error.
func (e *secretEdit) keep(cause error) error {
	if bytes.Equal(e.text, e.plain) {
		return cause
	}
	where := func(text string) error {
		hints := []string{text}
		if hint := diag.Hint(cause); hint != "" {
			hints = []string{hint, text}
		}
		return &diag.Error{Err: cause, Hint: strings.Join(hints, "; ")}
	}
	if there, err := readSecret(e.repo, e.File); err == nil && e.sealed != nil && bytes.Equal(there, e.sealed) {
		return where("your edit is in " + e.File + ", encrypted: it is not lost")
	}
	if e.From != "" {
		if kept, err := os.ReadFile(e.From); err == nil {
			if text, err := secret.OpenText(kept, e.keys); err == nil && bytes.Equal(text, e.text) {
				return where("your edit is still kept in " + e.From)
			}
		}
	}
	recipients, err := secret.Recipients(e.base)
	var path string
	if err == nil {
		var content []byte
		if content, err = secret.SealText(e.text, recipients); err == nil {
			path, err = e.deps.Store.KeepEdit(e.fleet, e.File, content)
		}
	}
	if err != nil {
		return where("your edit is lost: it could not be kept: " + err.Error())
	}
	return where("your edit is kept, encrypted, in " + path + ": `fleetctl secret edit " + e.File + " --from " + path +
		"` goes on with it; remove it if you do not need it")
}
