package review

import (
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// compared compares the objects of two sides. What lacks on one side only because kustomize could not build its folder there is left out:
// a finding reports the folder, and Flux deletes nothing of a folder that it cannot build.
func compared(before, after *render.Result) []ObjectChange {
	return slices.DeleteFunc(compare(before.Objects, after.Objects), func(c ObjectChange) bool {
		switch c.Action {
		case Removed:
			return unbuilt(after.Findings, c.old.Source.File)
		case Added:
			return unbuilt(before.Findings, c.new.Source.File)
		case Changed:
		}
		return false
	})
}

// unbuilt tells whether a file is in a folder that could not be built.
func unbuilt(findings diag.Findings, file string) bool {
	return slices.ContainsFunc(findings, func(f diag.Finding) bool {
		folder := f.File
		if layout.IsKustomization(folder) {
			folder = path.Dir(folder)
		}
		return f.Severity == diag.SeverityError && strings.HasPrefix(file, folder+"/")
	})
}
