package confine

import (
	"fmt"
	"time"
)

// Limits are the limits of a process.
type Limits struct {
	// Memory is the limit for the memory of the process, in bytes.
	Memory int64
	// Time is the limit for the work on one thing, such as a HelmRelease. All things of a task may take together times as long.
	Time time.Duration
}

// DefaultLimits are meant to be far above what fleets need: to validate 1,000 generated clusters took 330 MB before it had a process of its
// own, and a release takes milliseconds. How much 5,000 take in that process is still to be measured.
var DefaultLimits = Limits{Memory: 4 << 30, Time: time.Minute}

func (l Limits) memoryText() string {
	if l.Memory%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", l.Memory>>30)
	}
	return fmt.Sprintf("%d MiB", l.Memory>>20)
}

// together is how many times as long as on one thing a process may work on all of them: a repo can have thousands, each of which takes a
// little less than it may. What comes later is refused, and who asks for it says so.
const together = 10

// maxResult bounds the bytes of a result, because the process that reads it has no limits.
const maxResult = 1 << 30

// maxDeaths is how many things a process may die of. Then only what has worked before is worked on once more, and of all
// else it is said that it was not tried.
const maxDeaths = 12

// startTime bounds the start of a process, on a busy machine.
const startTime = time.Minute
