//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// proc is one process of this machine, as /proc tells of it.
type proc struct {
	pid     int
	parent  int
	name    string
	command string // the arguments, with spaces between them
	program string // its path
	dir     string // in which it works
	rss     int64  // bytes
	cpu     time.Duration
}

func (p proc) belongsTo(folder string) bool {
	within := func(path string) bool {
		return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
	}
	return within(p.program) || within(p.dir) || slices.ContainsFunc(strings.Fields(p.command), within)
}

// processTable lists the processes of this machine. It leaves out zombies, and processes that end while it reads them.
func processTable(tb testing.TB) map[int]proc {
	tb.Helper()
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		tb.Fatal(err)
	}
	out := map[int]proc{}
	for _, dir := range found {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			tb.Fatal(err)
		}
		if p, ok := readProcess(dir); ok {
			p.pid = pid
			out[pid] = p
		}
	}
	return out
}

// clockTick is the unit of CPU time in /proc, the same on all Linux systems that Go runs on.
const clockTick = 10 * time.Millisecond

// readProcess reads one. The name, field 2 of stat, stands in parentheses and may hold anything: fields are counted from behind it.
func readProcess(dir string) (proc, bool) {
	const first, parent, user, system, pages = 3, 4, 14, 15, 24
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	end := bytes.LastIndexByte(raw, ')')
	if err != nil || end < 0 {
		return proc{}, false
	}
	fields := strings.Fields(string(raw[end+1:]))
	if len(fields) <= pages-first || fields[0] == "Z" || fields[0] == "X" {
		return proc{}, false
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(fields[field-first], 10, 64) // the kernel writes numbers
		return n
	}
	p := proc{
		parent: int(number(parent)), name: string(raw[bytes.IndexByte(raw, '(')+1 : end]),
		rss: number(pages) * int64(os.Getpagesize()), cpu: time.Duration(number(user)+number(system)) * clockTick,
	}
	// Kernel threads have none of these. A process that ends loses the first two before it becomes a zombie, and then the folder.
	args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	p.command = strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))
	p.program, _ = os.Readlink(filepath.Join(dir, "exe"))
	p.dir, _ = os.Readlink(filepath.Join(dir, "cwd"))
	return p, p.command != "" || p.program != ""
}

// family is those processes of the table that one of the roots has started, and the roots themselves.
func family(table map[int]proc, root func(pid int, p proc) bool) map[int]proc {
	out := map[int]proc{}
	var belongs func(pid int) bool
	seen := map[int]bool{}
	belongs = func(pid int) bool {
		p, ok := table[pid]
		if !ok {
			return false
		}
		if yes, known := seen[pid]; known {
			return yes
		}
		seen[pid] = false // a table that was read while it changed could have a circle
		seen[pid] = root(pid, p) || belongs(p.parent)
		return seen[pid]
	}
	for pid, p := range table {
		if belongs(pid) {
			out[pid] = p
		}
	}
	return out
}
