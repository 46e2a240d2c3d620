package views

import (
	"cmp"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
)

// Notifications is what `fleetctl notification list` shows.
func Notifications(all []fleetrepo.Notification) View {
	return list(struct {
		FormatVersion string                   `json:"formatVersion"`
		Notifications []fleetrepo.Notification `json:"notifications"`
	}{"1", all}, all, notificationTable)
}

var notificationTable = table[fleetrepo.Notification]{
	none: "There are no notifications; `fleetctl notification add` makes one.",
	name: func(n fleetrepo.Notification) string { return n.Name },
	columns: []column[fleetrepo.Notification]{
		{title: "NOTIFICATION", of: func(n fleetrepo.Notification) string { return n.Name }},
		{title: "TYPE", of: func(n fleetrepo.Notification) string { return n.Type }},
		{title: "SEVERITY", of: func(n fleetrepo.Notification) string { return n.Severity }},
		{title: "ABOUT", of: func(n fleetrepo.Notification) string { return cmp.Or(strings.Join(n.Environments, ", "), "all") }},
		{title: "ON", of: func(n fleetrepo.Notification) string { return cmp.Or(strings.Join(n.ManagementClusters, ", "), "-") }},
		{title: "SECRET", wide: true, of: func(n fleetrepo.Notification) string { return cmp.Or(n.Secret, "-") }},
	},
}
