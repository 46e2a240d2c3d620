package handover

import "testing"

// A deleted journal of a source is derived from the journal of a target in the middle of a hand-over from this source, and from no
// other journal.
func TestRecall(t *testing.T) {
	party := Party{Name: "root", UID: "1"}
	in := func(change func(*Journal)) *Journal {
		j := &Journal{ID: "a", Role: RoleTarget, Phase: PhaseCommitted, Source: party, Target: Party{Name: "eu", UID: "2"}, version: "7"}
		if change != nil {
			change(j)
		}
		return j
	}
	for name, c := range map[string]struct {
		source, target *Journal
		recalled       bool
	}{
		"in the middle":                  {target: in(nil), recalled: true},
		"over":                           {target: in(func(j *Journal) { j.Phase = PhaseReleased })},
		"from another source":            {target: in(func(j *Journal) { j.Source.UID = "3" })},
		"a restore":                      {target: in(func(j *Journal) { j.Snapshot = "s" })},
		"a restore by another tool":      {target: in(func(j *Journal) { j.Around = true })},
		"the target is another's source": {target: in(func(j *Journal) { j.Role = RoleSource })},
		"the source has its own":         {source: in(func(j *Journal) { j.ID, j.Role = "b", RoleSource }), target: in(nil)},
		"nothing anywhere":               {},
	} {
		r := &run{source: &side{party: party, journal: c.source}, target: &side{journal: c.target}}
		before := r.source.journal
		r.recall()
		now := r.source.journal
		if (now != before) != c.recalled {
			t.Errorf("%s: %+v", name, now)
		}
		if c.recalled && (now.Role != RoleSource || now.ID != "a" || now.version != "" || !r.committed()) {
			t.Errorf("%s: %+v", name, now)
		}
	}
}

// Before an abort, a deleted journal of a target is derived from the journal of a source that is in the middle of it.
func TestRecallTarget(t *testing.T) {
	for name, c := range map[string]struct {
		phase    Phase
		standby  bool
		recalled bool
	}{
		"fenced":                {phase: PhaseFenced, recalled: true},
		"copied":                {phase: PhaseCopied, recalled: true},
		"fenced, not noted yet": {phase: PhasePlanned, recalled: true},
		"an abort was cut off":  {phase: PhaseAborting, recalled: true},
		"over":                  {phase: PhaseReleased},
		"of a standby":          {phase: PhaseCopied, standby: true},
	} {
		source := &Journal{ID: "a", Role: RoleSource, Phase: c.phase, Activates: c.standby, version: "7"}
		r := &run{source: &side{journal: source}, target: &side{}}
		r.recallTarget()
		now := r.target.journal
		if (now != nil) != c.recalled {
			t.Errorf("%s: %+v", name, now)
		}
		if now != nil && (now.Role != RoleTarget || now.ID != "a" || now.version != "") {
			t.Errorf("%s: %+v", name, now)
		}
	}
}
