package gitrepo

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrConversion says that a file cannot be brought into a commit, or onto disk, as git would do it.
var ErrConversion = errors.New("cannot convert a file as git does")

// converter knows what git makes of a file's content between disk and commit. A file has three forms: in a commit, on disk, and for
// editing. The form for editing is the commit's, unless a filter makes it unreadable there.
type converter struct {
	repo     *Repo
	store    storage.Storer
	settings settings
	*attributeReader
}

func (r *Repo) converter(root *os.Root, all settings) (*converter, error) {
	reader, err := r.attributeReader(root, all)
	if err != nil {
		return nil, err
	}
	return &converter{repo: r, store: r.git.Storer, settings: all, attributeReader: reader}, nil
}

// of returns the attributes of a file.
func (c *converter) of(ctx context.Context, p string) (attributes, error) {
	err := c.look(ctx, p)
	return c.found[p], err
}

// filtered tells whether a filter that the user has set up is for a file.
func (c *converter) filtered(a attributes) bool {
	for _, kind := range []string{"clean", "smudge", "process"} {
		if c.settings["filter."+a.filter+"."+kind] != "" {
			return a.hasFilter()
		}
	}
	return false
}

func (a attributes) hasFilter() bool {
	return a.filter != unspecified && a.filter != unset && a.filter != isSet
}

// encoded tells whether a file stands on disk in another encoding than UTF-8.
func (a attributes) encoded() bool {
	switch strings.ToUpper(a.encoding) {
	case unspecified, strings.ToUpper(unset), strings.ToUpper(isSet), "UTF-8", "UTF8":
		return false
	}
	return true
}

// needsGit tells whether only git itself can convert a file.
func (c *converter) needsGit(a attributes) bool {
	return c.filtered(a) || a.encoded() || a.ident == isSet
}

// refuse is the error of a file that needs git where there is none.
func refuse(p string, a attributes) error {
	what := "ident"
	switch {
	case a.hasFilter():
		what = "filter=" + a.filter
	case a.encoded():
		what = "working-tree-encoding=" + a.encoding
	}
	return diag.Errorf("install git, which does it", "%w: %s has the attribute %s", ErrConversion, p, what)
}

// toCommit is content from disk as a commit has it. was is what is committed.
func (c *converter) toCommit(ctx context.Context, p string, content, was []byte) ([]byte, error) {
	a, err := c.of(ctx, p)
	if err != nil {
		return nil, err
	}
	if !c.needsGit(a) {
		return c.settings.endings(a).toLF(content, was), nil
	}
	if gitProgram() == "" {
		return nil, refuse(p, a)
	}
	args := []string{"hash-object", "-w", "--stdin", "--path", p}
	if a.text+a.crlf+a.eol == "" && c.settings.endings(a).auto() && hasCRLF(was) {
		args = append([]string{"-c", "core.autocrlf=false"}, args...) // what git does where it looks into the index
	}
	out, err := c.repo.runGit(ctx, nil, content, args...)
	if err != nil {
		return nil, diag.Errorf("`git add "+p+"` has to work", "%w: %s: %w", ErrConversion, p, err)
	}
	hash := plumbing.NewHash(strings.TrimSpace(string(out)))
	owe(c.store, hash)
	return readBlob(c.store, hash)
}

// toDisk is a file of a commit as it stands on disk.
func (c *converter) toDisk(ctx context.Context, p string, hash plumbing.Hash) ([]byte, error) {
	a, err := c.of(ctx, p)
	if err != nil {
		return nil, err
	}
	content, err := readBlob(c.store, hash)
	if err != nil || !c.needsGit(a) {
		return c.settings.endings(a).toDisk(content), err
	}
	if gitProgram() == "" {
		return nil, refuse(p, a)
	}
	out, err := c.repo.runGit(ctx, nil, nil, "cat-file", "--filters", "--path="+p, hash.String())
	if err != nil {
		return nil, diag.Errorf("`git checkout "+p+"` has to work", "%w: %s: %w", ErrConversion, p, err)
	}
	return out, nil
}

// expanded is a keyword that ident has filled in.
var expanded = regexp.MustCompile(`\$Id:[^$\n]*\$`)

// fromEdit is content that was edited as a commit has it. A file that was marked for a filter that is not set up is refused: git would
// commit in clear what is meant to be encrypted.
func (c *converter) fromEdit(ctx context.Context, p string, content, was []byte) ([]byte, error) {
	a, err := c.of(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case c.filtered(a) && a.encoded():
		return nil, diag.Errorf("commit the change yourself", "%w: %s has the attributes filter=%s and working-tree-encoding=%s", ErrConversion,
			p, a.filter, a.encoding)
	case c.filtered(a):
		return c.toCommit(ctx, p, content, was)
	case a.hasFilter():
		return nil, diag.Errorf("set it up as the repository asks for (`git-crypt unlock`, `git lfs install`), or commit the change yourself",
			"%w: %s has the attribute filter=%s, and git knows no such filter", ErrConversion, p, a.filter)
	case a.encoded() && gitProgram() == "":
		return nil, refuse(p, a)
	}
	content = c.settings.endings(a).toLF(content, was)
	if a.ident == isSet {
		content = expanded.ReplaceAll(content, []byte("$$Id$$"))
	}
	return content, nil
}

// toEdit is a file of a commit as it is edited.
func (c *converter) toEdit(ctx context.Context, p string, hash plumbing.Hash) ([]byte, error) {
	a, err := c.of(ctx, p)
	if err != nil {
		return nil, err
	}
	if c.filtered(a) && gitProgram() != "" {
		return c.toDisk(ctx, p, hash)
	}
	return readBlob(c.store, hash)
}

// readBlob is the content of a file in the object store; nil for the zero hash.
func readBlob(store storage.Storer, hash plumbing.Hash) ([]byte, error) {
	if hash.IsZero() {
		return nil, nil
	}
	blob, err := object.GetBlob(store, hash)
	if err != nil {
		return nil, err
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(reader)
	if content == nil {
		content = []byte{}
	}
	return content, errors.Join(err, reader.Close())
}
