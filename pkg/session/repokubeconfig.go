package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// refuseCommands refuses a fleet repo with a kubeconfig, of a management cluster or a standby, that runs a command (as kubectl does for a
// user's credentials) or reads a file outside of the repo. A token would go to the server that the kubeconfig names. A kubeconfig outside
// of the repo belongs to the user.
func (s *Session) refuseCommands() error {
	for _, m := range s.Fleet.Spec.ManagementClusters {
		if err := s.refuseCommandsOf("management cluster "+m.Name, m.Host.Existing); err != nil {
			return err
		}
	}
	for _, b := range s.Fleet.Spec.Standbys {
		if err := s.refuseCommandsOf("standby "+b.Name, b.Host.Existing); err != nil {
			return err
		}
	}
	return nil
}

// refuseCommandsOf is refuseCommands for one kubeconfig. A nil host has none.
func (s *Session) refuseCommandsOf(whose string, existing *v1alpha1.ExistingHost) error {
	if existing == nil || existing.Kubeconfig == "" {
		return nil
	}
	named := existing.Kubeconfig
	file := s.inRepo(named)
	if !isOfRepo(s.Opts.Dir, named) {
		return nil
	}
	content, err := within.Named(file, within.MostNamed)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is said where it is read
	}
	if err != nil {
		return diag.Wrap("read the kubeconfig of "+whose, err, "")
	}
	reach, err := kube.ReachOf(content)
	if err != nil {
		return nil //nolint:nilerr // and so is what is no kubeconfig
	}
	reach.Files = slices.DeleteFunc(reach.Files, func(name string) bool {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(file), name)
		}
		return isFileOf(s.Opts.Dir, name)
	})
	if text := reach.Text(); text != "" {
		return diag.Errorf("look at the file, then add --run-commands",
			"%s: its kubeconfig %s is part of the fleet repo and %s", whose, named, text)
	}
	return nil
}

// isOfRepo tells whether the fleet repo in dir may have brought the named file. A relative path is always one of the repo, whatever links
// it follows. An absolute path is one if the path itself or its target lies in a working tree of the repository. The answer is also true
// where isOfRepo cannot tell.
func isOfRepo(dir, named string) bool {
	if !filepath.IsAbs(named) {
		return true
	}
	work, err := gitrepo.WorkTreeOf(dir)
	if err != nil {
		return true
	}
	if isBelow(work.Top, named) {
		return true
	}
	resolved, err := filepath.EvalSymlinks(named)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	for _, name := range []string{named, resolved} {
		other, err := gitrepo.WorkTreeOf(filepath.Dir(name))
		if err != nil || other.Common == work.Common || isBelow(work.Top, name) {
			return true
		}
	}
	return false
}

// isFileOf tells whether a name is that of a regular file of the working tree that contains dir, after all links are followed.
func isFileOf(dir, name string) bool {
	work, err := gitrepo.WorkTreeOf(dir)
	if err != nil {
		return false
	}
	resolved, err := filepath.EvalSymlinks(name)
	if err != nil {
		return false
	}
	info, err := os.Lstat(resolved)
	return err == nil && info.Mode().IsRegular() && info.Size() <= within.MostNamed && isBelow(work.Top, resolved)
}

// isBelow tells whether a path lies in a folder. It follows no links.
func isBelow(dir, name string) bool {
	path, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(path)
}
