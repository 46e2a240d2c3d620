package gitrepo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5"
	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/cache"
	formatconfig "github.com/go-git/go-git/v5/plumbing/format/config"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// openOnDisk opens the repository of the working tree dir. Its HEAD and index are in gitDir. commonDir has the files that all working trees
// of the repository share.
func openOnDisk(dir, gitDir, commonDir string) (*git.Repository, *durable, error) {
	if err := refuseEndless(dir, gitDir, commonDir); err != nil {
		return nil, nil, err
	}
	var shared billy.Filesystem
	if commonDir != gitDir {
		shared = openFolder(commonDir)
	}
	files := &durable{Filesystem: dotgit.NewRepositoryFilesystem(openFolder(gitDir), shared), dir: commonDir, pending: map[string]bool{}}
	if err := checkAlternates(commonDir); err != nil {
		return nil, nil, err
	}
	everywhere := openFolder(filepath.VolumeName(commonDir) + string(filepath.Separator))
	store := filesystem.NewStorageWithOptions(files, cache.NewObjectLRUDefault(), filesystem.Options{AlternatesFS: everywhere})
	opened, err := git.Open(tolerant{store}, openFolder(dir))
	switch {
	case errors.Is(err, git.ErrRepositoryNotExists):
		return nil, nil, diag.Errorf("", "%w: %s", ErrNotARepository, dir)
	case errors.Is(err, git.ErrUnknownExtension), errors.Is(err, git.ErrUnsupportedExtensionRepositoryFormatVersion):
		return nil, nil, diag.Errorf("clone it anew, whole, with SHA-1 and without reftable: git clone URL",
			"open the git repository %s: %w", dir, err)
	case err != nil:
		return nil, nil, fmt.Errorf("open the git repository %s: %w", dir, err)
	}
	opened.Storer = store
	return opened, files, nil
}

// checkAlternates refuses a repository that borrows objects of others in a way that go-git does not follow: by a relative path, or of one
// that borrows them itself.
func checkAlternates(commonDir string) error {
	file := filepath.Join(commonDir, "objects", "info", "alternates")
	content, err := readIfThere(file)
	if err != nil {
		return fmt.Errorf("open the git repository %s: %w", commonDir, err)
	}
	for line := range strings.Lines(string(content)) {
		name := strings.TrimSuffix(line, "\n")
		_, err := os.Lstat(filepath.Join(name, "info", "alternates"))
		if !filepath.IsAbs(name) || !errors.Is(err, fs.ErrNotExist) {
			return diag.Errorf("have the objects in the repository itself: git repack -a -d, then remove "+diag.ShellWord(file),
				"open the git repository %s: it has objects in %q, where only git itself finds all of them", commonDir, name)
		}
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			return diag.Errorf("bring that folder back, or clone the repository anew",
				"open the git repository %s: it has objects in %q, which is no folder", commonDir, name)
		}
	}
	return nil
}

// OpenFor is Open for what op names. Where dir is no repository, the error has the hint; every other error keeps its own.
func OpenFor(op, dir, hint string) (*Repo, error) {
	r, err := Open(dir)
	if err != nil && !errors.Is(err, ErrNotARepository) {
		hint = ""
	}
	return r, diag.Wrap(op, err, hint)
}

// harmless are the extensions of a repository that say nothing about what is read and written here. `git sparse-checkout` sets the first of
// them; git itself, or settings, reads the configuration of a working tree that it stands for.
var harmless = []string{"worktreeconfig", "preciousobjects", "relativeworktrees"}

// tolerant is a store for go-git to look at before it opens a repository: without harmless extensions, which it refuses.
type tolerant struct{ *filesystem.Storage }

// Config is that of the store. What is returned is not to be written.
func (t tolerant) Config() (*config.Config, error) {
	cfg, err := t.Storage.Config()
	if err != nil || !cfg.Raw.HasSection("extensions") {
		return cfg, err
	}
	section := cfg.Raw.Section("extensions")
	section.Options = slices.DeleteFunc(section.Options, func(o *formatconfig.Option) bool {
		return slices.Contains(harmless, strings.ToLower(o.Key))
	})
	return cfg, nil
}
