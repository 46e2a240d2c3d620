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

// hostTypeEntry describes one kind of host.
type hostTypeEntry struct {
	name HostType
	// settings tells whether a host has the settings field of this kind. It is nil for a kind without settings.
	settings func(*Host) bool
	// elsewhere means that fleetctl neither makes nor deletes the cluster of such a host.
	elsewhere bool
}

// hostTypes lists all kinds of hosts. pkg/hosts has the implementation of each.
var hostTypes = []hostTypeEntry{
	{name: HostKind, settings: func(h *Host) bool { return h.Kind != nil }},
	{name: HostEmbedded, settings: func(h *Host) bool { return h.Embedded != nil }},
	{name: HostExisting, settings: func(h *Host) bool { return h.Existing != nil }, elsewhere: true},
	{name: HostWorkload, elsewhere: true},
}

// HostTypes returns all valid values of host.type.
func HostTypes() []HostType {
	var names []HostType
	for _, t := range hostTypes {
		names = append(names, t.name)
	}
	return names
}

// Elsewhere tells whether somebody else makes and deletes the clusters of this kind of host.
func (t HostType) Elsewhere() bool {
	return slices.ContainsFunc(hostTypes, func(k hostTypeEntry) bool { return k.name == t && k.elsewhere })
}

// article returns the indefinite article for the name of the kind: "a" or "an".
func (t HostType) article() string {
	if t != "" && strings.ContainsRune("aeiou", rune(t[0])) {
		return "an"
	}
	return "a"
}
