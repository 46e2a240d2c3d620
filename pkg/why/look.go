package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/flux"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/guises"
	"github.com/fleetctl/fleetctl/pkg/handover"
	"github.com/fleetctl/fleetctl/pkg/kube"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/status"
)

// Sources are the sources for Collect and CollectDepth.
type Sources struct {
	Client *kube.Client
	// Management is the name of the management cluster.
	Management string
	// Cluster is NAME or NAMESPACE/NAME.
	Cluster string
	// Declared is the cluster's declaration in the fleet repo; nil without a declaration or a fleet repo.
	Declared *Declared
	// FleetID is the identity of the management cluster's fleet; empty where it is not known.
	FleetID string
	// Repo is the folder of the fleet repo; empty where it is not known.
	Repo string
}

// Declared is the declaration of a cluster in the fleet repo.
type Declared struct {
	// Key of the Cluster, and of the HelmRelease that makes it.
	Key kube.Key
	// File and Environment that it is in.
	File, Environment string
	// AppliedBy is the name of the Flux Kustomization that applies its environment, as fleetctl names it.
	AppliedBy string
}

// look has all objects of a cluster that were read.
type look struct {
	from      Sources
	key       kube.Key
	cluster   *capi.Cluster
	root      *capi.Part // nil without a Cluster
	installed []capi.InstalledProvider
	flux      *flux.Report
	events    []corev1.Event
	commit    commit
	unknown   []string
	// elsewhere says that another management cluster than the one that was asked has taken the cluster over.
	elsewhere bool
	// uid is that of the management cluster that was asked, and own is the cluster's own record of its owner: nil without one, or if the
	// cluster does not answer.
	uid string
	own *handover.OwnRecord
	// handedOver is the journal of the last hand-over, if that is about this cluster; nil otherwise.
	handedOver *handover.Journal
}

// late says of an error about the end of the time what was waited for, and where. A server may answer in time, and have no end of objects.
// An error with a hint, such as the one about a silent server, stays.
func (s Sources) late(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) || diag.Hint(err) != "" {
		return err
	}
	list := diag.ShellCommand("kubectl", "get", "clusters.cluster.x-k8s.io", "--all-namespaces")
	return diag.Errorf("give it more time with --timeout; `"+list+
		"` shows whether it has very many Clusters",
		"look for cluster %s on the API server %s: it had not told of all its Clusters when the time was over: %w", s.Cluster, s.Client.Host(),
		err)
}

// commit is the present commit and branch of the fleet repo on this machine.
type commit struct{ revision, branch string }

// take reads all sources in parallel. A cluster that neither exists nor is declared is a usage error.
func take(ctx context.Context, from Sources) (*look, error) {
	l := &look{from: from}
	manager, err := capi.New(from.Client)
	if err == nil {
		err = l.find(ctx, manager)
	}
	if err != nil {
		return nil, from.late(err)
	}
	var mu sync.Mutex
	missing := func(what string, err error) {
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			l.unknown = append(l.unknown, what+": "+err.Error())
		}
	}
	var all sync.WaitGroup
	all.Go(func() {
		root, unread, err := manager.Parts(ctx, l.key)
		missing("Cluster "+l.key.String(), err)
		for _, u := range unread {
			missing(u.Kind.Kind, u.Err)
		}
		l.root = root
	})
	all.Go(func() {
		installed, err := manager.Installed(ctx)
		missing("providers", err)
		l.installed = installed
	})
	all.Go(func() {
		report, err := flux.NewSystem(from.Client).Status(ctx)
		missing("Flux", err)
		l.flux = cmp.Or(report, &flux.Report{})
	})
	all.Go(func() {
		events, err := from.Client.Events(ctx, l.key.Namespace)
		missing("events", err)
		l.events = events
	})
	all.Go(func() { missing("fleet repo "+from.Repo, l.git()) })
	all.Go(func() { missing("owner of the cluster", l.owner(ctx)) })
	all.Go(func() { l.ownRecord(ctx, manager) })
	all.Go(func() { missing("hand-over", l.journal(ctx)) })
	all.Wait()
	slices.Sort(l.unknown)
	return l, ctx.Err()
}

// find finds the Cluster by its name, or else the place where it is declared.
func (l *look) find(ctx context.Context, manager *capi.Manager) error {
	clusters, err := manager.Clusters(ctx)
	if err != nil {
		return err
	}
	var found []capi.Cluster
	names := []string{}
	for _, c := range clusters {
		names = append(names, c.FullName())
		if l.from.Cluster == c.Name || l.from.Cluster == c.FullName() {
			found = append(found, c)
		}
	}
	switch {
	case len(found) == 1:
		l.cluster, l.key = &found[0], found[0].Key()
	case len(found) > 1:
		return diag.Usage("write NAMESPACE/NAME", "there are %s called %s",
			plain.Count(len(found), "workload cluster"), l.from.Cluster)
	case l.from.Declared != nil:
		l.key = l.from.Declared.Key
	default:
		if err := l.journal(ctx); err == nil && l.isGone() {
			return diag.Usage(l.askThere(), "no workload cluster %s: %s", l.from.Cluster, l.goneText())
		}
		hint := "the management cluster " + l.from.Management + " has none"
		if len(names) > 0 {
			hint = "there are: " + strings.Join(names, ", ")
		}
		return diag.Usage(hint, "no workload cluster %s, and the fleet repo declares none of that name", l.from.Cluster)
	}
	return nil
}

// owner compares the owner in the record of a hand-over with the management cluster that was asked.
func (l *look) owner(ctx context.Context) error {
	if l.cluster == nil {
		return nil
	}
	system := &corev1.Namespace{}
	if err := l.from.Client.Get(ctx, kube.Key{Name: "kube-system"}, system); err != nil {
		return err
	}
	l.uid = string(system.UID)
	l.elsewhere = l.cluster.Owner.IsAnother(l.uid)
	return nil
}

// ownRecord asks the cluster for its own record of its owner. A cluster that does not answer is no trouble: this machine may not reach it.
func (l *look) ownRecord(ctx context.Context, manager *capi.Manager) {
	if l.cluster == nil || !l.cluster.Initialized || l.from.FleetID == "" {
		return
	}
	asked := handover.AskForRecords(ctx, manager, []kube.Key{l.key}, nil)
	if own, has := asked.Records[l.key.String()]; has {
		l.own = &own
	}
}

// contradicted tells whether the cluster's own record names another owner than the management cluster that was asked. In the middle of a
// hand-over, the record may name either side. It may also be that of the management cluster that has handed the cluster over.
func (l *look) contradicted() bool {
	if l.own == nil || l.elsewhere || l.handedOver.Active() || !l.own.Contradicts(l.cluster.Owner, l.uid, l.from.FleetID) {
		return false
	}
	return l.own.Epoch != l.cluster.Owner.Epoch || !l.handedOver.CameFrom(l.own.UID, l.key.String())
}

// ownerTroubles has the trouble that the management cluster that was asked acts on a cluster that another one has taken over.
func (l *look) ownerTroubles() []Trouble {
	switch {
	case l.cluster == nil || l.cluster.Paused:
	case l.elsewhere:
		return []Trouble{{Reason: status.TwoOwnersText(l.cluster.Owner)}}
	case l.contradicted():
		return []Trouble{{Reason: status.OwnRecordText(*l.own, l.from.Management, l.uid, l.from.FleetID)}}
	}
	return nil
}

func (l *look) git() error {
	if l.from.Repo == "" {
		return nil
	}
	repo, err := gitrepo.Open(l.from.Repo)
	if err != nil {
		return err
	}
	l.commit.revision, err = repo.Head()
	if errors.Is(err, gitrepo.ErrDetached) {
		return nil // a pipeline: there is no branch to compare with what Flux has
	}
	if err != nil {
		return err
	}
	l.commit.branch, err = repo.Branch()
	return err
}

// words are the last warning events of an object, the newest first, each text once.
func (l *look) words(kind, name string) []string {
	const most = 3
	out := []string{}
	for _, e := range slices.Backward(l.events) {
		if e.Type != corev1.EventTypeWarning || e.InvolvedObject.Kind != kind || e.InvolvedObject.Name != name {
			continue
		}
		text := strings.Join(strings.Fields(e.Reason+": "+guises.WithoutURLSecrets(e.Message)), " ")
		if !slices.Contains(out, text) && len(out) < most {
			out = append(out, text)
		}
	}
	return out
}

// partTroubles are the troubles of one part. A part without a status has the trouble that no controller has reconciled it.
func (l *look) partTroubles(p *capi.Part) []Trouble {
	troubles := troublesOf(kube.Troubles(p.Unstructured))
	if _, has, _ := unstructured.NestedMap(p.Object, "status"); !has && l.isNamed(p) {
		troubles = append(troubles, Trouble{Reason: "no controller has looked at it yet", Waiting: true})
	}
	if p.GetDeletionTimestamp() != nil {
		text := "it is being deleted"
		if finalizers := p.GetFinalizers(); len(finalizers) > 0 {
			text += ", and held by " + strings.Join(finalizers, ", ")
		}
		troubles = append(troubles, Trouble{Reason: text, Since: since(p.GetDeletionTimestamp().Time), Waiting: true})
	}
	if p == l.root {
		troubles = append(troubles, l.ownerTroubles()...)
	}
	if _, paused := p.GetAnnotations()["cluster.x-k8s.io/paused"]; paused &&
		!slices.ContainsFunc(troubles, func(t Trouble) bool { return t.Condition == "Paused" }) {
		troubles = append(troubles, Trouble{Condition: "Paused", Reason: "it has the annotation cluster.x-k8s.io/paused"})
	}
	return troubles
}

// isNamed tells whether the Cluster refers to a part in its spec. Such a part gets a status as soon as its controller reconciles it.
func (l *look) isNamed(p *capi.Part) bool {
	for _, field := range []string{"infrastructureRef", "controlPlaneRef"} {
		ref, _, _ := unstructured.NestedMap(l.root.Object, "spec", field)
		if ref["kind"] == p.GetKind() && ref["name"] == p.GetName() {
			return true
		}
	}
	return false
}

// Collect finds the reasons why a cluster is not as in Git.
func Collect(ctx context.Context, from Sources) (*Report, error) {
	l, err := take(ctx, from)
	if err != nil {
		return nil, err
	}
	r := &Report{
		FormatVersion: "1", Time: time.Now().UTC().Truncate(time.Second), Cluster: l.key.String(), Causes: []Cause{},
		Unknown: append([]string{}, l.unknown...), Management: from.Management,
	}
	c := &chain{look: l}
	c.build()
	r.Chain = c.links
	r.Causes = append(append(r.Causes, l.handOverCauses()...), c.causes()...)
	r.Ready = l.cluster != nil && l.cluster.Available && len(r.Causes) == 0 && len(r.Unknown) == 0
	if len(r.Causes) == 0 && l.cluster != nil && !l.cluster.Available { // only the Cluster itself has a trouble
		r.Causes = append(r.Causes, Cause{
			Stage: StageCluster, Object: "Cluster " + r.Cluster, Reason: l.cluster.Reason,
			Words: l.words("Cluster", l.key.Name),
		})
	}
	return r, nil
}

func objectName(kind string, key kube.Key) string { return fmt.Sprintf("%s %s", kind, key) }
