package views

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/connect"
	"github.com/fleetctl/fleetctl/pkg/leaving"
	"github.com/fleetctl/fleetctl/pkg/pivot"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// Pivot is what `fleetctl pivot` has done, or would do.
func Pivot(r *pivot.MoveResult) View { return of(r, pivotView) }

// Backup is the snapshot that `fleetctl backup` has taken.
func Backup(r *pivot.BackupResult) View { return of(r, backupView) }

// Restore is what `fleetctl restore` has done, or what the snapshot holds.
func Restore(r *pivot.RestoreResult) View { return of(r, restoreView) }

// Detach is what `fleetctl cluster detach` has left, or would leave.
func Detach(r *leaving.DetachResult) View { return of(r, detachView) }

// Drain is what `fleetctl cluster drain` has deleted, or would delete.
func Drain(r *leaving.DrainResult) View { return of(r, drainView) }

// Connect is the management cluster that this machine knows now.
func Connect(r *connect.Result) View { return of(r, connectView) }

func pivotView(w io.Writer, r *pivot.MoveResult) error {
	switch {
	case r.Plan != nil:
		ui.Fprintf(w, "%s would hand over to %s: %s\n", r.Plan.Source, r.Plan.Target, countsText(r.Plan.Counts))
		if r.Plan.UnderWay != "" {
			ui.Fprintf(w, "It is under way already: %s.\n", r.Plan.UnderWay)
		}
		for _, name := range r.Plan.Clusters {
			ui.Fprintf(w, "  %s\n", name)
		}
		for _, wait := range r.Plan.Waits {
			ui.Fprintf(w, "It would wait: %s\n", wait)
		}
		for _, left := range r.Plan.Left {
			ui.Fprintf(w, "It cannot take along: %s\n", left)
		}
		for _, note := range r.Plan.Untried {
			ui.Fprintf(w, "Not known: %s\n", note)
		}
	case r.Outcome == "undone":
		ui.Fprintf(w, "The hand-over to %s is undone.\n", r.Report.Target)
	case r.Report != nil:
		ui.Fprintf(w, "%s has taken over from %s: %s\n", r.Report.Target, r.Report.Source, countsText(r.Report.Moved))
		ui.Fprintf(w, "Its kubeconfig: %s\n", r.Kubeconfig)
	default:
		ui.Fprintf(w, "No hand-over is under way; nothing to do.\n")
	}
	for _, next := range r.Next {
		ui.Fprintf(w, "  %s\n", next)
	}
	return nil
}

// Counts describes how many objects of each kind there are, for a question before the command acts.
func Counts(counts map[string]int) string { return countsText(counts) }

// countsText is text such as "3 Clusters, 12 Machines".
func countsText(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	total := 0
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		total += counts[kind]
		parts = append(parts, fmt.Sprintf("%s %d", kind, counts[kind]))
	}
	if len(parts) == 0 {
		return plain.Count(total, "object")
	}
	return fmt.Sprintf("%s (%s)", plain.Count(total, "object"), strings.Join(parts, ", "))
}

func backupView(w io.Writer, r *pivot.BackupResult) error {
	ui.Fprintf(w, "Snapshot %s of %s: %s, %s. It is in %s.\n", r.Snapshot, r.Cluster, plain.Count(len(r.Clusters), "cluster"),
		countsText(r.Counts), r.Place)
	for _, m := range r.Missing {
		ui.Fprintf(w, "  %s\n", m)
	}
	for _, next := range r.Next {
		ui.Fprintf(w, "  %s\n", next)
	}
	return nil
}

func restoreView(w io.Writer, r *pivot.RestoreResult) error {
	switch r.Outcome {
	case "nothing-to-do":
		ui.Fprintf(w, "No restore of %s is under way; nothing to do.\n", r.Cluster)
	case "undone":
		ui.Fprintf(w, "The restore of %s is undone.\n", r.Cluster)
	case "fenced":
		ui.Fprintf(w, "%s is fenced: its providers and its Flux are stopped, and only the restoring tool may write. Its kubeconfig: %s\n",
			r.Cluster, r.Kubeconfig)
	case "restored":
		if r.Snapshot == nil {
			aroundView(w, r)
			break
		}
		ui.Fprintf(w, "%s has what the snapshot %s holds: %s\n", r.Cluster, r.Snapshot.ID, countsText(r.Report.Moved))
		ui.Fprintf(w, "The snapshot does not hold objects that were made after %s.\nIts kubeconfig: %s\n",
			r.Snapshot.Taken.Format(time.RFC3339), r.Kubeconfig)
	default:
		switch {
		case r.Snapshot != nil:
			snapshotView(w, r)
		case r.Arrival != nil:
			arrivalView(w, r)
		default:
			ui.Fprintf(w, "%s would be made and fenced.\n", r.Cluster)
		}
	}
	for _, next := range r.Next {
		ui.Fprintf(w, "  %s\n", next)
	}
	return nil
}

// aroundView shows the result of a restore by another tool.
func aroundView(w io.Writer, r *pivot.RestoreResult) {
	ui.Fprintf(w, "%s manages what was restored: %s\n", r.Cluster, countsText(r.Report.Moved))
	if a := r.Arrival; a != nil {
		ui.Fprintf(w, "Repaired: the owners of %s, and the status of %s.\n", plain.Count(a.Owners, "object"), plain.Count(a.Statuses, "object"))
	}
	ui.Fprintf(w, "The backup does not hold objects that were made after it.\nIts kubeconfig: %s\n", r.Kubeconfig)
}

// arrivalView shows the objects that another tool has brought so far.
func arrivalView(w io.Writer, r *pivot.RestoreResult) {
	a := r.Arrival
	ui.Fprintf(w, "%s is fenced. Objects that have come so far: %s\n", r.Cluster, countsText(a.Counts))
	for _, name := range a.Clusters {
		ui.Fprintf(w, "  %s\n", name)
	}
	ui.Fprintf(w, "To be repaired: the owners of %s, and the status of %s.\n", plain.Count(a.Owners, "object"),
		plain.Count(a.Statuses, "object"))
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"Paused when the backup was taken, and left so:", a.Paused},
		{"Did not come:", a.Absent},
		{"Without an owner, which its provider has to find again:", a.Unknown},
	} {
		if len(part.lines) > 0 {
			ui.FprintText(w, part.title)
		}
		for _, line := range part.lines {
			ui.Fprintf(w, "  %s\n", line)
		}
	}
}

func snapshotView(w io.Writer, r *pivot.RestoreResult) {
	s := r.Snapshot
	ui.Fprintf(w, "Snapshot %s of %s, taken %s by %s: %s\n", s.ID, r.Cluster, s.Taken.Format(time.RFC3339), s.By, countsText(s.Counts))
	for _, name := range s.Clusters {
		ui.Fprintf(w, "  %s\n", name)
	}
	ui.FprintText(w, "It was taken with:")
	for _, p := range s.Providers {
		ui.Fprintf(w, "  %s\n", p)
	}
	if len(r.Others) > 0 {
		ui.Fprintf(w, "Others in %s:\n", r.Place)
	}
	for _, id := range r.Others {
		ui.Fprintf(w, "  %s\n", id)
	}
}

func drainView(w io.Writer, r *leaving.DrainResult) error {
	goes, stays := r.Going(), r.Staying()
	switch {
	case r.Outcome == "cancelled":
		_, err := ui.Fprintf(w, "Flux goes on with the cluster %s, and makes the drained resources again.\n", r.Cluster)
		return err
	case len(goes) == 0:
		ui.Fprintf(w, "The cluster %s has nothing in its cloud that draining deletes.\n", r.Cluster)
	case r.Outcome == "planned":
		ui.Fprintf(w, "Draining the cluster %s would delete in its cloud:\n", r.Cluster)
	default:
		ui.Fprintf(w, "The cluster %s is drained. This is deleted in its cloud:\n", r.Cluster)
	}
	for _, item := range goes {
		ui.Fprintf(w, "  %s\n", item)
	}
	for _, item := range stays {
		ui.Fprintf(w, "It stays: %s\n", item)
	}
	for _, name := range r.Suspended {
		ui.Fprintf(w, "Suspended on %s: %s\n", r.ManagementCluster, name)
	}
	for _, next := range r.Next {
		ui.Fprintf(w, "  %s\n", next)
	}
	return nil
}

func detachView(w io.Writer, r *leaving.DetachResult) error {
	if r.Outcome == "undone" {
		_, err := ui.Fprintf(w, "%s manages the cluster %s again, as before.\n", r.ManagementCluster, r.Cluster)
		return err
	}
	if r.Outcome == "planned" {
		ui.Fprintf(w, "%s would forget the cluster %s. These would be left, with nobody to manage them:\n", r.ManagementCluster, r.Cluster)
	} else {
		ui.Fprintf(w, "%s has forgotten the cluster %s. These are left, with nobody to manage them:\n", r.ManagementCluster, r.Cluster)
	}
	for _, left := range r.Left {
		ui.Fprintf(w, "  %s %s  %s\n", left.Kind, left.Name, left.ProviderID)
	}
	ui.FprintText(w, "  its networks, load balancers and disks, which the snapshot names")
	for _, name := range r.Suspended {
		ui.Fprintf(w, "Suspended, until it is taken out of Git: %s\n", name)
	}
	if r.Kubeconfig != "" {
		ui.Fprintf(w, "Its kubeconfig: %s\n", r.Kubeconfig)
	}
	if r.Snapshot != "" {
		ui.Fprintf(w, "The objects as they were, Secrets included: %s\n", r.Snapshot)
	}
	for _, next := range r.Next {
		ui.Fprintf(w, "  %s\n", next)
	}
	return nil
}

func connectView(w io.Writer, r *connect.Result) error {
	ui.Fprintf(w, "This machine knows the management cluster %s of fleet %s now, at %s.\n", r.Cluster, r.Fleet, r.Server)
	if r.MadeBy != "" {
		ui.Fprintf(w, "It was made by %s.\n", r.MadeBy)
	}
	if len(r.Clusters) > 0 {
		ui.Fprintf(w, "It manages %s: %s\n", plain.Count(len(r.Clusters), "cluster"), strings.Join(r.Clusters, ", "))
	}
	for _, next := range r.Next {
		ui.Fprintf(w, "  %s\n", next)
	}
	return nil
}
