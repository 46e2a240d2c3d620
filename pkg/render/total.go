package render

import (
	"fmt"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// These are the limits of a fleet, for all its management clusters together. The confined process sends the result to its parent, which has
// no limits of its own. The 150,000 objects of 5,000 generated clusters are far below the limits.
const (
	MaxObjects  = 1_000_000
	MaxFindings = 100_000
	maxTotal    = 512 << 20 // bytes of objects
)

// sizeOfTarget is the size of each further target of an object, in bytes.
const sizeOfTarget = 16

// total counts the objects of a fleet so far.
type total struct {
	objects, bytes int
	largest        Owner
	most           int // bytes of the objects of largest, the owner with most
}

// add counts the objects of an owner, and more clusters that get the same objects. If that is too much, it returns a finding, and the
// caller drops the objects.
func (t *total) add(owner Owner, at Source, all []*Object, more int) diag.Findings {
	size := more * sizeOfTarget
	for _, o := range all {
		size += len(o.JSON)
	}
	if size > t.most {
		t.largest, t.most = owner, size
	}
	if t.objects+len(all) <= MaxObjects && t.bytes+size <= maxTotal {
		t.objects, t.bytes = t.objects+len(all), t.bytes+size
		return nil
	}
	return diag.Findings{{
		Severity: diag.SeverityError, Rule: RuleLimits, File: at.File, Line: at.Line,
		Summary: fmt.Sprintf("%s: with its %s (%d MiB) the fleet has more than %d objects, or %d MiB of them: they are not rendered. "+
			"Most of it comes from %s (%d MiB)", owner, plain.Count(len(all), "object"), size>>20, MaxObjects, maxTotal>>20, t.largest,
			t.most>>20),
		Hint: "render a part of the fleet with --environment or --cluster",
	}}
}

// fewer returns at most MaxFindings findings. The last one then says how many there are.
func fewer(all diag.Findings) diag.Findings {
	if len(all) <= MaxFindings {
		return all
	}
	out := all[: MaxFindings-1 : MaxFindings-1]
	return append(out, diag.Finding{
		Severity: diag.SeverityError, Rule: RuleLimits, File: all[len(out)].File,
		Summary: fmt.Sprintf("there are %s; the rest is left out", plain.Count(len(all), "finding")),
		Hint:    "correct the first ones",
	})
}
