package views

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/transfer"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A transfer that is undone at the target alone gives the cluster back to nobody: its source is gone.
func TestTransferUndone(t *testing.T) {
	for gone, want := range map[bool]string{
		false: "mgmt manages cluster shop again, as before.\n",
		true:  "second has no copies of cluster shop any more. Nobody manages the cluster while mgmt is gone.\n",
	} {
		var out strings.Builder
		r := &transfer.Result{Outcome: "undone", Cluster: "shop", From: "mgmt", To: "second", SourceIsGone: gone}
		if err := transferView(&Page{Streams: ui.Streams{Out: &out}}, r); err != nil || out.String() != want {
			t.Errorf("source gone %t: %q, %v", gone, out.String(), err)
		}
	}
}
