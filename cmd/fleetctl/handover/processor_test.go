//go:build e2e

package handover

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// processorTime is the processor time of this process and of its children, ended or running: programs, API servers, etcd.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			t.Fatal(err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total + runningChildren(t)
}

// runningChildren is the processor time of the running children: API servers and etcd.
func runningChildren(t testing.TB) time.Duration {
	t.Helper()
	const tick = 10 * time.Millisecond // USER_HZ, on every Linux
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var total time.Duration
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
		var parent int
		var user, system int64
		wanted := bytes.Join([][]byte{fields[1], fields[11], fields[12]}, []byte(" "))
		if _, err := fmt.Sscan(string(wanted), &parent, &user, &system); err != nil {
			t.Fatal(err)
		}
		if parent == os.Getpid() {
			total += time.Duration(user+system) * tick
		}
	}
	return total
}
