package fleetsecrets

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
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
	// An error of Change ends the edit; text that it returns beside an error is kept. Change calls saved each time that the user has saved
	// the text, so that it outlives a kill of this process and of the editor.
	Change func(text []byte, problem error, saved func(text []byte)) ([]byte, error)
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
	if err := e.forget(); err != nil {
		return err
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
	kept        string // where the text is kept meanwhile; "" where it is not
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
	if err := e.tellOfOthers(); err != nil {
		return nil, err
	}
	if o.From == "" {
		return e, nil
	}
	kept, err := within.Given(o.From, 2*fleetrepo.MaxFile) // encrypted, the text is longer
	if err == nil {
		e.text, err = secret.OpenText(kept, e.keys)
	}
	return e, diag.Wrap("read "+o.From, err, "")
}

// tellOfOthers names what earlier edits of the file have left: those that failed, and those that were killed.
func (e *secretEdit) tellOfOthers() error {
	all, err := e.deps.Store.KeptEdits(e.fleet, e.File)
	if err != nil {
		return diag.Wrap("look for earlier edits of "+e.File, err, "")
	}
	for _, path := range all {
		if path != e.From {
			e.deps.Report.Warn("an edit of " + e.File + " that did not end is kept in " + path + ": `" +
				diag.ShellCommand("fleetctl", "secret", "edit", e.File, "--from", path) + "` goes on with it; remove it if you do not need it")
		}
	}
	return nil
}

// save keeps a text, encrypted for those who may read the file, in a private file of this edit.
func (e *secretEdit) save(text []byte) error {
	recipients, err := secret.Recipients(e.base)
	if err != nil {
		return err
	}
	content, err := secret.SealText(text, recipients)
	if err != nil {
		return err
	}
	if e.kept == "" {
		e.kept, err = e.deps.Store.KeepEdit(e.fleet, e.File, content)
		return err
	}
	return atomicfile.Write(e.kept, content, 0o600)
}

// forget removes what save has kept.
func (e *secretEdit) forget() error {
	if e.kept == "" {
		return nil
	}
	return diag.Wrap("remove what the edit was kept in", e.deps.Store.DropEdit(e.fleet, e.kept), "remove it by hand: "+e.kept)
}

func (e *secretEdit) run(ctx context.Context) error {
	var problem error
	saved := func(text []byte) {
		if !bytes.Equal(text, e.plain) && len(text) > 0 { // an editor may empty a file before it writes
			_ = e.save(text) // the end of the edit tells whether it can be kept
		}
	}
	for {
		edited, err := e.Change(e.text, problem, saved)
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
		return errors.Join(cause, e.forget())
	}
	where := func(text string) error {
		hints := []string{text}
		if hint := diag.Hint(cause); hint != "" {
			hints = []string{hint, text}
		}
		return &diag.Error{Err: cause, Hint: strings.Join(hints, "; ")}
	}
	if there, err := readSecret(e.repo, e.File); err == nil && e.sealed != nil && bytes.Equal(there, e.sealed) {
		return errors.Join(where("your edit is in "+e.File+", encrypted: it is not lost"), e.forget())
	}
	if e.From != "" {
		if kept, err := os.ReadFile(e.From); err == nil {
			if text, err := secret.OpenText(kept, e.keys); err == nil && bytes.Equal(text, e.text) {
				return errors.Join(where("your edit is still kept in "+e.From), e.forget())
			}
		}
	}
	err := e.save(e.text)
	if err != nil {
		return where("your edit is lost: it could not be kept: " + err.Error())
	}
	return where("your edit is kept, encrypted, in " + e.kept + ": `" +
		diag.ShellCommand("fleetctl", "secret", "edit", e.File, "--from", e.kept) + "` goes on with it; remove it if you do not need it")
}
