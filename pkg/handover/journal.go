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

// JournalKey names the Secret with the journal, on both sides.
var JournalKey = kube.Key{Namespace: "fleetctl-system", Name: "fleetctl-handover"}

// Phase of a hand-over.
type Phase string

// The phases in their order, and the phase of an abort.
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

// reached tells whether p is the phase other or a later one. PhaseAborting has reached no phase.
func (p Phase) reached(other Phase) bool {
	return slices.Index(phases(), p) >= slices.Index(phases(), other)
}

// Committed tells whether the target has the work.
func (p Phase) Committed() bool { return p.reached(PhaseCommitted) }

// Role is the part that a management cluster has in a hand-over.
type Role string

// The roles.
const (
	RoleSource Role = "source"
	RoleTarget Role = "target"
)

// Party is a management cluster: its name, and the UID of its namespace kube-system, which no other cluster has.
type Party struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Journal is what a management cluster knows of the current hand-over, or of the last one.
type Journal struct {
	FormatVersion string   `json:"formatVersion"`
	ID            string   `json:"id"`
	Role          Role     `json:"role"`
	Phase         Phase    `json:"phase"`
	Fleet         string   `json:"fleet"`
	Source        Party    `json:"source"`
	Target        Party    `json:"target"`
	Select        []string `json:"select,omitempty"`
	// Runner is the ID of the run that works on the hand-over, and By names its user and machine. A new run shuts out
	// all earlier runs.
	Runner string `json:"runner"`
	By     string `json:"by"`
	// Hold says that the target already manages other Clusters. Its controllers then keep running, and each copy is
	// paused instead.
	Hold bool `json:"hold"`
	// Owner has the work once the hand-over is committed. Epoch is how many times the work has changed hands.
	Owner Party `json:"owner"`
	Epoch int64 `json:"epoch"`
	// Moved counts the objects by kind. Clusters are handed over, and Available are the Clusters that were Available
	// before that.
	Moved     map[string]int `json:"moved,omitempty"`
	Clusters  []string       `json:"clusters,omitempty"`
	Available []string       `json:"available,omitempty"`
	// Groups are the API groups that are fenced.
	Groups []string `json:"groups,omitempty"`

	// Detach says that the selected Clusters are detached, so there is no target.
	// Left are their machines, which a later run can no longer read.
	Detach bool      `json:"detach,omitempty"`
	Left   []Remnant `json:"left,omitempty"`
	// Snapshot is what the work was restored from, and Source is the management cluster of the snapshot. Snapshot is
	// empty for a hand-over between two running clusters.
	Snapshot string `json:"snapshot,omitempty"`

	// Around says that another tool, such as Velero, creates the copies. The service accounts of the namespace Admit
	// may write behind the fence until all objects have arrived. There has the UIDs of the objects that existed before.
	Around bool     `json:"around,omitempty"`
	Admit  string   `json:"admit,omitempty"`
	There  []string `json:"there,omitempty"`
	// Pause are the Clusters, NAMESPACE/NAME, that begin paused, because other management clusters manage them.
	Pause []string `json:"pause,omitempty"`
	// Owners are the Clusters, NAMESPACE/NAME, that answered when the hand-over began, with the fingerprints of the records
	// of their owners, "" for none. The hand-over writes over no other record.
	Owners map[string]string `json:"owners,omitempty"`

	// Standby is set if the role is standby. Activates says that the target is a standby that takes over.
	Standby   *Standby `json:"standby,omitempty"`
	Activates bool     `json:"activates,omitempty"`
	// Tries says that the hand-over only tries a snapshot on a standby. Any later run undoes a try.
	Tries bool `json:"tries,omitempty"`

	// Before is the journal that this one replaced. An abort restores it.
	Before *Journal `json:"before,omitempty"`

	version string // resourceVersion of the Secret that the journal was read from
}

// beginsPaused tells whether the Cluster, NAMESPACE/NAME, begins paused, because another management cluster manages it.
func (j *Journal) beginsPaused(cluster string) bool { return slices.Contains(j.Pause, cluster) }

// Whole tells whether the hand-over is of all Clusters of the source. The source has no work left after it.
func (j *Journal) Whole() bool { return len(j.Select) == 0 }

// Active tells whether the hand-over still has to be finished or undone. A nil journal is not active, and neither is
// the journal of a standby at rest.
func (j *Journal) Active() bool { return j != nil && j.Phase != PhaseReleased && j.Role != RoleStandby }

// Tried tells whether the hand-over is a try that was interrupted. A try has no result, so no command has to finish it.
func (j *Journal) Tried() bool { return j.Active() && j.Tries }

// Command returns the command that continues the hand-over.
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
		_, name, _ := strings.Cut(j.Select[0], "/") // one Cluster, by the name that the fleet repo uses
		return diag.ShellCommand("fleetctl", "cluster", "transfer", name)
	}
	return "fleetctl pivot"
}

// What describes for people the operation of the journal: a restore, a hand-over, or the transfer of some Clusters.
func (j *Journal) What() string {
	switch {
	case j.IsStandby():
		return "a standby of " + j.Standby.Of
	case j.Around:
		return "a restore by another tool, behind a fence"
	case j.Snapshot != "":
		return "a restore from the snapshot " + j.Snapshot
	case j.Detach:
		return "detaching " + strings.Join(j.Select, ", ")
	}
	return j.what()
}

// what describes a hand-over between two management clusters.
func (j *Journal) what() string {
	if j.Whole() {
		return "a hand-over"
	}
	return "the transfer of " + strings.Join(j.Select, ", ")
}

// IsTransferOf tells whether the journal is about the transfer of that one Cluster, NAME or NAMESPACE/NAME, between two
// management clusters.
func (j *Journal) IsTransferOf(cluster string) bool {
	return !j.Whole() && !j.Detach && j.Snapshot == "" && slices.ContainsFunc(j.Select, func(full string) bool {
		_, name, _ := strings.Cut(full, "/")
		return cluster == full || cluster == name
	})
}

// last returns a copy of the journal without its Before. A later journal keeps this copy in its own Before.
func (j *Journal) last() *Journal {
	kept := *j
	kept.Before, kept.version = nil, ""
	return &kept
}

// over makes j replace old, so that an abort restores old. old is nil if there was no journal.
func (j *Journal) over(old *Journal) {
	j.version, j.Before = "", nil
	if old != nil {
		j.version, j.Before = old.version, old.last()
	}
}

// ReadJournal reads the journal of a management cluster. It returns nil if there is none.
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
			"Secret "+JournalKey.String()+" does not have the form that fleetctl writes: find out who changed it. If the other side of the "+
				"hand-over still has its own, delete this one (`"+diag.ShellCommand("kubectl", "delete", "secret", JournalKey.Name, "--namespace",
				JournalKey.Namespace)+"` there), and run the same command again: it goes on from the other one")
	}
	if j.FormatVersion != "1" {
		return nil, diag.Errorf("use the release of fleetctl that began the hand-over", "the journal of the hand-over at %s has format %q",
			c.Host(), j.FormatVersion)
	}
	j.version = secret.ResourceVersion
	return j, nil
}

// ErrOvertaken is the error of a run that a newer run has shut out.
var ErrOvertaken = diag.Errorf("wait until the other run ends, or run the same command again, which stops the other run",
	"another run has taken over this hand-over")

// write writes the journal over the version that it was read from, or creates it. If somebody else has written the
// journal since, the error fulfils apierrors.IsConflict or apierrors.IsAlreadyExists. If the API server's answer was
// lost, write reads the journal to find out whether it was written.
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

// same tells whether both journals have the same content.
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

// makeNamespace creates the namespace of the journal.
func makeNamespace(ctx context.Context, c *kube.Client) error {
	err := kube.Retry(ctx, func(ctx context.Context) error {
		return c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: JournalKey.Namespace}})
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the namespace %s: %w", JournalKey.Namespace, err)
	}
	return nil
}
