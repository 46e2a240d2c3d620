package v1alpha1

import "testing"

// Public forges have further addresses and take paths in any case. On other hosts only a guess does.
func TestSameRepository(t *testing.T) {
	for _, c := range []struct {
		a, b       string
		same, seem bool
	}{
		{"https://github.com/Acme/Fleet", "ssh://git@github.com/acme/fleet.git", true, true},
		{"https://github.com/acme/fleet", "ssh://git@ssh.github.com:443/acme/fleet.git", true, true},
		{"git@github.com:acme/fleet", "ssh://git@ssh.github.com:443/acme/fleet.git", true, true},
		{"git@gitlab.com:acme/fleet", "ssh://git@altssh.gitlab.com:443/acme/fleet.git", true, true},
		{"https://github.com/acme/fleet", "https://ssh.github.com/acme/fleet", false, false},
		{"https://github.com/acme/fleet", "https://github.com/acme/fleet2", false, false},
		{"https://dev.azure.com/acme/infra/_git/fleet", "git@ssh.dev.azure.com:v3/acme/infra/fleet", true, true},
		{"https://dev.azure.com/acme/_git/fleet", "ssh://git@ssh.dev.azure.com/v3/Acme/fleet/fleet", true, true},
		{"https://dev.azure.com/acme/infra/_git/fleet", "git@ssh.dev.azure.com:v3/acme/other/fleet", false, false},
		{"https://gitlab.example.com/Acme/Fleet", "https://gitlab.example.com/acme/fleet.git", false, true},
		{"https://gitlab.example.com/acme/fleet", "https://gitlab.example.org/acme/fleet", false, false},
		{"https://git.example.com/Acme/Fleet", "https://git.example.com/acme/fleet", false, false},
		{"https://git.example.com/acme/_git/fleet", "https://git.example.com/acme/fleet", false, false},
	} {
		for _, urls := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := SameRepository(urls[0], urls[1]); got != c.same {
				t.Errorf("SameRepository(%q, %q) is %t", urls[0], urls[1], got)
			}
			if got := SeemsSameRepository(urls[0], urls[1]); got != c.seem {
				t.Errorf("SeemsSameRepository(%q, %q) is %t", urls[0], urls[1], got)
			}
		}
	}
}
