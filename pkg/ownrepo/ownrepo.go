// Package ownrepo makes and opens the fleet repo of its own that a management cluster has beside the one that declares it: a clone, its
// first commit, and the secrets that come along, encrypted anew.
package ownrepo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/change"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/fleetsecrets"
	"github.com/fleetctl/fleetctl/pkg/forge"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/secret"
	"github.com/fleetctl/fleetctl/pkg/session"
	"github.com/fleetctl/fleetctl/pkg/state"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// Options of OpenOwnRepo.
type Options struct {
	// Dir is the folder of the fleet repo that declares the management cluster Cluster with a repository of its own.
	Dir, Cluster string
	// At is the folder that gets a clone of that; empty: one in the state folder.
	At string
	// Git are what reaches the repository of its own, and may push there. Those of the fleet repo in Dir are never tried there.
	Git change.Credentials
	// AgeKeyFile has the private key of the fleet repo in Dir; empty: sops' environment variables and the state folder.
	AgeKeyFile string
	NoVerify   bool
	// Create makes the repository, private and empty, if it does not exist. The token of Git needs the right to make repositories.
	Create bool
}

// Repo is the repository of its own of a management cluster, on this machine.
type Repo struct {
	Dir string
	// Made says that this run has pushed the first commit of a fleet there; Commit is where the branch is.
	Made   bool
	Commit string
	// Reseal encrypts what comes from the fleet repo that declares it for the keys of this one.
	Reseal fleetrepo.Reseal
}

// cloneFolder is the folder of the clone in the state folder of a management cluster.
const cloneFolder = "repo"

// Open clones the repository of its own of a management cluster, or brings the clone up to date. One that holds no fleet yet gets what the
// fleet repo declares for it: a fleet.yaml, its folder, what that names, an identity, and an age key of its own. The repository itself,
// which may be empty, has to exist unless o.Create makes it. Errors are those of fleetrepo's OwnRepo and of gitrepo's Clone and Sync.
func Open(ctx context.Context, deps management.Deps, o Options) (*Repo, error) {
	from, err := fleetrepo.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	m, err := from.Fleet.ManagementCluster(o.Cluster)
	if err != nil {
		return nil, err
	}
	if m.Repository == nil {
		return nil, diag.Usage("declare one: repository in "+v1alpha1.FileName, "management cluster %s has no repository of its own", m.Name)
	}
	fleet := &v1alpha1.Fleet{
		Metadata: v1alpha1.Metadata{Name: cmp.Or(m.Repository.Fleet, m.Name)},
		Spec:     v1alpha1.FleetSpec{Git: m.Repository.Git},
	}
	v1alpha1.SetDefaults(fleet, session.Defaults())
	git := fleet.Spec.Git
	auth, err := change.AuthFor(fleetrepo.New(from.Dir, fleet), o.Git)
	if err != nil {
		return nil, err
	}
	if o.Create {
		if err := makeRepository(ctx, git, auth, o.Git.Token); err != nil {
			return nil, err
		}
	}
	own := &Repo{Dir: cmp.Or(o.At, deps.Store.Cluster(m.Name).Path(cloneFolder))}
	clone, err := openClone(ctx, own.Dir, git, auth)
	if err != nil {
		return nil, diag.Wrap("open the fleet repo of "+m.Name, err,
			"make an empty repository at "+git.URL+", or add --own-create-repo; and give a token that may push to it: --own-git-token-file")
	}
	clone.NoVerify = o.NoVerify
	source := origin{deps: deps, repo: from, ageKeyFile: o.AgeKeyFile}
	first := &firstCommit{origin: source, name: m.Name, fleet: fleet.Metadata.Name}
	message := fmt.Sprintf("Begin the fleet repo of the management cluster %s\n\nMade of %s by fleetctl bootstrap.\n", m.Name,
		cmp.Or(from.Fleet.Spec.Git.URL, "its parent's"))
	synced, err := clone.Sync(ctx, auth, func(root string) ([]gitrepo.Change, error) { return first.changes(ctx, root) },
		message, gitrepo.Author{})
	if err != nil {
		return nil, diag.Wrap("bring the fleet repo of "+m.Name+" up to date", err, "")
	}
	own.Made, own.Commit = synced.Made, synced.Commit
	rules, err := fleetsecrets.Rules(own.Dir)
	if err != nil {
		return nil, err
	}
	to, err := fleetrepo.ReadIdentity(own.Dir)
	if err != nil {
		return nil, err
	}
	own.Reseal = source.resealer(rules, to)
	return own, nil
}

// makeRepository makes the repository at the URL, if it does not exist.
func makeRepository(ctx context.Context, git v1alpha1.Git, auth gitrepo.Auth, token string) error {
	remote, err := git.ParseURL()
	if err != nil {
		return err
	}
	_, err = forge.EnsureRepository(ctx, forge.Options{Type: git.ForgeType(), Remote: remote, Token: token, CA: auth.CA})
	return err
}

// openClone is the clone that is there, or a new one.
func openClone(ctx context.Context, dir string, git v1alpha1.Git, auth gitrepo.Auth) (*gitrepo.Repo, error) {
	clone, err := gitrepo.Open(dir)
	if errors.Is(err, gitrepo.ErrNotARepository) {
		return gitrepo.Clone(ctx, git.URL, auth, git.Branch, dir)
	}
	if err != nil {
		return nil, err
	}
	_, err = clone.EnsureRemote(git.URL)
	return clone, err
}

// keysOf are the age keys of a fleet repo that this machine knows.
func keysOf(deps management.Deps, repo *fleetrepo.Repo, file string) (secret.Keys, error) {
	fleet, err := fleetsecrets.FleetOf(deps, repo)
	if err != nil {
		return nil, err
	}
	return fleetsecrets.LocalKeys(deps, fleet, repo.Dir, file)
}

// firstCommit is what a repository without a fleet begins with. It is made once, however often others push meanwhile.
type firstCommit struct {
	origin      origin
	name, fleet string
	made        []gitrepo.Change
}

func (f *firstCommit) changes(ctx context.Context, root string) ([]gitrepo.Change, error) {
	if within.Exists(root, v1alpha1.FileName) {
		return nil, nil
	}
	if f.made != nil {
		return f.made, nil
	}
	key, err := secret.NewKey()
	if err != nil {
		return nil, err
	}
	id := string(uuid.NewUUID())
	// Who loses the key after the commit has lost what it encrypts.
	if err := fleetsecrets.KeepKeys(ctx, f.origin.deps, state.Fleet{ID: id, Name: f.fleet}, secret.Keys{key}); err != nil {
		return nil, err
	}
	rulesFile := secret.NewRules(secret.Keys{key}.Recipients())
	rules, err := secret.ParseRules(rulesFile)
	if err != nil {
		return nil, err
	}
	files, err := f.origin.repo.OwnRepo(f.name, f.origin.resealer(rules, id))
	if err != nil {
		return nil, err
	}
	f.made = []gitrepo.Change{
		{Path: secret.RulesFile, Content: rulesFile},
		{Path: fleetrepo.IdentityFile, Content: fleetrepo.IdentityContent(id)},
	}
	for _, file := range files {
		f.made = append(f.made, gitrepo.Change{Path: file.Path, Content: file.Content})
	}
	return f.made, nil
}

// origin is the fleet repo that something comes from. Its identity and its keys are read when they are needed, and not before: where its
// management cluster is made in the same run, that one's init makes them.
type origin struct {
	deps       management.Deps
	repo       *fleetrepo.Repo
	ageKeyFile string
}

// resealer encrypts by the rules what is encrypted for keys of the origin, and has the tag that tells a cloud whose a cluster is name the
// fleet with the identity to. It gives one answer for one file: another try must not make another file of it.
func (from origin) resealer(rules *secret.Rules, to string) fleetrepo.Reseal {
	type file struct{ name, content string }
	done := map[file][]byte{}
	return func(name string, content []byte) ([]byte, error) {
		if _, err := secret.Recipients(content); err != nil {
			if encryptedOtherwise(content) {
				return nil, diag.Wrap("encrypt "+name+" anew", err, "decrypt it with the sops program, and run `fleetctl secret encrypt` on it")
			}
			id, err := fleetrepo.ReadIdentity(from.repo.Dir)
			if err != nil || id == "" || to == "" {
				return content, err
			}
			return bytes.ReplaceAll(content, []byte(id), []byte(to)), nil
		}
		before := file{name, string(content)}
		if there, is := done[before]; is {
			return there, nil
		}
		if rules == nil {
			return nil, diag.Errorf("`fleetctl init` writes it", "%s is encrypted, and the repository that it goes to has no %s",
				name, secret.RulesFile)
		}
		rule, err := rules.For(name)
		if err != nil {
			return nil, err
		}
		keys, err := keysOf(from.deps, from.repo, from.ageKeyFile)
		if err != nil {
			return nil, err
		}
		// Whom it is for is all that the other repository says. Which fields are encrypted stays as the file has it: by other rules, some would
		// be in clear.
		sealed, err := secret.Rotate(content, keys, rule.Recipients)
		if err != nil {
			hint := ""
			if errors.Is(err, secret.ErrNoKey) {
				hint = fleetsecrets.KeyHint
			}
			return nil, diag.Wrap("encrypt "+name+" anew", err, hint)
		}
		done[before] = sealed
		return sealed, nil
	}
}

// sopsMark is what SOPS writes of itself into each format of file that it encrypts.
var sopsMark = regexp.MustCompile(`(?m)^sops:|^sops_|^\[sops\]|"sops"`)

// encryptedOtherwise tells whether SOPS has encrypted a file in a way that is not read here, such as for another kind of keys.
func encryptedOtherwise(content []byte) bool {
	return bytes.Contains(content, []byte("ENC[AES256_GCM,")) && sopsMark.Match(content)
}

// BeginAnew is the hint where err is that nobody here has the age key of the repository of its own of a management cluster, clone: an
// earlier run made the key on another machine, and may have been lost with it. As long as the fleet repo in dir has all that the first
// commit there was made of, that can be made again; else "".
func BeginAnew(err error, dir, cluster, clone string) string {
	if !errors.Is(err, secret.ErrNoKey) {
		return ""
	}
	from, openErr := fleetrepo.Open(dir)
	if openErr != nil {
		return ""
	}
	m, openErr := from.Fleet.ManagementCluster(cluster)
	if openErr != nil || m.Repository == nil || !within.Exists(from.Dir, m.Layout().Owned()) {
		return ""
	}
	return "run it where the first run was, which has the age key; or, if that machine is gone and nobody has worked there since: make " +
		m.Repository.Git.URL +
		" anew as an empty repository, remove the clone in " + clone +
		", and run the same command again: the fleet repo here still has all that it began with"
}
