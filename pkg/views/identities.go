package views

import (
	"strconv"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// Identities is what `fleetctl identity list` shows.
func Identities(all []fleetrepo.Identity) View {
	return list(struct {
		FormatVersion string               `json:"formatVersion"`
		Identities    []fleetrepo.Identity `json:"identities"`
	}{"1", all}, all, identityTable)
}

var identityTable = table[fleetrepo.Identity]{
	none: "There are no identities; `fleetctl identity add` makes one.",
	name: func(i fleetrepo.Identity) string { return i.Name },
	columns: []column[fleetrepo.Identity]{
		{title: "IDENTITY", of: func(i fleetrepo.Identity) string { return i.Name }},
		{title: "PROVIDER", of: func(i fleetrepo.Identity) string { return i.Provider }},
		{title: "ON", of: func(i fleetrepo.Identity) string { return i.ManagementCluster }},
		{title: "ADMITS", of: func(i fleetrepo.Identity) string { return i.Admits }},
		{title: "KIND", wide: true, of: func(i fleetrepo.Identity) string { return i.Kind }},
		{title: "FILE", wide: true, of: func(i fleetrepo.Identity) string { return i.File + ":" + strconv.Itoa(i.Line) }},
	},
}
