package kind

import (
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host"
	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

// On an engine that several people use a node says who made it, and for which fleet.
func TestOwnerOfNodes(t *testing.T) {
	const me = owner("1000/me/aaaaaaaaaaaa")
	nodesOf := func(by owner) []engine.Container {
		var c engine.Container
		for _, m := range (&Host{name: "m", owner: by}).config("img", host.CreateOptions{Fleet: "0f6a5f0e"}).Nodes[0].ExtraMounts {
			c.Mounts = append(c.Mounts, engine.Mount{Source: m.HostPath, Destination: m.ContainerPath})
		}
		return []engine.Container{c}
	}
	for name, tc := range map[string]struct {
		by       owner
		recorded owner // in the state folder at hand
		others   bool
	}{
		"mine":                                {me, "", false},
		"mine, under my former name":          {"1000/maiden/aaaaaaaaaaaa", "", false},
		"of before nodes said it":             {"", "", false},
		"another user's":                      {"1001/you/aaaaaaaaaaaa", "", true},
		"of the same number elsewhere":        {"1000/me/bbbbbbbbbbbb", "", true},
		"made elsewhere, with my folder here": {"1000/me/bbbbbbbbbbbb", "1000/me/bbbbbbbbbbbb", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Host{name: "m", owner: me, state: stateDir(t.TempDir()), engine: &engine.Engine{}}
			if tc.recorded != "" {
				if err := h.state.write(record{Owner: string(tc.recorded)}); err != nil {
					t.Fatal(err)
				}
			}
			containers := nodesOf(tc.by)
			others, err := h.othersOf(containers)
			if err != nil || (others != "") != tc.others {
				t.Fatalf("got %q, %v", others, err)
			}
			err = h.strangerError(containers)
			if tc.others && (err == nil || !strings.Contains(err.Error(), strings.Split(string(tc.by), "/")[1])) || !tc.others && err != nil {
				t.Errorf("got %v", err)
			}
			if _, fleet := marks(containers); fleet != "0f6a5f0e" {
				t.Errorf("made for fleet %q", fleet)
			}
		})
	}
	if again := here(); here() != again || !here().is(here()) || strings.ContainsAny(string(here()), ":, ") {
		t.Errorf("here is %q", here())
	}
}
