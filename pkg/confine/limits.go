package confine

import (
	"fmt"
	"time"
)

// Limits of a process.
type Limits struct {
	// Memory, in bytes, of all that a task does at once.
	Memory int64
	// Time is how long it may work on one thing, such as a HelmRelease.
	Time time.Duration
}

// DefaultLimits are far above what fleets need: 5,000 clusters take some 1.5 GiB, and the largest public charts a second or two each, also where
// the machine does much else meanwhile. Who meets them has made a mistake, or means harm.
var DefaultLimits = Limits{Memory: 4 << 30, Time: time.Minute}

func (l Limits) memoryText() string {
	if l.Memory%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", l.Memory>>30)
	}
	return fmt.Sprintf("%d MiB", l.Memory>>20)
}

// maxDeaths is how often a task is begun anew: more things than that are not named one by one.
const maxDeaths = 12

// startTime bounds how long a process may take until it is ready, on a machine that has much else to do.
const startTime = time.Minute
