package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// logMove writes a move of the checked out branch into git's reflogs of HEAD and of the branch. `git reflog` and `git reset HEAD@{1}` use
// them, and would skip commits without a line for each move. go-git writes no reflogs. If a log cannot be written, the move still counts.
func (r *Repo) logMove(ctx context.Context, all settings, branch plumbing.ReferenceName, from, to plumbing.Hash, isCommit bool) {
	what := "pull: Fast-forward"
	by := object.Signature{Name: runnerAuthor.Name, Email: runnerAuthor.Email}
	if c, err := object.GetCommit(r.git.Storer, to); err == nil && isCommit {
		subject, _, _ := strings.Cut(c.Message, "\n")
		what, by = "commit: "+subject, c.Committer
		if from.IsZero() {
			what = "commit (initial): " + subject
		}
	} else if who, err := r.signature(ctx, all, "committer"); err == nil {
		by = who
	}
	line := fmt.Sprintf("%s %s %s <%s> %d %s\t%s\n", from, to, by.Name, by.Email, by.When.Unix(), by.When.Format("-0700"), what)
	keeps := all.keepsLogs()
	_ = appendLog(r.gitDir, "logs/HEAD", line, keeps)
	_ = appendLog(r.commonDir(), "logs/"+branch.String(), line, keeps)
}

// keepsLogs tells whether git creates missing reflogs: it does in a repository with a working tree, unless core.logAllRefUpdates is false.
func (s settings) keepsLogs() bool {
	said, ok := s["core.logallrefupdates"]
	return !ok || s.on("core.logallrefupdates") || strings.EqualFold(said, "always")
}

// appendLog appends a line to a reflog in a folder of git's. It creates a missing log only if begin is set.
func appendLog(gitDir, name, line string, begin bool) (err error) {
	root, err := os.OpenRoot(gitDir)
	if err != nil {
		return err
	}
	defer root.Close()
	name = filepath.FromSlash(name)
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && begin:
		err = root.MkdirAll(filepath.Dir(name), 0o777)
	case err == nil && !info.Mode().IsRegular(): // opening a pipe would wait for a reader
		err = fs.ErrInvalid
	}
	if err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}
