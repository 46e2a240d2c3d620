package review

import (
	"slices"
	"testing"
)

// Clusters that go are named one by one, also two of one name; what happens to several in no environment names none.
func TestGroup(t *testing.T) {
	found := []Impact{
		{Kind: ImpactDeleteCluster, Cluster: "edge", Machines: 1, Reason: "gone"},
		{Kind: ImpactDeleteCluster, Cluster: "edge", Machines: 2, Reason: "gone"},
		{Kind: ImpactRemovePool, Cluster: "a", Pool: "md", From: "1"},
		{Kind: ImpactRemovePool, Cluster: "b", Pool: "md", From: "1"},
		{Kind: ImpactRemovePool, Environment: "dev", Cluster: "a", Pool: "md", From: "1"},
		{Kind: ImpactRemovePool, Environment: "dev", Cluster: "b", Pool: "md", From: "1"},
	}
	var got []string
	for _, i := range group(found) {
		got = append(got, i.Summary)
	}
	want := []string{
		"deletes cluster edge (1 machine): gone", "deletes cluster edge (2 machines): gone",
		"removes pool md of 2 clusters (1 machine)", "removes pool md of 2 clusters of dev (1 machine)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
