package components

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
)

// An open version of cert-manager is the locked one, unless the lock is going to have several versions: then a check of that lock could not
// tell which one is meant.
func TestPreferLocked(t *testing.T) {
	const mirror = "https://mirror.example.com/cert-manager.yaml"
	type all = []v1alpha1.CertManager
	certs := func(version, url string) v1alpha1.CertManager {
		return v1alpha1.CertManager{Version: version, URL: url}
	}
	for name, tc := range map[string]struct {
		declared     all
		locked, want []string
	}{
		"open":                         {all{certs("", "")}, []string{"v1.20.0"}, []string{"v1.20.0"}},
		"no lock":                      {all{certs("", "")}, nil, []string{""}},
		"both open":                    {all{certs("", ""), certs("", "")}, []string{"v1.20.0"}, []string{"v1.20.0", "v1.20.0"}},
		"the other has the locked one": {all{certs("v1.20.0", ""), certs("", "")}, []string{"v1.20.0"}, []string{"v1.20.0", "v1.20.0"}},
		"the other has another":        {all{certs("v1.21.0", ""), certs("", "")}, []string{"v1.20.0"}, []string{"v1.21.0", ""}},
		"the other is below":           {all{certs("", ""), certs("v1.21.0", "")}, []string{"v1.20.0"}, []string{"", "v1.21.0"}},
		"the other is another place's": {all{certs("v1.21.0", mirror), certs("", "")}, []string{"v1.20.0"}, []string{"v1.21.0", "v1.20.0"}},
		"the lock has several":         {all{certs("", "")}, []string{"v1.20.0", "v1.21.0"}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := &v1alpha1.Fleet{}
			for _, c := range tc.declared {
				fleet.Spec.ManagementClusters = append(fleet.Spec.ManagementClusters, v1alpha1.ManagementCluster{CertManager: c})
			}
			lock := &v1alpha1.Lock{}
			for _, version := range tc.locked {
				lock.Add(LockedCertManager(version, "", nil))
			}
			preferLocked(fleet, lock)
			var got []string
			for _, m := range fleet.Spec.ManagementClusters {
				got = append(got, m.CertManager.Version)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
