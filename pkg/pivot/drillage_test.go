package pivot

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/snapshot"
)

// A snapshot from a machine whose clock is far ahead does not pass for a new one.
func TestDrillReadsAge(t *testing.T) {
	for _, c := range []struct {
		max, age time.Duration
		says     string
	}{
		{age: 1000 * time.Hour},
		{age: -1000 * time.Hour},
		{max: time.Hour, age: 59 * time.Minute},
		{max: time.Hour, age: 61 * time.Minute, says: "is 1h1m0s old"},
		{max: time.Second, age: 12 * time.Second, says: "is 12s old, and may be 1s"},
		{max: time.Hour, age: -time.Minute},
		{max: time.Hour, age: -90 * time.Minute, says: "it will be taken in 1h30m0s"},
	} {
		d := &drill{opts: DrillOptions{MaxAge: c.max}, snap: &snapshot.Snapshot{ID: "20261001T120000Z-abcdef"}, result: &DrillResult{}}
		d.readAge(c.age)
		if found := d.result.Findings; (c.says == "") != (len(found) == 0) ||
			len(found) > 0 && (found[0].Severity != diag.SeverityError || !strings.Contains(found[0].Summary, c.says)) {
			t.Errorf("%s of %s: %+v", c.age, c.max, found)
		}
	}
}
