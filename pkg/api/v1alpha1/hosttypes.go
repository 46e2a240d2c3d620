package v1alpha1

import (
	"slices"
	"strings"
)

// HostType is a kind of host.
type HostType string

// The host types.
const (
	HostKind     HostType = "kind"
	HostEmbedded HostType = "embedded"
	HostExisting HostType = "existing"
	HostWorkload HostType = "workload"
)

// hostTypeEntry is what this package knows of a kind of host.
type hostTypeEntry struct {
	name HostType
	// settings tells whether a host has the settings that this kind takes in the field of its name; nil for a kind that takes none.
	settings func(*Host) bool
	// elsewhere: the cluster is somebody else's to make and to end.
	elsewhere bool
}

// hostTypes is the one list of kinds of hosts; pkg/hosts makes a host of each.
var hostTypes = []hostTypeEntry{
	{name: HostKind, settings: func(h *Host) bool { return h.Kind != nil }},
	{name: HostEmbedded, settings: func(h *Host) bool { return h.Embedded != nil }},
	{name: HostExisting, settings: func(h *Host) bool { return h.Existing != nil }, elsewhere: true},
	{name: HostWorkload, elsewhere: true},
}

// HostTypes are all that host.type may say.
func HostTypes() []HostType {
	var names []HostType
	for _, t := range hostTypes {
		names = append(names, t.name)
	}
	return names
}

// Elsewhere tells whether the clusters of hosts of this kind are somebody else's to make and to end.
func (t HostType) Elsewhere() bool {
	return slices.ContainsFunc(hostTypes, func(k hostTypeEntry) bool { return k.name == t && k.elsewhere })
}

// article is "a" or "an", as the name of the kind needs.
func (t HostType) article() string {
	if t != "" && strings.ContainsRune("aeiou", rune(t[0])) {
		return "an"
	}
	return "a"
}
