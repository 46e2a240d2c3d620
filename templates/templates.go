// Package templates holds the files that fleetctl puts into a fleet repo as they are: the charts of the flavours of
// clusters.
package templates

import "embed"

// Charts has one folder per flavour below "charts".
//
//go:embed all:charts
var Charts embed.FS
