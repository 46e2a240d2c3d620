// Package conversion converts the content of files between a commit and the disk, as git does: line ends, filters, encodings, and keywords.
// The attributes of the file and git's configuration decide the conversion. For filters and encodings, the package calls git.
package conversion

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrConversion says that a file cannot be brought into a commit, or onto disk, as git would do it.
var ErrConversion = errors.New("cannot convert a file as git does")

// Settings are git's configuration. If a variable is set several times, the last value counts.
type Settings map[string]string

// On tells whether a variable is true, as git reads it.
func (s Settings) On(name string) bool {
	switch strings.ToLower(s[name]) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// Blobs keeps the content of committed files.
type Blobs interface {
	// Read returns the content of a file; nil for the zero hash.
	Read(hash plumbing.Hash) ([]byte, error)
	// Wrote tells the store that git has written an object into it.
	Wrote(hash plumbing.Hash)
}

// Place is a working tree, with git's configuration for it.
type Place struct {
	Root     *os.Root
	Settings Settings
	// Global are the files with attributes outside of the repository, and Info is the repository's own outside of the working tree.
	Global []string
	Info   string
	Blobs  Blobs
	// Git runs git in the repository; nil if git is not installed.
	Git func(ctx context.Context, input []byte, args ...string) ([]byte, error)
	// Untrusted returns the error for a repository in which git refuses to work.
	Untrusted func(error) error
}

type place = Place

// Converter converts the content of files as git does. A file has three forms: in a commit, on disk, and for editing. The form for editing
// is that of the commit, unless a filter makes the commit's form unreadable.
type Converter struct{ *reader }

// New returns the converter of a working tree.
func New(p Place) (*Converter, error) {
	r, err := newReader(p)
	if err != nil {
		return nil, err
	}
	return &Converter{r}, nil
}

// Found returns the attributes of a file that Look has found.
func (c *Converter) Found(p string) Attributes { return c.found[p] }

// MayConvert tells whether any file may have another form on disk than in a commit.
func (c *Converter) MayConvert() bool { return c.Settings.writesCRLF() || c.anywhere }

// of returns the attributes of a file.
func (c *Converter) of(ctx context.Context, p string) (Attributes, error) {
	err := c.Look(ctx, p)
	return c.found[p], err
}

// Filtered tells whether a file has a filter that git's configuration defines.
func (c *Converter) Filtered(a Attributes) bool {
	for _, kind := range []string{"clean", "smudge", "process"} {
		if c.Settings["filter."+a.filter+"."+kind] != "" {
			return a.hasFilter()
		}
	}
	return false
}

func (a Attributes) hasFilter() bool {
	return a.filter != unspecified && a.filter != unset && a.filter != isSet
}

// encoded tells whether a file has another encoding than UTF-8 on disk.
func (a Attributes) encoded() bool {
	switch strings.ToUpper(a.encoding) {
	case unspecified, strings.ToUpper(unset), strings.ToUpper(isSet), "UTF-8", "UTF8":
		return false
	}
	return true
}

// NeedsGit tells whether only git itself can convert a file.
func (c *Converter) NeedsGit(a Attributes) bool {
	return c.Filtered(a) || a.encoded() || a.ident == isSet
}

// refuse returns the error for a file that only git can convert, on a machine without git.
func refuse(p string, a Attributes) error {
	what := "ident"
	switch {
	case a.hasFilter():
		what = "filter=" + a.filter
	case a.encoded():
		what = "working-tree-encoding=" + a.encoding
	}
	return diag.Errorf("install git, which does it", "%w: %s has the attribute %s", ErrConversion, p, what)
}

// ToCommit converts content from disk to the form of a commit. was is the content in the last commit.
func (c *Converter) ToCommit(ctx context.Context, p string, content, was []byte) ([]byte, error) {
	a, err := c.of(ctx, p)
	if err != nil {
		return nil, err
	}
	if !c.NeedsGit(a) {
		return c.Settings.endings(a).toLF(content, was), nil
	}
	if c.Git == nil {
		return nil, refuse(p, a)
	}
	args := []string{"hash-object", "-w", "--stdin", "--path", p}
	if a.text+a.crlf+a.eol == "" && c.Settings.endings(a).auto() && hasCRLF(was) {
		args = append([]string{"-c", "core.autocrlf=false"}, args...) // git does so for a file that has CRLF in the index
	}
	out, err := c.Git(ctx, content, args...)
	if err != nil {
		return nil, diag.Errorf("`"+diag.ShellCommand("git", "add", "--", p)+"` has to work", "%w: %s: %w", ErrConversion, p, err)
	}
	hash := plumbing.NewHash(strings.TrimSpace(string(out)))
	c.Blobs.Wrote(hash)
	return c.Blobs.Read(hash)
}

// ToDisk returns the content that a file of a commit has on disk.
func (c *Converter) ToDisk(ctx context.Context, p string, hash plumbing.Hash) ([]byte, error) {
	a, err := c.of(ctx, p)
	if err != nil {
		return nil, err
	}
	content, err := c.Blobs.Read(hash)
	if err != nil || !c.NeedsGit(a) {
		return c.Settings.endings(a).toDisk(content), err
	}
	if c.Git == nil {
		return nil, refuse(p, a)
	}
	out, err := c.Git(ctx, nil, "cat-file", "--filters", "--path="+p, hash.String())
	if err != nil {
		return nil, diag.Errorf("`"+diag.ShellCommand("git", "checkout", "--", p)+"` has to work", "%w: %s: %w", ErrConversion, p, err)
	}
	return out, nil
}

// expanded matches a keyword that the attribute ident has filled in.
var expanded = regexp.MustCompile(`\$Id:[^$\n]*\$`)

// FromEdit converts edited content to the form of a commit. It returns an error if the file has a filter that git's configuration does not
// define: git would commit the content unencrypted.
func (c *Converter) FromEdit(ctx context.Context, p string, content, was []byte) ([]byte, error) {
	a, err := c.of(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case c.Filtered(a) && a.encoded():
		return nil, diag.Errorf("commit the change yourself", "%w: %s has the attributes filter=%s and working-tree-encoding=%s", ErrConversion,
			p, a.filter, a.encoding)
	case c.Filtered(a):
		return c.ToCommit(ctx, p, content, was)
	case a.hasFilter():
		return nil, diag.Errorf("set it up as the repository asks for (`git-crypt unlock`, `git lfs install`), or commit the change yourself",
			"%w: %s has the attribute filter=%s, and git knows no such filter", ErrConversion, p, a.filter)
	case a.encoded() && c.Git == nil:
		return nil, refuse(p, a)
	}
	content = c.Settings.endings(a).toLF(content, was)
	if a.ident == isSet {
		content = expanded.ReplaceAll(content, []byte("$$Id$$"))
	}
	return content, nil
}

// ToEdit returns the content of a file of a commit in the form for editing.
func (c *Converter) ToEdit(ctx context.Context, p string, hash plumbing.Hash) ([]byte, error) {
	a, err := c.of(ctx, p)
	if err != nil {
		return nil, err
	}
	if c.Filtered(a) && c.Git != nil {
		return c.ToDisk(ctx, p, hash)
	}
	return c.Blobs.Read(hash)
}
