package checkup

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/preflight"
)

func TestJudgeNeighbours(t *testing.T) {
	source := host.Listener{Program: "flux-system/source-controller", Address: netip.MustParseAddrPort("127.0.0.1:25001")}
	capd := host.Listener{Program: "capd-system/capd-controller-manager", Address: netip.MustParseAddrPort("[::]:19000")}
	for name, test := range map[string]struct {
		n      host.Neighbours
		others bool
		status preflight.Status
		says   []string
	}{
		"private": {host.Neighbours{Private: true}, true, preflight.StatusOK, []string{"cannot reach any address"}},
		"private but for": {
			host.Neighbours{Private: true, Open: []host.Listener{capd}},
			true, preflight.StatusOK,
			[]string{"no address of the host's programs except", "capd-system/capd-controller-manager at [::]:19000"},
		},
		"open, others": {
			host.Neighbours{Open: []host.Listener{source, capd}},
			true, preflight.StatusWarn,
			[]string{"flux-system/source-controller at 127.0.0.1:25001", "fleet repo"},
		},
		"open, others, and why": {
			host.Neighbours{Reason: "seccomp", Open: []host.Listener{source}},
			true,
			preflight.StatusWarn,
			[]string{"seccomp"},
		},
		"open, nobody else": {
			host.Neighbours{Open: []host.Listener{source}},
			false, preflight.StatusOK,
			[]string{"has none", "source-controller"},
		},
		"would be, nobody else":    {host.Neighbours{Reason: "no user namespaces"}, false, preflight.StatusOK, []string{"no user namespaces"}},
		"would be, and others are": {host.Neighbours{Reason: "no user namespaces"}, true, preflight.StatusWarn, []string{"no user namespaces"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := judgeNeighbours(&test.n, test.others)
			if got.Status != test.status || (got.Status == preflight.StatusWarn) != (got.Hint != "") {
				t.Errorf("%+v", got)
			}
			for _, says := range test.says {
				if !strings.Contains(got.Summary, says) {
					t.Errorf("%q does not say %q", got.Summary, says)
				}
			}
		})
	}
}

func TestOthersAmongTheUsers(t *testing.T) {
	const system = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" +
		"sync:x:4:65534:sync:/bin:/bin/sync\n"
	const ann, bob = "ann:x:1000:1000:Ann,,,:/home/ann:/bin/bash\n", "bob:x:1001:1001::/home/bob:/bin/zsh\n"
	for name, test := range map[string]struct {
		passwd string
		own    int
		want   bool
	}{
		"the system's":      {system, 0, false},
		"a person":          {system + ann, 0, true},
		"ourselves":         {system + ann, 1000, false},
		"somebody else":     {system + ann + bob, 1000, true},
		"a service":         {system + "git:x:1002:1002::/srv:/usr/sbin/nologin\nftp:x:1003:1003::/srv:/bin/false\n", 0, false},
		"lines of no user":  {"\n#\nx:y\n" + system, 0, false},
		"without a newline": {system + strings.TrimSpace(bob), 0, true},
	} {
		if got := othersAmong(test.passwd, test.own); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestUsersElsewhere(t *testing.T) {
	for nsswitch, want := range map[string]bool{
		"": false,
		"passwd:         files systemd\ngroup: files sss\n":      false,
		"# passwd: ldap\npasswd: compat # sss\n":                 false,
		"passwd: files [NOTFOUND=return] systemd\n":              false,
		"passwd:         files sss\n":                            true,
		"group: files\n  passwd: files systemd winbind\n":        true,
		"passwd: files [SUCCESS=merge] ldap [NOTFOUND=return]\n": true,
	} {
		if got := usersElsewhere(nsswitch); got != want {
			t.Errorf("%q: %v", nsswitch, got)
		}
	}
}
