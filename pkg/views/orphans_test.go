package views

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/cloud"
	"github.com/fleetctl/fleetctl/pkg/orphans"
	"github.com/fleetctl/fleetctl/pkg/ui"
)

// A machine whose clock is behind the cloud's sees what is made tomorrow: it is new.
func TestOrphansOfTomorrow(t *testing.T) {
	tomorrow := now.Add(24 * time.Hour)
	found := cloud.Resource{Kind: "instance", ID: "i-1", Created: &tomorrow}
	report := &orphans.Report{Clusters: []orphans.Cluster{{Name: "shop", Resources: []orphans.Resource{{Resource: found}}}}}
	var out bytes.Buffer
	if err := Print(ui.Streams{Out: &out, Err: &out}, ui.Human, false, Orphans(report, now)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "invalid") || !strings.Contains(out.String(), "0s") {
		t.Error(out.String())
	}
}
