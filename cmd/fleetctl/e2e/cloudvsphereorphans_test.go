//go:build e2e && clouds

package e2e

import (
	"slices"
	"strings"
	"testing"
)

// TestVSphereOrphans: the management cluster is lost with its machine, and a workload cluster lives on in vSphere. orphans lists the
// cluster's machines, and no machine of another fleet in the same vCenter. It deletes only machines with a proof that they are the fleet's.
func TestVSphereOrphans(t *testing.T) {
	v := newOnVSphere(t, "e2e-vsphere-orphans")
	for _, each := range []act{
		{"init with the vSphere provider", v.inits},
		{"a commit brings the identity that the cluster's namespace may use", v.identifies},
		{"one commit makes a cluster that is Available", v.makesCluster},
	} {
		if !v.step(each.name, each.play) {
			return
		}
	}
	left := func() []string { // as orphans names things
		all := v.vsphere.left(t)
		for i, one := range all {
			all[i] = strings.Replace(one, "machine/", "virtual-machine//DC0/vm/", 1)
		}
		return all
	}
	v.step("a vCenter that only the fleet repo names gets no password", func(t *testing.T) {
		if r := v.run("orphans"); r.code != 3 || !strings.Contains(r.stdout+r.stderr, "VSPHERE_SERVER") {
			t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	})
	t.Setenv("VSPHERE_SERVER", v.vsphere.Server)
	v.step("what lives is no orphan", func(t *testing.T) {
		r := decode[orphanReport](t, v.ok("orphans", "-o", "json").stdout)
		if !r.Complete || len(r.Clusters) > 0 || len(r.Clouds) != 1 || !slices.Contains(r.Clouds[0].Regions, v.vsphere.Server) {
			t.Errorf("orphans says %+v", r)
		}
		before := left()
		refused := v.fails(1, nil, "orphans", "--delete", "shop", "--yes")
		if !strings.Contains(refused.stderr, "management cluster "+v.name+" manages the cluster shop") || !slices.Equal(left(), before) {
			t.Errorf("it does not say who has it, or deletes it:\n%s", refused.stderr)
		}
	})
	v.gone(t)
	before := left()
	ask[bool](t, v.vsphere.URL+"/strangers")
	others := slices.DeleteFunc(left(), func(one string) bool { return slices.Contains(before, one) })
	v.step("all that the cluster has is listed", func(t *testing.T) {
		run := v.run("orphans", "-o", "json")
		r := decode[orphanReport](t, run.stdout)
		if run.code != 3 || r.Complete || len(r.Unasked) != 1 || r.Unasked[0].Name != v.name || r.Others != 1 || len(r.Clusters) != 1 {
			t.Fatalf("exit %d, %+v", run.code, r)
		}
		var listed []string
		for _, resource := range r.Clusters[0].Resources {
			listed = append(listed, resource.Kind+"/"+resource.ID)
			if foreign := slices.Contains(others, resource.Kind+"/"+resource.ID); foreign != (resource.Proof == "none") {
				t.Errorf("%+v is a stranger's: %v", resource, foreign)
			}
		}
		for _, one := range before {
			if !slices.Contains(listed, one) {
				t.Errorf("%s is not listed: %v", one, listed)
			}
		}
		t.Log(v.run("orphans").stdout)
	})
	v.step("an error is never none", func(t *testing.T) {
		t.Setenv("VSPHERE_SERVER", "127.0.0.1:1")
		if r := v.run("orphans"); r.code != 3 || !strings.Contains(r.stdout, "could not be asked") {
			t.Errorf("exit %d\n%s", r.code, r.stdout)
		}
	})
	// The fingerprint of vCenter's certificate stands in the values of the cluster, and goes with these.
	t.Setenv("VSPHERE_TLS_THUMBPRINT", v.vsphere.Thumbprint)
	v.step("nothing is deleted that may be somebody's", func(t *testing.T) {
		v.deletesNothingYet(t, "Would delete virtual-machine ", left)
	})
	v.step("a vCenter whose fingerprint no cluster gives any more gets no password, either", func(t *testing.T) {
		t.Setenv("VSPHERE_TLS_THUMBPRINT", "")
		if r := v.run("orphans"); r.code != 3 || !strings.Contains(r.stdout+r.stderr, "export VSPHERE_TLS_THUMBPRINT=") {
			t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
		}
	})
	v.step("what is the fleet's goes, and nothing else", func(t *testing.T) {
		v.deletesOrphans(t, 2, others, left)
	})
}
