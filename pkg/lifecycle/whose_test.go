package lifecycle

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/state"
)

func TestSameRepository(t *testing.T) {
	const url = "https://git.example.com/acme/fleet.git"
	for other, want := range map[string]bool{
		url:                                            true,
		"https://git.example.com/acme/fleet":           true,
		"https://git.example.com/acme/fleet/":          true,
		"https://git.example.com:443/acme/fleet":       true,
		"https://GIT.example.com/acme/fleet.git":       true,
		"ssh://git@git.example.com/acme/fleet.git":     true,
		"ssh://git@git.example.com:2222/acme/fleet":    true,
		"https://git.example.com:8443/acme/fleet.git":  false,
		"https://git.example.com/acme/fleet2.git":      false,
		"https://git.example.com/me/fleet.git":         false,
		"https://git.example.org/acme/fleet.git":       false,
		"https://git.example.com.evil/acme/fleet.git":  false,
		"https://git.example.com/acme/fleet.git/other": false,
		"": false,
	} {
		if got := sameRepository(url, other); got != want {
			t.Errorf("%q: %t", other, got)
		}
	}
	if sameRepository("", "") {
		t.Error("no remote is no repository")
	}
}

func TestOwns(t *testing.T) {
	const one, two = "0f6a5f0e-7d1c-4a9e-9b43-6f0f3c2f7a11", "7b1b6d0c-03a2-4b3e-8a77-2f9d8c7b6a55"
	const url, fork = "https://git.example.com/acme/fleet.git", "https://git.example.com/me/fleet.git"
	here, other, gone := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "gone")
	if err := os.WriteFile(filepath.Join(other, v1alpha1.FileName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		repo   repoOf
		record state.Record
		want   bool
	}{
		"as it was made":                               {repoOf{id: one, name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: here}, true},
		"the same names, another fleet":                {repoOf{id: two, name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: other}, false},
		"another fleet in the same folder":             {repoOf{id: two, name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: here}, false},
		"a clone":                                      {repoOf{id: one, name: "acme", url: url}, state.Record{FleetID: one, Fleet: "acme", Repo: other, GitURL: url}, true},
		"a clone over ssh":                             {repoOf{id: one, name: "acme", url: "ssh://git@git.example.com/acme/fleet"}, state.Record{FleetID: one, Fleet: "acme", Repo: other, GitURL: url}, true},
		"a fork":                                       {repoOf{id: one, name: "acme", url: fork}, state.Record{FleetID: one, Fleet: "acme", Repo: other, GitURL: url}, false},
		"the remote was changed":                       {repoOf{id: one, name: "acme", url: fork}, state.Record{FleetID: one, Fleet: "acme", Repo: here, GitURL: url}, true},
		"a renamed fleet":                              {repoOf{id: one, name: "new"}, state.Record{FleetID: one, Fleet: "acme", Repo: here}, true},
		"killed before the identity was committed":     {repoOf{name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: here}, true},
		"a clone of before the identity was committed": {repoOf{name: "acme", url: url}, state.Record{FleetID: one, Fleet: "acme", Repo: other, GitURL: url}, true},
		"a new fleet of the same name":                 {repoOf{name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: other}, false},
		"a new fleet, where the folder is gone":        {repoOf{name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: gone}, false},
		"an older record":                              {repoOf{id: one, name: "acme"}, state.Record{Fleet: "acme", Repo: here}, true},
		"an older record, another fleet's name":        {repoOf{id: one, name: "acme"}, state.Record{Fleet: "other", Repo: other}, false},
		"an older record, the folder has moved":        {repoOf{name: "acme"}, state.Record{Fleet: "acme", Repo: gone}, true},
		"an older record, the folder is still there":   {repoOf{name: "acme"}, state.Record{Fleet: "acme", Repo: other}, false},
		"an older record, a clone":                     {repoOf{name: "acme", url: url}, state.Record{Fleet: "acme", Repo: other}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.repo.dir = here
			if got := tc.repo.owns(&tc.record); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
