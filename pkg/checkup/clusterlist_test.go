package checkup

import (
	"testing"
)

func TestClusterList(t *testing.T) {
	for want, names := range map[string][]string{
		"workload cluster a":                   {"a"},
		"workload clusters a, b, c":            {"a", "b", "c"},
		"workload clusters a, b, c and 2 more": {"a", "b", "c", "d", "e"},
	} {
		if got := clusterList(names); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
