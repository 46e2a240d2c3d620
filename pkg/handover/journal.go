package handover

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// JournalKey is the Secret with the journal, on both sides.
var JournalKey = kube.Key{Namespace: "fleetctl-system", Name: "fleetctl-handover"}

// Phase of a hand-over.
type Phase string

// The phases, in their order, and the two of an abort.
const (
	PhasePlanned   Phase = "planned"
	PhaseFenced    Phase = "fenced"
	PhaseCopied    Phase = "copied"
	PhaseVerified  Phase = "verified"
	PhaseCommitted Phase = "committed"
	PhaseReleased  Phase = "released"

	PhaseAborting Phase = "aborting"
)

func phases() []Phase {
	return []Phase{PhasePlanned, PhaseFenced, PhaseCopied, PhaseVerified, PhaseCommitted, PhaseReleased}
}

// reached tells whether p is at least other. An abort has reached nothing.
func (p Phase) reached(other Phase) bool {
	return slices.Index(phases(), p) >= slices.Index(phases(), other)
}

// Committed tells whether the target has the work.
func (p Phase) Committed() bool { return p.reached(PhaseCommitted) }

// Role is what a management cluster is in a hand-over.
type Role string

// The roles.
const (
	RoleSource Role = "source"
	RoleTarget Role = "target"
)

// Party is a management cluster: the name that it goes by, and the UID of its namespace kube-system, which tells it from all others.
type Party struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Journal is what a management cluster knows of a hand-over: the one under way, or else its last one.
type Journal struct {
	FormatVersion string   `json:"formatVersion"`
	ID            string   `json:"id"`
	Role          Role     `json:"role"`
	Phase         Phase    `json:"phase"`
	Fleet         string   `json:"fleet"`
	Source        Party    `json:"source"`
	Target        Party    `json:"target"`
	Select        []string `json:"select,omitempty"`
	// Runner is the run that works on it, and By who that is, for people. The newest run shuts all earlier ones out.
	Runner string `json:"runner"`
	By     string `json:"by"`
	// Hold says that the target's controllers work for others: each copy is paused by itself.
	Hold bool `json:"hold"`
	// Owner is who has the work, once committed, and Epoch how many times it has changed hands.
	Owner Party `json:"owner"`
	Epoch int64 `json:"epoch"`
	// Moved objects by kind, and the Clusters, with those that were Available before.
	Moved     map[string]int `json:"moved,omitempty"`
	Clusters  []string       `json:"clusters,omitempty"`
	Available []string       `json:"available,omitempty"`
	// Groups are the API groups that are fenced.
	Groups []string `json:"groups,omitempty"`

	// Detach says that what is selected goes to nobody: there is no target.
	Detach bool `json:"detach,omitempty"`
	// Snapshot that the work was restored from, with Source as where that was taken; empty for a hand-over between two living clusters.
	Snapshot string `json:"snapshot,omitempty"`

	// Around says that another tool, such as Velero, makes the copies: the service accounts of the namespace Admit may write behind the fence
	// until all is there. There are the UIDs of what was there before.
	Around bool     `json:"around,omitempty"`
	Admit  string   `json:"admit,omitempty"`
	There  []string `json:"there,omitempty"`
	// Pause are the Clusters, NAMESPACE/NAME, that begin paused, because others manage them.
	Pause []string `json:"pause,omitempty"`

	// Standby is what a standby knows, where the role is that. Activates says that the target is a standby which takes over.
	Standby   *Standby `json:"standby,omitempty"`
	Activates bool     `json:"activates,omitempty"`
	// Tries says that it is only tried: whoever meets it undoes it.
	Tries bool `json:"tries,omitempty"`

	// Before is what stood here before it, which an abort puts back.
	Before *Journal `json:"before,omitempty"`

	version string // of the Secret that it was read from
}

// Whole tells whether it is about all that the source has: a source that has handed that over has no work any more.
func (j *Journal) Whole() bool { return len(j.Select) == 0 }

// Active tells whether it is still to be finished, or undone.
// A nil journal is of none, and that of a standby at rest neither.
func (j *Journal) Active() bool { return j != nil && j.Phase != PhaseReleased && j.Role != RoleStandby }

// Tried tells whether it is a try that was cut off: nobody waits for its end.
func (j *Journal) Tried() bool { return j.Active() && j.Tries }

// Command is the one that goes on with it.
func (j *Journal) Command() string {
	switch {
	case j.Activates && j.Tries:
		return diag.ShellCommand("fleetctl", "standby", "refresh", j.Target.Name)
	case j.Activates, j.IsStandby():
		return diag.ShellCommand("fleetctl", "standby", "activate", j.Target.Name)
	case j.Around:
		return "fleetctl restore --fence-only"
	case j.Snapshot != "":
		return diag.ShellCommand("fleetctl", "restore", "--snapshot", j.Snapshot)
	case j.Detach:
		return "fleetctl cluster detach " + diag.ShellCommand(j.Select...)
	case !j.Whole():
		_, name, _ := strings.Cut(j.Select[0], "/") // one, as the fleet repo calls it
		return diag.ShellCommand("fleetctl", "cluster", "transfer", name)
	}
	return "fleetctl pivot"
}

// What names what a journal is about, for people: a restore, a hand-over, the transfer of some Clusters.
func (j *Journal) What() string {
	switch {
	case j.IsStandby():
		return "a standby of " + j.Standby.Of
	case j.Around:
		return "a restore by another tool, behind a fence"
	case j.Snapshot != "":
		return "a restore from the snapshot " + j.Snapshot
	case j.Detach:
		return "letting go of " + strings.Join(j.Select, ", ")
	}
	return j.what()
}

// what names a hand-over between two management clusters.
func (j *Journal) what() string {
	if j.Whole() {
		return "a hand-over"
	}
	return "the transfer of " + strings.Join(j.Select, ", ")
}

// IsTransferOf tells whether it is about that one Cluster, by its name or NAMESPACE/NAME, and about two management clusters.
func (j *Journal) IsTransferOf(cluster string) bool {
	return !j.Whole() && !j.Detach && j.Snapshot == "" && slices.ContainsFunc(j.Select, func(full string) bool {
		_, name, _ := strings.Cut(full, "/")
		return cluster == full || cluster == name
	})
}

// last is the journal as a later one keeps it: no history.
func (j *Journal) last() *Journal {
	kept := *j
	kept.Before, kept.version = nil, ""
	return &kept
}

// over has j written in the place of old, which an abort puts back; nil where nothing stood there.
func (j *Journal) over(old *Journal) {
	j.version, j.Before = "", nil
	if old != nil {
		j.version, j.Before = old.version, old.last()
	}
}

// ReadJournal reads the journal of a management cluster; nil where it has none.
func ReadJournal(ctx context.Context, c *kube.Client) (*Journal, error) {
	secret := &corev1.Secret{}
	err := kube.Retry(ctx, func(ctx context.Context) error { return c.Get(ctx, JournalKey, secret) })
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal of the hand-over at %s: %w", c.Host(), err)
	}
	j := &Journal{}
	if err := json.Unmarshal(secret.Data["journal"], j); err != nil {
		return nil, diag.Wrap("read the journal of the hand-over at "+c.Host(), err,
			"Secret "+JournalKey.String()+" is not as fleetctl writes it: find out who changed it")
	}
	if j.FormatVersion != "1" {
		return nil, diag.Errorf("use the release of fleetctl that began it", "the journal of the hand-over at %s has format %q",
			c.Host(), j.FormatVersion)
	}
	j.version = secret.ResourceVersion
	return j, nil
}

// ErrOvertaken is the end of a run that another one has shut out.
var ErrOvertaken = diag.Errorf("wait for the other run, or start this one again: it goes on where the other one stands",
	"another run works on the hand-over by now")

// write writes the journal over the version that it was read from, or creates it. apierrors.IsConflict or IsAlreadyExists where somebody
// else has written it since; an answer that was lost is looked up.
func (j *Journal) write(ctx context.Context, c *kube.Client) error {
	content, err := json.Marshal(j)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: JournalKey.Namespace, Name: JournalKey.Name, ResourceVersion: j.version,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "fleetctl"},
		},
		Data: map[string][]byte{"journal": content},
	}
	err = kube.Retry(ctx, func(ctx context.Context) error {
		if j.version == "" {
			return c.Create(ctx, secret)
		}
		return c.Update(ctx, secret)
	})
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		now, readErr := ReadJournal(ctx, c)
		if readErr != nil || now == nil || !now.same(j) {
			return err
		}
		j.version = now.version
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the journal of the hand-over at %s: %w", c.Host(), err)
	}
	j.version = secret.ResourceVersion
	return nil
}

// same tells whether both say the same.
func (j *Journal) same(other *Journal) bool {
	a, b := *j, *other
	a.version, b.version = "", ""
	first, err := json.Marshal(a)
	if err != nil {
		return false
	}
	second, err := json.Marshal(b)
	return err == nil && bytes.Equal(first, second)
}

// drop deletes the journal, unless somebody has written it since.
func (j *Journal) drop(ctx context.Context, c *kube.Client) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: JournalKey.Namespace, Name: JournalKey.Name}}
	err := kube.Retry(ctx, func(ctx context.Context) error {
		return c.WithWatch.Delete(ctx, secret, client.Preconditions{ResourceVersion: &j.version})
	})
	if err != nil && !kube.IsAbsent(err) {
		return fmt.Errorf("delete the journal of the hand-over at %s: %w", c.Host(), err)
	}
	return nil
}

// makeNamespace makes the namespace of the journal.
func makeNamespace(ctx context.Context, c *kube.Client) error {
	err := kube.Retry(ctx, func(ctx context.Context) error {
		return c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: JournalKey.Namespace}})
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace %s: %w", JournalKey.Namespace, err)
	}
	return nil
}
