package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// lockedFeatureLine is the line in fleet.lock with the chart of a feature.
func (r *run) lockedFeatureLine(wanted v1alpha1.LockedFeature) int {
	f := r.tree.byPath[v1alpha1.LockFileName]
	if f == nil || len(f.documents) == 0 || r.lock == nil {
		return 1
	}
	i := slices.Index(r.lock.Features, wanted)
	if i < 0 {
		return 1
	}
	return locate(f.documents[0].node, fmt.Sprintf("features[%d]", i)).Line
}

// checkFeatureLock reports the charts of features that fleet.lock does not have.
func (r *run) checkFeatureLock() diag.Findings {
	var out diag.Findings
	for _, f := range r.tree.files {
		name, ok := strings.CutPrefix(path.Dir(path.Dir(f.path)), layout.FeaturesDir+"/")
		if !ok {
			continue
		}
		source, release := fleetrepo.FeatureChartFiles(name)
		made := r.tree.byPath[release]
		if f.path != source || made == nil {
			continue
		}
		chart, ok := fleetrepo.ChartOfFeature(name, f.content, made.content)
		if ok && r.lock.FindFeature(chart) == nil {
			out = append(out, finding(RuleLock, f.path, 1, 0, fmt.Sprintf("the %s is not locked", chart), "`fleetctl lock` writes its digest"))
		}
	}
	return out
}
