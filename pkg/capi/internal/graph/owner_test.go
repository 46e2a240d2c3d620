package graph

import "testing"

func TestOwnerDamaged(t *testing.T) {
	for record, want := range map[string]bool{
		"{{{": true, `"eu"`: true, `{"epoch":3}`: true, "{}": true, "": true,
		Owner{Fleet: "f", ManagementCluster: "eu", UID: "u", Epoch: 1}.String(): false,
		`{"managementCluster":"eu"}`: false, // an early release may have written less
	} {
		if got := OwnerDamaged(map[string]string{OwnerMark: record}); got != want {
			t.Errorf("%q: %t", record, got)
		}
	}
	if OwnerDamaged(nil) {
		t.Error("a Cluster without a record")
	}
}
