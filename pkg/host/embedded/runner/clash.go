package runner

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// clash describes the end of a program that could not listen on a port.
type clash struct {
	at   time.Time // of the end
	text string    // empty if the end had another reason
}

// taken matches the error of Go's net package for a port on which another program listens. Controllers are written in Go.
var taken = regexp.MustCompile(`listen tcp[46]? \S*:(\d+): bind: address already in use`)

// clashOf names the port that an ended program needs and cannot have, the program that has the port, and the way out. Ports that a flag can
// move are left out, because the runner chooses other ports for them.
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
			return fmt.Sprintf("port %d is taken by %s, and no flag of this program moves the port: end the other program, or use --host kind",
				port, r.nameOf(holder, program))
		}
	}
	return ""
}

// nameOf is the name of a process in messages: its Deployment, if it belongs to this host, or else its program.
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
