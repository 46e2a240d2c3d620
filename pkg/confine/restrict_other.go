//go:build !linux

package confine

import (
	"os"
	"runtime/metrics"
	"syscall"
	"time"
)

// confinements has none: the process ends with its pipe, and what it gives up it gives up itself.
func confinements() []*syscall.SysProcAttr { return []*syscall.SysProcAttr{nil} }

// killed is not known here.
func killed(*os.ProcessState) bool { return false }

// restrict has a process look at its own memory: these systems know no limit that Go lives with. It looks often, for memory grows fast.
func restrict(s *start) error {
	go func() {
		total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for range time.Tick(20 * time.Millisecond) {
			metrics.Read(total)
			if int64(total[0].Value.Uint64()-total[1].Value.Uint64()) > s.Limits.Memory { //nolint:gosec // no memory is that large
				os.Exit(exitMemory)
			}
		}
	}()
	return nil
}

// widen leaves a pipe as it is.
func widen(*os.File) {}
