// Package following points the Flux of a management cluster at the fleet repo without a loss. It tells what Flux follows now, and what Flux
// would apply and delete afterwards. It refuses if Flux would delete somebody's work.
package following

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"strconv"

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

// A Flux that is pointed at another source deletes the objects that it applied before and does not find there: its Kustomizations and all
// their objects, and with Clusters all their machines. So init continues only if Flux follows nothing, or follows the wanted source, or a
// source that this fleet has moved away from. For anything else there is the flag --take-over-flux.

// Now describes what the Flux of the management cluster follows before init, if init wants it to follow something else.
type Now struct {
	// Follows is what Flux follows, in words.
	Follows string `json:"follows"`
	// Wanted is what init wants Flux to follow, in words.
	Wanted string `json:"wanted"`
	// WouldDelete lists the objects that Flux has applied and the fleet repo does not have. Flux would delete them with pruning on.
	// --take-over-flux keeps them.
	WouldDelete []string `json:"wouldDelete"`
}

const takeOverHint = "if this fleet repo is to take its place, give --take-over-flux: what Flux applied before and this repo does not " +
	"have is then kept, and is yours to remove; " +
	"`fleetctl init --dry-run` shows it"

// View is the fleet repo whose objects Flux would apply: a commit, or without one the content of its folder.
type View struct {
	Flux     *flux.Components
	dir      string // instead of the fleet repo's
	repo     *gitrepo.Repo
	revision string
}

// Found is what the Flux of a management cluster follows, from one request to the cluster.
type Found struct {
	session *session.Session
	client  *kube.Client
	claim   *ownership.Claim
	have    View
	now     *flux.Following
}

// Find asks a cluster what its Flux follows. claim is the claim in the cluster.
func Find(ctx context.Context, s *session.Session, client *kube.Client, claim *ownership.Claim, have View) (*Found, error) {
	now, err := flux.NewSystem(client).Following(ctx)
	if err != nil {
		return nil, err
	}
	return &Found{session: s, client: client, claim: claim, have: have, now: now}, nil
}

// FollowsFleet tells whether Flux follows the folder of the management cluster in the fleet repo already, whatever else it follows.
func (f *Found) FollowsFleet(ctx context.Context) bool {
	alone := *f.now
	alone.Others = nil
	return alone.Synced() && mayFollow(ctx, f.session, &alone, f.claim)
}

// Check refuses a cluster whose Flux follows something else.
func (f *Found) Check(ctx context.Context) error {
	s := f.session
	if f.now.Operator != "" {
		return diag.Errorf("take its sync and its Flux out of the FluxInstance's hands first (annotate it with "+
			"fluxcd.controlplane.io/prune=disabled and delete it); or name another cluster",
			"Flux on the cluster %s is the Flux operator's, which would undo what init does: FluxInstance %s", s.Mgmt.Name, f.now.Operator)
	}
	if s.Opts.TakeOverFlux || mayFollow(ctx, s, f.now, f.claim) {
		return nil
	}
	return diag.Errorf(takeOverHint, "Flux on the cluster %s follows something else: %s; init would point it at %s%s",
		s.Mgmt.Name, f.now, declaredSource(s), lossOf(ctx, s, f.client, f.have))
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
		// It was served from this machine, on a port that only a lost state folder knew.
		return now.Ref == git.Branch && (servedHere(ctx, s, now.URL) || known && there.URL == "")
	case ownership.SameRepository(now.URL, git.URL):
		return now.Ref == git.Branch
	}
	// A fleet repo that was served from its folder has got a remote. sameHistory checks later that the remote has the commit that Flux
	// applied.
	return known && there.URL == "" && isServed(now.URL)
}

// servedHere tells whether a URL is the address of this machine's server for the management cluster.
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

// isServed tells whether a URL has the form of an address of our own server.
func isServed(served string) bool {
	u, err := url.Parse(served)
	if err != nil || u.Port() == "" {
		return false
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Path == gitserve.RepoPath
}

// declaredSource describes what init wants Flux to follow.
func declaredSource(s *session.Session) string {
	return fmt.Sprintf("%s, %s, path %s", s.Self.Place(), s.Fleet.Spec.Git.Branch, s.Mgmt.Dir())
}

// lossOf names in an error the objects that Flux would delete.
func lossOf(ctx context.Context, s *session.Session, client *kube.Client, have View) string {
	lost, err := wouldDelete(ctx, s, client, have)
	if err != nil || len(lost) == 0 {
		return ""
	}
	return ", which has none of these, so that Flux would delete them: " + plain.Names(refNames(lost), 8)
}

// wouldDelete lists the objects that the Flux of a cluster has applied and this fleet repo does not have for the cluster.
func wouldDelete(ctx context.Context, s *session.Session, client *kube.Client, have View) ([]kube.Ref, error) {
	wanted, _, err := renders(ctx, s, have)
	if err != nil {
		return nil, err
	}
	return flux.NewSystem(client).WouldDelete(ctx, func(r kube.Ref) bool {
		r.Version = "" // another version of it is the same object
		return wanted[r]
	})
}

// renders returns the objects that Flux would apply to the management cluster from the fleet repo, and the objects that init adds to the
// repo. The answer is about the fleet repo alone.
func renders(ctx context.Context, s *session.Session, have View) (wanted map[kube.Ref]bool, answer *wantedAnswer, err error) {
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
		wanted[o.ref()] = true
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

// Look tells a dry run and doctor what Flux follows. It returns nil if Flux follows nothing, or follows what init wants.
func (f *Found) Look(ctx context.Context) (*Now, error) {
	if f.now.Nothing() || f.now.Operator == "" && mayFollow(ctx, f.session, f.now, f.claim) {
		return nil, nil
	}
	out := &Now{Follows: f.now.String(), Wanted: declaredSource(f.session), WouldDelete: []string{}}
	lost, err := wouldDelete(ctx, f.session, f.client, f.have)
	out.WouldDelete = append(out.WouldDelete, refNames(lost)...)
	return out, err
}

// Note is a warning about Flux on a cluster, with what to do.
type Note struct {
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// Notes lists what may keep Flux on the cluster from applying the fleet repo, or may undo what Flux applies: somebody has suspended Flux,
// or another tool applies repositories to the same cluster.
func (f *Found) Notes(ctx context.Context) ([]Note, error) {
	var notes []Note
	if len(f.now.Suspended) > 0 {
		names := make([]string, 0, len(f.now.Suspended))
		for _, s := range f.now.Suspended {
			names = append(names, s.Ref.String())
		}
		notes = append(notes, Note{
			Text: "Flux applies no new commit, because somebody suspended " + plain.Names(names, 4), Hint: f.now.ResumeHint(),
		})
	}
	others, err := flux.NewSystem(f.client).OtherSyncs(ctx)
	if err != nil {
		return nil, err
	}
	if len(others) > 0 {
		names := make([]string, 0, len(others))
		for _, o := range others {
			names = append(names, o.String())
		}
		notes = append(notes, Note{
			Text: "another tool applies repositories to this cluster: " + plain.Names(names, 4),
			Hint: "keep everything that the fleet repo has out of those repositories: else each tool undoes what the other one applies",
		})
	}
	return notes, nil
}
