package handover

// Begun tells whether a hand-over has begun since the journal was before: it is under way, or it is another one. Both may be nil. The
// journal of an abort is that of before again.
func (j *Journal) Begun(before *Journal) bool {
	return j.Active() || j != nil && (before == nil || j.ID != before.ID)
}
