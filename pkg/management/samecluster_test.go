package management

import (
	"testing"
)

func TestSameCluster(t *testing.T) {
	for _, c := range []struct {
		wanted, full string
		same         bool
	}{
		{"perm", "perm/perm", true},
		{"perm/perm", "perm/perm", true},
		{"erm", "perm/perm", false},
		{"other/perm", "perm/perm", false},
		{"a-very-long-name-indeed", "x/y", false},
	} {
		if got := SameCluster(c.wanted, c.full); got != c.same {
			t.Errorf("SameCluster(%q, %q) = %v", c.wanted, c.full, got)
		}
	}
}
