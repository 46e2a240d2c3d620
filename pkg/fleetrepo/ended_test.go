package fleetrepo

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The note that a management cluster has ended names the run that ended it, and does not count as the hand-over of a cluster.
func TestNoteEnded(t *testing.T) {
	r := openMasters(t)
	run := &HandedOver{At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), By: "ci on runner-7: \"x\"", Version: "v1.2.3"}
	for range 2 {
		e, err := r.NoteEnded("root", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", run)
		_, r = done(t, r, e, err)
	}
	note := string(must(r.read("providers/root/v1/handed-over/root.yaml")))
	for _, want := range []string{"ended:", "2026-11-23T12:00:00Z", "ci on runner-7", "v1.2.3"} {
		if strings.Count(note, want) != 1 {
			t.Errorf("%q is not in it once:\n%s", want, note)
		}
	}
	if m, err := r.Master("eu", "prod"); err != nil || len(m.Begun) > 0 || slices.Contains(m.Clusters, ClusterName{}) {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := r.NoteEnded("nobody", "", run); err == nil {
		t.Error("one that the fleet does not have has ended")
	}
}
