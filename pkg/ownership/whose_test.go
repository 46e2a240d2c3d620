package ownership

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
		if got := SameRepository(url, other); got != want {
			t.Errorf("%q: %t", other, got)
		}
	}
	if SameRepository("", "") {
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
		repo   Repo
		record state.Record
		want   bool
	}{
		"as it was made": {
			Repo{ID: one, Name: "acme"},
			state.Record{FleetID: one, Fleet: "acme", Repo: here},
			true,
		},
		"the same names, another fleet": {
			Repo{ID: two, Name: "acme"},
			state.Record{FleetID: one, Fleet: "acme", Repo: other},
			false,
		},
		"another fleet in the same folder": {
			Repo{ID: two, Name: "acme"},
			state.Record{FleetID: one, Fleet: "acme", Repo: here},
			false,
		},
		"a clone": {
			Repo{ID: one, Name: "acme", URL: url},
			state.Record{FleetID: one, Fleet: "acme", Repo: other, GitURL: url},
			true,
		},
		"a clone over ssh": {
			Repo{ID: one, Name: "acme", URL: "ssh://git@git.example.com/acme/fleet"},
			state.Record{FleetID: one, Fleet: "acme", Repo: other, GitURL: url},
			true,
		},
		"a fork": {
			Repo{ID: one, Name: "acme", URL: fork},
			state.Record{FleetID: one, Fleet: "acme", Repo: other, GitURL: url},
			false,
		},
		"the remote was changed": {
			Repo{ID: one, Name: "acme", URL: fork},
			state.Record{FleetID: one, Fleet: "acme", Repo: here, GitURL: url},
			true,
		},
		"a renamed fleet":                          {Repo{ID: one, Name: "new"}, state.Record{FleetID: one, Fleet: "acme", Repo: here}, true},
		"killed before the identity was committed": {Repo{Name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: here}, true},
		"a clone of before the identity was committed": {
			Repo{Name: "acme", URL: url},
			state.Record{FleetID: one, Fleet: "acme", Repo: other, GitURL: url},
			true,
		},
		"a new fleet of the same name":               {Repo{Name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: other}, false},
		"a new fleet, where the folder is gone":      {Repo{Name: "acme"}, state.Record{FleetID: one, Fleet: "acme", Repo: gone}, false},
		"an older record":                            {Repo{ID: one, Name: "acme"}, state.Record{Fleet: "acme", Repo: here}, true},
		"an older record, another fleet's name":      {Repo{ID: one, Name: "acme"}, state.Record{Fleet: "other", Repo: other}, false},
		"an older record, the folder has moved":      {Repo{Name: "acme"}, state.Record{Fleet: "acme", Repo: gone}, true},
		"an older record, the folder is still there": {Repo{Name: "acme"}, state.Record{Fleet: "acme", Repo: other}, false},
		"an older record, a clone":                   {Repo{Name: "acme", URL: url}, state.Record{Fleet: "acme", Repo: other}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.repo.Dir = here
			if got := tc.repo.Owns(&tc.record); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
