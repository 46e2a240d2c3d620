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

// checkNeighbours tells what other users of this machine reach of the host's programs. Nothing fails because of it: who they are is for the
// machine's owner to know.
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
		users = nil // then there may be others
	}
	sources, unknown := os.ReadFile("/etc/nsswitch.conf")
	if unknown != nil {
		sources = nil // without it a machine knows those of the file alone
	}
	return judgeNeighbours(n, err != nil || othersAmong(string(users), os.Geteuid()) || usersElsewhere(string(sources)))
}

// usersElsewhere tells whether the content of /etc/nsswitch.conf has the machine ask somebody else, such as a directory, who its users are.
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

// judgeNeighbours puts into words what others of the machine reach, where there are any.
func judgeNeighbours(n *host.Neighbours, others bool) preflight.Result {
	open := make([]string, 0, len(n.Open))
	for _, l := range n.Open {
		open = append(open, l.String())
	}
	switch list := strings.Join(open, ", "); {
	case n.Private && list == "":
		return preflight.OK("what the host's programs listen on is out of their reach")
	case n.Private:
		return preflight.OK("what the host's programs listen on is out of their reach, but for in-memory clusters: %s", list)
	case !others:
		return preflight.OK("other users could reach what the host's programs listen on, but this machine has none: %s", cmp.Or(n.Reason, list))
	default:
		return preflight.Warn("docs/embedded.md says what they can read and do there; use --host kind where that matters",
			"they can reach what the host's programs listen on, the whole fleet repo among it: %s", cmp.Or(n.Reason, list))
	}
}

// firstPerson is the first number of a user who is a person, by the customs of Linux.
const firstPerson = 1000

// othersAmong tells whether the content of /etc/passwd has another person than the user of that number, who may log in.
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
