package runner

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// clash is what a program's end has to do with a port that it could not have.
type clash struct {
	at   time.Time // of the end that it tells of
	text string    // empty if that had another reason
}

// taken matches what Go's net package says of a port that another program listens on; controllers are written in Go.
var taken = regexp.MustCompile(`listen tcp[46]? \S*:(\d+): bind: address already in use`)

// clashOf says which port a program that has ended needs and cannot have, who has it, and the way out. Ports that a flag moves are not
// among them: of those it gets others.
func (r *Runner) clashOf(rec *record, v *view) string {
	exit := v.status.LastExit
	if v.status.Phase != process.PhaseBackOff || exit == nil {
		return ""
	}
	if !rec.clash.at.Equal(exit.At) {
		rec.clash = clash{exit.At, r.lookForClash(rec, exit.Lines)}
	}
	return rec.clash.text
}

func (r *Runner) lookForClash(rec *record, log []string) string {
	i := rec.current()
	if i == nil {
		return ""
	}
	ports := slices.Collect(maps.Keys(i.plan.fixed))
	for _, line := range log {
		if m := taken.FindStringSubmatch(line); m != nil {
			if port, ok := portNumber(m[1]); ok && !slices.Contains(slices.Collect(maps.Values(i.plan.moved)), port) {
				ports = append(ports, port)
			}
		}
	}
	slices.Sort(ports)
	for _, port := range ports {
		if holder, program, listens := process.Listener(int(port), r.opts.Network.Process()); listens {
			return fmt.Sprintf("port %d, which no flag of this program moves, is taken by %s: end that one, or use --host kind, where each program has ports of its own",
				port, r.nameOf(holder, program))
		}
	}
	return ""
}

// nameOf is what to call a process: by its Deployment where it is one of this host.
func (r *Runner) nameOf(holder process.Identity, program string) string {
	if holder == (process.Identity{}) {
		return "a program of another user"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, rec := range r.records {
		if i := rec.current(); i != nil && i.view().status.Identity == holder {
			return fmt.Sprintf("Deployment %s (process %d)", key, holder.PID)
		}
	}
	return fmt.Sprintf("%s (process %d)", program, holder.PID)
}
