package converge

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/gitserve"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/management"
	"github.com/fleetctl/fleetctl/pkg/ownership"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/session"
)

// A Flux that is pointed elsewhere deletes what it applied before and finds no more: its Kustomizations, and what those applied, Clusters
// with all their machines among it. So init goes on where Flux follows nothing, what it is to follow, or what this same fleet moved away
// from, and refuses all else. Taking over is a flag of its own.

// FluxNow is what the Flux of the management cluster follows before init, where that is not what init would have it follow.
type FluxNow struct {
	// Follows says it in words.
	Follows string `json:"follows"`
	// Wanted is what init would have it follow.
	Wanted string `json:"wanted"`
	// WouldDelete is what it applied and the fleet repo does not have: what it would delete there with pruning on. --take-over-flux keeps it.
	WouldDelete []string `json:"wouldDelete"`
}

const takeOverHint = "if this fleet repo is to take its place, give --take-over-flux: what Flux applied before and this repo does not " +
	"have is then kept, and is yours to remove; " +
	"`fleetctl init --dry-run` shows it"

// RepoView is what is known of the fleet repo when somebody asks what Flux would apply of it. Without a commit that is what its folder has.
type RepoView struct {
	Flux     *flux.Components
	repo     *gitrepo.Repo
	revision string
}

// checkFollowing refuses a cluster whose Flux follows something else. there is what the cluster knows of its fleet.
func checkFollowing(ctx context.Context, s *session.Session, client *kube.Client, there *ownership.Claim, have RepoView) error {
	now, err := flux.NewSystem(client).Following(ctx)
	if err != nil {
		return err
	}
	if now.Operator != "" {
		return diag.Errorf("take its sync and its Flux out of the FluxInstance's hands first (annotate it with "+
			"fluxcd.controlplane.io/prune=disabled and delete it); or name another cluster",
			"Flux on the cluster %s is the Flux operator's, which would undo what init does: FluxInstance %s", s.Mgmt.Name, now.Operator)
	}
	if s.Opts.TakeOverFlux || mayFollow(ctx, s, now, there) {
		return nil
	}
	return diag.Errorf(takeOverHint, "Flux on the cluster %s follows something else: %s; init would point it at %s%s",
		s.Mgmt.Name, now, declaredSource(s), lossOf(ctx, s, client, have))
}

// mayFollow tells whether init may point a Flux that follows now at this fleet repo.
func mayFollow(ctx context.Context, s *session.Session, now *flux.Following, there *ownership.Claim) bool {
	if there == nil && len(now.Others) > 0 {
		return false // another tool's, or another team's: on a cluster of ours they are the user's own
	}
	if !now.Synced() {
		return true
	}
	if now.SourceKind != "GitRepository" && now.SourceKind != "" {
		return false
	}
	if now.Path != "" && now.Path != path.Clean(s.Mgmt.Dir()) {
		return false
	}
	git := s.Fleet.Spec.Git
	known := there != nil && there.Fleet == s.Identity()
	switch {
	case now.URL == "": // a Kustomization whose source somebody deleted
		return known
	case git.URL == "":
		// Served from this machine, on a port that a lost state folder has forgotten.
		return now.Ref == git.Branch && (servedHere(ctx, s, now.URL) || known && there.URL == "")
	case ownership.SameRepository(now.URL, git.URL):
		return now.Ref == git.Branch
	}
	// A fleet repo that was served from its folder has got a remote. That it has what Flux applied is looked at when it is there: see
	// sameHistory.
	return known && there.URL == "" && isServed(now.URL)
}

// servedHere tells whether a URL is that of the server that this machine has for the management cluster.
func servedHere(ctx context.Context, s *session.Session, served string) bool {
	server, err := gitserve.Status(ctx, s.Cluster.Path(management.GitServeDir))
	if err != nil || server.Port == 0 {
		return false
	}
	gateway, err := s.Host.Gateway(ctx)
	if err != nil {
		return false
	}
	u, err := url.Parse(served)
	return err == nil && isServed(served) && u.Hostname() == gateway.Host && u.Port() == strconv.Itoa(server.Port)
}

// isServed tells whether a URL has the form of our own server's.
func isServed(served string) bool {
	u, err := url.Parse(served)
	if err != nil || u.Port() == "" {
		return false
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Path == gitserve.RepoPath
}

// declaredSource is what init would have Flux follow, in words.
func declaredSource(s *session.Session) string {
	return fmt.Sprintf("%s, %s, path %s", s.Self.Place(), s.Fleet.Spec.Git.Branch, s.Mgmt.Dir())
}

// lossOf says in an error what would be deleted.
func lossOf(ctx context.Context, s *session.Session, client *kube.Client, have RepoView) string {
	lost, err := wouldDelete(ctx, s, client, have)
	if err != nil || len(lost) == 0 {
		return ""
	}
	return ", which has none of these, so that Flux would delete them: " + plain.Names(refNames(lost), 8)
}

// wouldDelete lists what the Flux of a cluster applied and this fleet repo does not have for it.
func wouldDelete(ctx context.Context, s *session.Session, client *kube.Client, have RepoView) ([]kube.Ref, error) {
	wanted, _, err := renders(ctx, s, have)
	if err != nil {
		return nil, err
	}
	return flux.NewSystem(client).WouldDelete(ctx, func(r kube.Ref) bool {
		r.Version = "" // another version of it is the same object
		return wanted[r]
	})
}

// renders are the objects that Flux would apply to the management cluster of what is in the fleet repo, and those that init adds to it. The
// answer is what the fleet repo alone says.
func renders(ctx context.Context, s *session.Session, have RepoView) (wanted map[kube.Ref]bool, answer *wantedAnswer, err error) {
	wanted, answer = map[kube.Ref]bool{}, &wantedAnswer{}
	add := func(group, kind, namespace, name string) {
		r := kube.Ref{Key: kube.Key{Namespace: namespace, Name: name}}
		r.Group, r.Kind = group, kind
		wanted[r] = true
	}
	if have.Flux != nil {
		objects, err := kube.ParseYAML(have.Flux.Content)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range objects {
			add(o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName())
		}
	}
	add("source.toolkit.fluxcd.io", "GitRepository", flux.Namespace, flux.Name)
	add("kustomize.toolkit.fluxcd.io", "Kustomization", flux.Namespace, flux.Name)
	if s.NewFleet && session.EmptyDir(s.Opts.Dir) {
		return wanted, answer, nil
	}
	if answer, err = wantedObjects(ctx, s, have); err != nil {
		return nil, nil, err
	}
	for _, o := range answer.Objects {
		group, _, found := strings.Cut(o.APIVersion, "/")
		if !found {
			group = ""
		}
		add(group, o.Kind, o.Namespace, o.Name)
	}
	return wanted, answer, nil
}

func refNames(refs []kube.Ref) []string {
	names := make([]string, 0, len(refs))
	for _, r := range refs {
		names = append(names, r.String())
	}
	return names
}

// fluxNow is what a dry run and doctor say of a cluster that is there; nil where Flux follows nothing, or what it is to follow.
func fluxNow(ctx context.Context, s *session.Session, client *kube.Client, there *ownership.Claim, have RepoView) (*FluxNow, error) {
	now, err := flux.NewSystem(client).Following(ctx)
	if err != nil || now.Nothing() || now.Operator == "" && mayFollow(ctx, s, now, there) {
		return nil, err
	}
	out := &FluxNow{Follows: now.String(), Wanted: declaredSource(s), WouldDelete: []string{}}
	lost, err := wouldDelete(ctx, s, client, have)
	out.WouldDelete = append(out.WouldDelete, refNames(lost)...)
	return out, err
}

// Pushed is the commit that Flux is to apply, and what it gets to read it.
type Pushed struct {
	Session  *session.Session
	Access   *FluxAccess
	Repo     *gitrepo.Repo // the working tree
	Revision string
}

// View is what the commit has.
func (p *Pushed) View(components *flux.Components) RepoView {
	return RepoView{Flux: components, repo: p.Repo, revision: p.Revision}
}

// WaitOptions are for the pushed revision, or what somebody has pushed on top of it.
func (p *Pushed) WaitOptions(detail func(string)) flux.WaitOptions {
	return flux.WaitOptions{Commit: p.Revision, Detail: detail, Includes: func(ctx context.Context, newer string) (bool, error) {
		return p.Repo.Includes(ctx, p.Session.PushAuth(), newer, p.Revision)
	}}
}

// Attach points the Flux of a cluster that has taken over at the fleet repo.
func (p *Pushed) Attach(ctx context.Context, target *kube.Client, detail func(string)) error {
	sync, err := flux.GenerateSync(syncOptions(p.Session, p.Access.Endpoint))
	if err != nil {
		return err
	}
	if err := p.Access.give(ctx, target, sync, detail); err != nil {
		return err
	}
	return p.Session.ConfirmClaim(ctx, target)
}

// TakeUp is Attach for a cluster that has fetched the fleet repo before, by itself or in a run that was cut off.
func (p *Pushed) TakeUp(ctx context.Context, target *kube.Client, detail func(string)) error {
	if err := p.Attach(ctx, target, detail); err != nil {
		return err
	}
	return flux.NewSystem(target).EndFetch(ctx)
}

// endFetchTime bounds the end of a fetch that was tried, which comes also where the fetch itself was cut off.
const endFetchTime = 30 * time.Second

// TryFetch is Fetch for a cluster that still follows what it does, and keeps nothing of it.
func (p *Pushed) TryFetch(ctx context.Context, other *kube.Client) error {
	err := p.Fetch(ctx, other)
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endFetchTime)
	defer cancel()
	return errors.Join(err, flux.NewSystem(other).EndFetch(ending))
}

// Fetch has the Flux of another cluster fetch what Attach would point it at.
func (p *Pushed) Fetch(ctx context.Context, other *kube.Client) error {
	secret, err := p.Access.SourceSecret(ctx, other)
	if err != nil {
		return err
	}
	sync, err := flux.GenerateSync(syncOptions(p.Session, p.Access.Endpoint))
	if err != nil {
		return err
	}
	_, err = flux.NewSystem(other).Fetch(ctx, secret, sync)
	return err
}

// Follow applies the sync: from then on Flux follows this fleet repo. What it follows now is looked at once more, as it may have changed
// since the run began. It returns what a take-over keeps.
func (p *Pushed) Follow(
	ctx context.Context,
	client *kube.Client,
	components *flux.Components,
	detail func(string),
) (kept []string, err error) {
	s, system, have := p.Session, flux.NewSystem(client), p.View(components)
	there, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := s.CheckClaim(there); err != nil {
		return nil, err
	}
	if err := checkFollowing(ctx, s, client, there, have); err != nil {
		return nil, err
	}
	now, err := system.Following(ctx)
	if err != nil {
		return nil, err
	}
	sync, err := flux.GenerateSync(syncOptions(s, p.Access.Endpoint))
	if err != nil {
		return nil, err
	}
	switch url := s.Fleet.Spec.Git.URL; {
	case !mayFollow(ctx, s, now, there): // --take-over-flux
		if kept, sync, err = takeOver(ctx, s, client, have, sync); err != nil {
			return nil, err
		}
	case now.URL != "" && url != "" && !ownership.SameRepository(now.URL, url):
		if err := p.sameHistory(ctx, now); err != nil {
			return nil, err
		}
	}
	if err := p.Access.give(ctx, client, sync, detail); err != nil {
		return nil, err
	}
	return kept, s.ConfirmClaim(ctx, client)
}

// takeOver lets Flux change over to this fleet repo without a loss: it is suspended; what it applied and the repo does not have is listed,
// which only now is the whole of it, and kept; and it goes on without pruning. Its next reconciliation, of what is in the repo, turns that
// on again.
func takeOver(
	ctx context.Context,
	s *session.Session,
	client *kube.Client,
	have RepoView,
	sync []byte,
) (kept []string, without []byte, err error) {
	system := flux.NewSystem(client)
	if _, err := system.Suspend(ctx); err != nil {
		return nil, nil, err
	}
	lost, err := wouldDelete(ctx, s, client, have)
	if err != nil {
		return nil, nil, err
	}
	if err := system.Spare(ctx, lost); err != nil {
		return nil, nil, err
	}
	kept = refNames(lost)
	for _, name := range kept {
		s.Deps.Report.Warn("kept, and no longer in any Git repository that Flux follows: " + name)
	}
	without, err = flux.WithoutPrune(sync)
	return kept, without, err
}

// sameHistory refuses to point Flux at a remote that lacks the commit which it has applied last: then it is not the repo that was served.
func (p *Pushed) sameHistory(ctx context.Context, now *flux.Following) error {
	s := p.Session
	if now.Applied == "" || now.Applied == p.Revision {
		return nil
	}
	has, err := p.Repo.Includes(ctx, s.PushAuth(), p.Revision, now.Applied)
	if err != nil || has {
		return err
	}
	shallow, err := p.Repo.Shallow()
	switch {
	case err != nil:
		return err
	case shallow:
		return diag.Errorf("git fetch --unshallow, then run the same command again",
			"this clone of %s has only the newest commits: it cannot be told whether the commit %.8s is below them, which Flux on %s has applied",
			s.Self.Place(), now.Applied, s.Mgmt.Name)
	}
	return diag.Errorf(takeOverHint,
		"the remote %s does not have the commit %.8s, which Flux on %s has applied: it is not the repo that Flux follows now",
		s.Self.Place(), now.Applied, s.Mgmt.Name)
}

// CheckCluster refuses a cluster as ClaimCluster does, and changes nothing. It returns whose the cluster is; nil for nobody's.
func CheckCluster(ctx context.Context, s *session.Session, client *kube.Client, have RepoView) (*ownership.Claim, error) {
	there, err := ownership.ReadClaim(ctx, client)
	if err != nil {
		return nil, err
	}
	if err := s.CheckClaim(there); err != nil {
		return nil, err
	}
	return there, checkFollowing(ctx, s, client, there, have)
}

// ClaimCluster makes the cluster that client reaches this fleet's before anything is done to it, or refuses: it is another's, or its Flux
// follows something else. have is what is known of the fleet repo by then.
func ClaimCluster(ctx context.Context, s *session.Session, client *kube.Client, have RepoView) error {
	for {
		there, err := CheckCluster(ctx, s, client, have)
		if err != nil || there != nil {
			return err
		}
		err = s.Claim().Create(ctx, client)
		if !apierrors.IsAlreadyExists(err) {
			return diag.Wrap("note in the cluster which fleet it belongs to", err, "")
		}
	}
}
