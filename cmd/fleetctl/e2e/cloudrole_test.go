//go:build e2e && clouds

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// branchAccount is another account. The provider's own key opens it by the role alone.
const (
	branchAccount = "111122223333"
	branchRole    = "arn:aws:iam::" + branchAccount + ":role/fleet-branch"
)

// entersByRole declares an identity and a cluster that uses it. The provider makes the cluster's network in the account of the role, and
// orphans asks this account by the same role. The teardown at the end removes the cluster.
func (a *onAWS) entersByRole(t *testing.T) {
	a.aws.leftIn(t, branchAccount)
	own := a.aws.left(t)
	a.ok("identity", "add", "branch", "--provider", "aws", "--environment", "dev", "--role-arn", branchRole, "--commit")
	a.addsCluster("branch", "--set", "identity.name=branch")
	eventually(t, "the cluster's network is in the account of the role", 4*time.Minute, func() string {
		if have := kinds(a.aws.leftIn(t, branchAccount)); have["vpc"] == 0 || have["subnet"] == 0 {
			return fmt.Sprint(have)
		}
		return ""
	})
	for _, one := range a.aws.left(t) {
		if strings.HasPrefix(one, "vpc/") && !slices.Contains(own, one) {
			t.Errorf("the provider's own account has %s", one)
		}
	}
	if r := a.ok("identity", "list"); !strings.Contains(r.stdout, "branch") || !strings.Contains(r.stdout, "fleetctl.dev/environment=dev") {
		t.Errorf("identity list says:\n%s", r.stdout)
	}
	r := decode[orphanReport](t, a.ok("orphans", "--region", a.aws.Region, "-o", "json").stdout)
	if !r.Complete || len(r.Clusters) > 0 || len(r.Clouds) != 2 {
		t.Errorf("orphans says %+v", r)
	}
}
