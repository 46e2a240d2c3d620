package gitrepo

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// ErrPushElsewhere says that git would not push the checked out branch to the branch that it follows, but elsewhere or not at all.
var ErrPushElsewhere = errors.New("git would not push there")

// tracking describes the branch at a remote that the checked out branch follows.
type tracking struct {
	address                        // from which git fetches
	to      address                // to which git pushes
	also    int                    // number of further addresses to which git pushes
	remote  string                 // name of the remote
	push    string                 // name of the remote to which git pushes
	head    plumbing.ReferenceName // the local branch; "" if none is checked out
	branch  string                 // name of the branch at the remote
	ref     plumbing.ReferenceName // the remote-tracking branch
	mode    string                 // git's setting push.default
}

// local returns the name that git gives the pre-push hook for the pushed commit.
func (t *tracking) local(commit plumbing.Hash) string {
	if t.head == "" {
		return commit.String()
	}
	return t.head.String()
}

func (r *Repo) tracking() (*tracking, error) {
	name, _, err := r.head()
	if err != nil {
		return nil, err
	}
	config, err := r.readConfig()
	if err != nil {
		return nil, err
	}
	t := &tracking{remote: origin, head: name, branch: name.Short(), mode: config.settings["push.default"]}
	own := "branch." + name.Short() + "."
	if named := config.settings[own+"remote"]; named != "" && named != "." {
		t.remote = named
		if merge := plumbing.ReferenceName(config.settings[own+"merge"]); merge.IsBranch() {
			t.branch = merge.Short()
		}
	} else if all := config.remotes(); len(all) == 1 {
		t.remote = all[0]
	}
	t.push = cmp.Or(config.settings[own+"pushremote"], config.settings["remote.pushdefault"], t.remote)
	t.ref = plumbing.NewRemoteReferenceName(t.remote, t.branch)
	urls := config.addressesIn("remote." + t.remote + ".url")
	if len(urls) > 0 {
		t.address = config.rewritten(urls[0], "insteadof")
	}
	if pushes := config.pushes(t.remote, urls); len(pushes) > 0 {
		t.to, t.also = pushes[0], len(pushes)-1
	}
	return t, nil
}

// addressesIn returns the addresses in a variable of git's configuration. An empty value removes the values before it.
func (f *configFiles) addressesIn(variable string) []string {
	all := f.lists[variable]
	for i := slices.Index(all, ""); i >= 0; i = slices.Index(all, "") {
		all = all[i+1:]
	}
	return all
}

// pushes returns the addresses to which git pushes: the addresses in remote.*.pushurl; else the addresses that the rules pushInsteadOf make
// of the URLs; else all URLs.
func (f *configFiles) pushes(remote string, urls []string) []address {
	var all, ruled []address
	for _, url := range f.addressesIn("remote." + remote + ".pushurl") {
		all = append(all, f.rewritten(url, "insteadof"))
	}
	if len(all) > 0 {
		return all
	}
	for _, url := range urls {
		all = append(all, f.rewritten(url, "insteadof"))
		if to := f.rewritten(url, "pushinsteadof"); to != (address{url: url}) {
			ruled = append(ruled, to)
		}
	}
	if len(ruled) > 0 {
		return ruled
	}
	return all
}

// remotes returns the names of the remotes, sorted.
func (f *configFiles) remotes() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.lists)) {
		if rest, ok := strings.CutPrefix(name, "remote."); ok && strings.HasSuffix(rest, ".url") {
			names = append(names, strings.TrimSuffix(rest, ".url"))
		}
	}
	return names
}

// address is the address of a remote after git has applied its rules to the written one.
type address struct {
	url string
	// user and password come from the user's rule insteadOf. They are used if the caller gives no others.
	user, password string
}

// rewritten returns the address after git's rules, such as url.*.insteadOf. kinds are the kinds of rules. The first kind with a matching
// rule applies; of its rules, the one with the longest matching prefix.
func (f *configFiles) rewritten(url string, kinds ...string) address {
	for _, kind := range kinds {
		var base, longest string
		for name, prefixes := range f.lists {
			to, ok := strings.CutPrefix(name, "url.")
			if !ok || !strings.HasSuffix(to, "."+kind) {
				continue
			}
			for _, prefix := range prefixes {
				if strings.HasPrefix(url, prefix) && len(prefix) > len(longest) {
					base, longest = strings.TrimSuffix(to, "."+kind), prefix
				}
			}
		}
		if longest != "" {
			return bare(base + url[len(longest):])
		}
	}
	return address{url: url}
}

// bare returns an address with its user and password in separate fields, and not in the URL.
func bare(url string) address {
	ep, err := transport.NewEndpoint(url)
	if err != nil || ep.Password == "" {
		return address{url: url}
	}
	a := address{user: ep.User, password: ep.Password}
	if ep.Password = ""; Protocol(ep.Protocol) != ProtocolSSH {
		ep.User = ""
	}
	a.url = ep.String()
	return a
}

// open returns the remote at an address. It does not connect.
func (a address) open(auth Auth) (*remote, error) {
	if auth.Token == "" && a.password != "" {
		auth.Username, auth.Token = a.user, a.password
	}
	return newRemote(a.url, auth)
}

// openNamed is newRemote for a URL that does not come from a repository's configuration. It applies the user's rules for addresses too.
func openNamed(url string, auth Auth) (*remote, error) {
	config, err := (&Repo{}).readConfig()
	if err != nil {
		return nil, err
	}
	return config.rewritten(url, "insteadof").open(auth)
}

// refused adds to an error about a URL the name of the remote, and a hint that changes the URL. The URL comes from git's configuration, so
// the user may not know where it is.
func (t *tracking) refused(err error) error {
	if !errors.Is(err, ErrURL) {
		return err
	}
	hint := "`git remote set-url " + diag.ShellWord(t.remote) + " URL` changes it"
	if more := diag.Hint(err); more != "" {
		hint = more + "; " + hint
	}
	return diag.Errorf(hint, "the remote %s: %w", t.remote, err)
}

// missing returns the error for a branch that follows no remote.
func (t *tracking) missing(dir string, remotes []string) error {
	if len(remotes) == 0 {
		return diag.Errorf("git remote add origin URL", "%w: %s has no remote", ErrURL, dir)
	}
	return diag.Errorf("say which: git branch --set-upstream-to "+diag.ShellWord(remotes[0]+"/"+t.branch),
		"the branch %s of %s follows none of the remotes %s",
		t.head.Short(), dir, strings.Join(remotes, ", "))
}

// PushCommand is the command that pushes the checked out branch and a tag with git, both or neither.
func (r *Repo) PushCommand(tag string) (string, error) {
	t, err := r.tracking()
	if err != nil {
		return "", err
	}
	branch := t.head.Short()
	if branch != t.branch {
		branch += ":" + t.branch
	}
	return diag.ShellCommand("git", "push", "--atomic", t.push, branch, tag), nil
}

// checkAddresses returns an error if git pushes to several addresses of the remote: one of them could accept a change that another one
// refuses.
func (t *tracking) checkAddresses() error {
	if t.also == 0 {
		return nil
	}
	return diag.Errorf("give --commit and push with git, or remove all addresses but one: "+
		diag.ShellCommand("git", "config", "--get-regexp", `^remote\.`+regexp.QuoteMeta(t.remote)+`\.(push)?url$`)+" lists them",
		"%w alone: git pushes to %s of the remote %s, the first of which is %s", ErrPushElsewhere,
		plain.Count(t.also+1, "address"), t.remote, t.to.url)
}

// checkPush returns an error if git, with the settings of this repository, would push elsewhere or would not push.
func (t *tracking) checkPush() error {
	local := t.head.Short()
	if err := t.checkAddresses(); err != nil {
		return err
	}
	switch {
	case t.push != t.remote:
		return diag.Errorf("give --pr; or, to push to the branch that it follows: "+
			diag.ShellCommand("git", "config", "branch."+local+".pushRemote", t.remote),
			"%w: %s follows %s, and git pushes it to %s (branch.%s.pushRemote or remote.pushDefault)", ErrPushElsewhere, local,
			t.remote, t.push, local)
	case t.head != "" && local != t.branch && t.mode != "upstream" && t.mode != "tracking":
		return diag.Errorf("give --pr, or `"+diag.ShellCommand("git", "switch", t.branch)+
			"`; with `git config push.default upstream`, git and fleetctl push it",
			"%w: the branch %s follows %s of %s, which has another name", ErrPushElsewhere, local, t.branch, t.remote)
	}
	return nil
}

// remote returns the remote branch that the checked out branch follows, and the remote to which it is pushed.
func (r *Repo) remote(auth Auth) (*tracking, *remote, error) {
	t, err := r.tracking()
	if err != nil {
		return nil, nil, err
	}
	if t.url == "" {
		return nil, nil, r.noRemote(t)
	}
	remote, err := t.open(auth)
	return t, remote, t.refused(err)
}

// noRemote returns the error for a branch that follows no remote. The error names the remotes of the repository.
func (r *Repo) noRemote(t *tracking) error {
	config, err := r.readConfig()
	if err != nil {
		return err
	}
	return t.missing(r.dir, config.remotes())
}

// open returns the remote for fetches and pushes. It does not connect.
func (t *tracking) open(auth Auth) (*remote, error) {
	if t.to == t.address {
		return t.address.open(auth)
	}
	to, err := t.to.open(auth)
	if err != nil {
		return nil, fmt.Errorf("the address that git pushes to: %w", err)
	}
	from, err := t.address.open(auth)
	if err == nil && !sameorigin.Same(serverOf(from.endpoint), serverOf(to.endpoint)) {
		auth.Token = "" // the token is for the address of pushes
		from, err = t.address.open(auth)
	}
	if err == nil {
		from.pushes = to
	}
	return from, err
}
