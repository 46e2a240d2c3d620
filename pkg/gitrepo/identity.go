package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// ErrNoAuthor says that git's configuration has no name, or no address, for the author of a commit.
var ErrNoAuthor = errors.New("git does not know who commits")

// Author is the author of a commit. The zero value stands for the author that git would use.
type Author struct{ Name, Email string }

// runnerAuthor is the author on a runner of a pipeline whose git has no name: there is nobody to ask for one.
var runnerAuthor = Author{Name: "fleetctl", Email: "fleetctl@localhost"}

// identity has the author and the committer of a commit, each with a time.
type identity struct{ author, committer object.Signature }

// CheckAuthor returns the error with which a commit in the repository of a folder would fail because it has no author. If the folder is no
// repository yet, it uses only the configuration that holds in all repositories.
func CheckAuthor(ctx context.Context, dir string) error {
	var all settings
	r, err := Open(dir)
	known := err == nil
	switch {
	case known:
		all, err = r.settings(ctx)
	case errors.Is(err, ErrNotARepository):
		all, err = userSettings(ctx)
	}
	if err != nil {
		return err
	}
	for _, role := range []string{"author", "committer"} {
		if _, err := all.who(role); err != nil && (known || !all.conditional()) {
			return err
		}
	}
	return nil
}

// conditional tells whether the configuration has conditional includes, so that other settings may hold in some repositories.
func (s settings) conditional() bool {
	for name := range s {
		if strings.HasPrefix(name, "includeif.") {
			return true
		}
	}
	return false
}

// identity returns the identity with the given author, or with the author that git would use.
func (r *Repo) identity(ctx context.Context, all settings, given Author) (identity, error) {
	if given != (Author{}) {
		by := object.Signature{Name: given.Name, Email: given.Email, When: time.Now()}
		return identity{by, by}, nil
	}
	author, err := r.signature(ctx, all, "author")
	if err != nil {
		return identity{}, err
	}
	committer, err := r.signature(ctx, all, "committer")
	return identity{author, committer}, err
}

// signature returns the author, or the committer, with the time that git would use.
func (r *Repo) signature(ctx context.Context, all settings, role string) (object.Signature, error) {
	by, err := all.who(role)
	if err != nil {
		return object.Signature{}, err
	}
	when := time.Now()
	if date := os.Getenv("GIT_" + strings.ToUpper(role) + "_DATE"); date != "" {
		if when, err = r.date(ctx, role, date); err != nil {
			return object.Signature{}, err
		}
	}
	return object.Signature{Name: by.Name, Email: by.Email, When: when}, nil
}

// who returns the author, or the committer. If no address is given, it returns an error. git would make an address from the name of the
// machine, and warn of it.
func (s settings) who(role string) (Author, error) {
	variable := "GIT_" + strings.ToUpper(role)
	name, named := os.LookupEnv(variable + "_NAME") // as with git, an empty value counts
	if !named {
		name = cmp.Or(s[role+".name"], s["user.name"])
	}
	by := Author{Name: name, Email: cmp.Or(os.Getenv(variable+"_EMAIL"), s[role+".email"], s["user.email"])}
	if by.Email == "" && !s.on("user.useconfigonly") {
		by.Email = os.Getenv("EMAIL")
	}
	by = Author{Name: withoutCrud(by.Name), Email: withoutCrud(by.Email)}
	if by.Name != "" && by.Email != "" {
		return by, nil
	}
	if onRunner() {
		return Author{Name: cmp.Or(by.Name, runnerAuthor.Name), Email: cmp.Or(by.Email, runnerAuthor.Email)}, nil
	}
	missing, hint := "address", `git config --global user.email "you@example.com"`
	if by.Name == "" {
		missing, hint = "name", `git config --global user.name "Your Name"; `+hint
	}
	return Author{}, diag.Errorf(hint, "%w: there is no %s for the %s of a commit", ErrNoAuthor, missing, role)
}

// onRunner tells whether this runs in a pipeline: GitHub, GitLab, Gitea and most others set CI.
func onRunner() bool {
	ci := os.Getenv("CI")
	return ci != "" && ci != "0" && !strings.EqualFold(ci, "false")
}

// withoutCrud removes the characters that git removes from names and addresses.
func withoutCrud(text string) string {
	text = strings.TrimFunc(text, func(c rune) bool { return c <= ' ' || strings.ContainsRune(`.,:;<>"\'`, c) })
	return strings.NewReplacer("\n", "", "<", "", ">", "").Replace(text)
}

// rawDate matches a date in the form that commits have: seconds since 1970, and a time zone.
var rawDate = regexp.MustCompile(`^@?([0-9]+)(?: ([+-])([0-9]{2})([0-9]{2}))?$`)

// dateLayouts are the layouts of dates that git documents for its environment variables.
var dateLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 Z07:00", "2006-01-02T15:04:05 -0700",
	"Mon, 2 Jan 2006 15:04:05 -0700", "Mon Jan 2 15:04:05 2006 -0700", "2 Jan 2006 15:04:05 -0700",
}

// localLayouts are the layouts without a time zone.
var localLayouts = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05"}

// date parses the value of GIT_AUTHOR_DATE or GIT_COMMITTER_DATE. If git is installed, git parses it.
func (r *Repo) date(ctx context.Context, role, text string) (time.Time, error) {
	variable := "GIT_" + strings.ToUpper(role)
	if gitProgram() != "" {
		out, err := r.runGit(ctx, []string{variable + "_NAME=x", variable + "_EMAIL=x"}, nil, "var", variable+"_IDENT")
		if err != nil {
			return time.Time{}, diag.Errorf("write it like 2026-01-31T12:00:00+01:00", "%s_DATE: %w", variable, err)
		}
		_, text, _ = strings.Cut(strings.TrimSpace(string(out)), "> ")
	}
	if m := rawDate.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		return readRawDate(m)
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	for _, layout := range localLayouts {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, diag.Errorf("write it like 2026-01-31T12:00:00+01:00", "%s_DATE: %q is no date", variable, text)
}

func readRawDate(m []string) (time.Time, error) {
	seconds, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read a date: %w", err)
	}
	hours, _ := strconv.Atoi(m[3])
	minutes, _ := strconv.Atoi(m[4])
	offset := hours*3600 + minutes*60
	if m[2] == "-" {
		offset = -offset
	}
	return time.Unix(seconds, 0).In(time.FixedZone("", offset)), nil
}
