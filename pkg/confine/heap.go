package confine

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// roomyHeap is the size of a command's heap, in bytes, below which Go collects no garbage. A command that reads a whole fleet makes much
// garbage in a second or two and then ends. Collecting it as usual costs a quarter of the time.
const roomyHeap = 256 << 20

// CollectLate lets the heap of the process grow to roomyHeap before Go collects garbage. Above roomyHeap, Go collects as usual. Call the
// returned function when the command is done. If GOGC or GOMEMLIMIT is set, CollectLate changes nothing.
func CollectLate() (restore func()) { return collectLate(math.MaxInt64) }

// collectBelow does the same for a process that may have so much memory: near to that it collects whatever there is.
func collectBelow(memory int64) { _ = collectLate(memory / 10 * 9) }

func collectLate(most int64) (restore func()) {
	if (os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "") && os.Getenv(marker) != untuned {
		return func() {}
	}
	c := &collector{percent: debug.SetGCPercent(-1), most: most}
	if c.percent < 0 {
		c.percent = 100 // Go's own, where environment has put it off
	}
	debug.SetMemoryLimit(min(roomyHeap, most))
	c.afterNext()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.done = true
		debug.SetMemoryLimit(math.MaxInt64)
		debug.SetGCPercent(c.percent)
	}
}

type collector struct {
	percent int   // as it was before
	most    int64 // that memory may grow to
	mu      sync.Mutex
	done    bool
}

// follow sets after each collection how much garbage there may be at the next: up to roomyHeap, or percent of what lives where that is
// more.
func (c *collector) follow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	debug.SetMemoryLimit(c.most)
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if n := int(live[0].Value.Uint64()); n > 0 { //nolint:gosec // no heap is that large
		debug.SetGCPercent(max(c.percent, (roomyHeap-n)*100/n))
	}
	c.afterNext()
}

// afterNext has follow run once garbage was collected.
func (c *collector) afterNext() {
	runtime.AddCleanup(new([64]byte), func(c *collector) { c.follow() }, c)
}
