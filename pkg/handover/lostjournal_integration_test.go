//go:build integration

package handover

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/kube/kubetest"
)

// CheckFence reports a fence without a journal, with a hint that says how to undo the hand-over.
func TestCheckFence(t *testing.T) {
	ctx := t.Context()
	client, _ := kubetest.Start(t)
	at := Side{Name: "mgmt", Client: client}
	if err := CheckFence(ctx, at); err != nil {
		t.Errorf("without a fence: %v", err)
	}
	j := &Journal{FormatVersion: "1", ID: "lost", Role: RoleSource, Phase: PhaseFenced, Runner: "runner"}
	p := policy{user: j.user(), groups: []string{"cluster.x-k8s.io"}, command: j.Command()}
	if err := (&side{Side: at}).putPolicy(ctx, p); err != nil {
		t.Fatal(err)
	}
	err := CheckFence(ctx, at)
	if err == nil || !strings.Contains(err.Error(), "mgmt is fenced") || !strings.Contains(diag.Hint(err), "--to-kubeconfig") {
		t.Errorf("with a fence: %v (%s)", err, diag.Hint(err))
	}
	if err := makeNamespace(ctx, client); err != nil {
		t.Fatal(err)
	}
	if err := j.write(ctx, client); err != nil {
		t.Fatal(err)
	}
	if err := CheckFence(ctx, at); err != nil {
		t.Errorf("with its journal: %v", err)
	}
}
