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
	store := filesystem.NewStorageWithOptions(files, cache.NewObjectLRUDefault(), filesystem.Options{
		AlternatesFS: everywhere, LargeObjectThreshold: objectLimit(), // go-git reads a larger object only for who asks for its content
	})
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
	opened.Storer = &bounded{Storage: store}
	return opened, files, nil
}

// checkAlternates returns an error if the repository borrows objects in a way that go-git cannot follow: by a relative path, or from a
// repository that itself borrows objects.
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
			return diag.Errorf("copy the objects into the repository: git repack -a -d, then remove "+diag.ShellWord(file),
				"open the git repository %s: it borrows objects from %q, where only git finds all of them", commonDir, name)
		}
		if info, err := os.Stat(name); err != nil || !info.IsDir() {
			return diag.Errorf("bring that folder back, or clone the repository anew",
				"open the git repository %s: it borrows objects from %q, which is no folder", commonDir, name)
		}
	}
	return nil
}

// OpenFor is Open for the operation op. If dir is no repository, the error has the given hint. Every other error keeps its own hint.
func OpenFor(op, dir, hint string) (*Repo, error) {
	r, err := Open(dir)
	if err != nil && !errors.Is(err, ErrNotARepository) {
		hint = ""
	}
	return r, diag.Wrap(op, err, hint)
}

// harmless are the extensions of a repository that do not change the files which this package reads and writes. `git sparse-checkout` sets
// worktreeconfig, which adds a configuration for each working tree; settings reads it.
var harmless = []string{"worktreeconfig", "preciousobjects", "relativeworktrees"}

// tolerant is a store that hides the harmless extensions from go-git, which would refuse to open the repository.
type tolerant struct{ *filesystem.Storage }

// Config returns the configuration of the store without the harmless extensions. Do not write it back.
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
