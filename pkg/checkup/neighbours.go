package checkup

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

// checkNeighbours tells what other users of this machine can reach of the host's programs. It never fails, because only
// the machine's owner knows who these users are.
func (c *checks) checkNeighbours(ctx context.Context) preflight.Result {
	s := c.session
	among, ok := s.Host.(host.Exposed)
	if !ok {
		return preflight.Skip("its programs are not processes of this machine")
	}
	n, err := among.Neighbours(ctx)
	if err != nil {
		return preflight.FailWith(err)
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		users = nil // the machine may then have other users
	}
	sources, unknown := os.ReadFile("/etc/nsswitch.conf")
	if unknown != nil {
		sources = nil // a machine without this file knows only the users in /etc/passwd
	}
	return judgeNeighbours(n, err != nil || othersAmong(string(users), os.Geteuid()) || usersElsewhere(string(sources)))
}

// usersElsewhere tells whether the content of /etc/nsswitch.conf names another source of users, such as a directory.
func usersElsewhere(nsswitch string) bool {
	for line := range strings.Lines(nsswitch) {
		line, _, _ = strings.Cut(line, "#")
		named, ok := strings.CutPrefix(strings.TrimSpace(line), "passwd:")
		if !ok {
			continue
		}
		for source := range strings.FieldsSeq(named) {
			switch {
			case strings.HasPrefix(source, "["): // what to do about an answer
			case slices.Contains([]string{"files", "compat", "db", "systemd"}, source):
			default:
				return true
			}
		}
	}
	return false
}

// judgeNeighbours describes what other users of the machine can reach.
func judgeNeighbours(n *host.Neighbours, others bool) preflight.Result {
	open := make([]string, 0, len(n.Open))
	for _, l := range n.Open {
		open = append(open, l.String())
	}
	switch list := strings.Join(open, ", "); {
	case n.Private && list == "":
		return preflight.OK("they cannot reach any address of the host's programs")
	case n.Private:
		return preflight.OK("they can reach no address of the host's programs except in-memory clusters: %s", list)
	case !others:
		return preflight.OK("other users could reach the addresses of the host's programs, but this machine has none: %s", cmp.Or(n.Reason, list))
	default:
		return preflight.Warn("docs/embedded.md says what they can read and do there; use --host kind if that matters",
			"they can reach the addresses of the host's programs, and read the whole fleet repo: %s", cmp.Or(n.Reason, list))
	}
}

// firstPerson is the first user number of a person, by the customs of Linux.
const firstPerson = 1000

// othersAmong tells whether the content of /etc/passwd has another person who may log in, besides the user with that
// number.
func othersAmong(passwd string, own int) bool {
	const number, shell, fields = 2, 6, 7
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != fields {
			continue
		}
		uid, err := strconv.Atoi(f[number])
		if err != nil || uid < firstPerson || uid == own || strings.HasSuffix(f[shell], "/nologin") || strings.HasSuffix(f[shell], "/false") {
			continue
		}
		return true
	}
	return false
}
