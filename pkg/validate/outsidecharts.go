package validate

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/bundle"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// callChart is the question of the confined process for the archive of a feature's chart.
const callChart = "chart"

// maxArchive bounds the archive of a chart that is rendered, in bytes: the answer to the worker is one message, which must not be longer
// than a frame (see package confine). Large charts have some 2 MiB.
const maxArchive = 32 << 20

// NotRendered is a feature's chart that was not rendered, because it is not on this machine.
type NotRendered struct {
	Feature string `json:"feature"`
	Chart   string `json:"chart"`
	Version string `json:"version"`
	Reason  string `json:"reason"`
	// Hint says how to have it rendered.
	Hint string `json:"hint,omitempty"`
}

// givenChart is the answer to callChart.
type givenChart struct {
	Archive []byte
	// Failed says why there is no archive. Mismatch is the error if its digest is not that of fleet.lock.
	Failed, Hint string
	Mismatch     *v1alpha1.ChartDigestError
}

// chartAnswer answers callChart. It gives only charts that fleet.lock has, with their digests, or that features of the repo name, because
// the confined process may have been taken over.
func (p *provider) chartAnswer(ctx context.Context, question []byte) ([]byte, error) {
	var wanted render.OutsideChart
	if err := gob.NewDecoder(bytes.NewReader(question)).Decode(&wanted); err != nil {
		return nil, err
	}
	var out givenChart
	archive, err := p.chart(ctx, wanted)
	if err == nil && len(archive) > maxArchive {
		err = fmt.Errorf("it is larger than %d MiB", maxArchive>>20)
	}
	if out.Archive = archive; err != nil {
		out = givenChart{Failed: err.Error(), Hint: diag.Hint(err)}
		out.Mismatch, _ = errors.AsType[*v1alpha1.ChartDigestError](err)
	}
	var text bytes.Buffer
	err = gob.NewEncoder(&text).Encode(out)
	return text.Bytes(), err
}

// chart returns the archive of a chart: from the bundle, from the cache, or over the network if the options allow it.
func (p *provider) chart(ctx context.Context, wanted render.OutsideChart) ([]byte, error) {
	lock, err := v1alpha1.LoadLock(filepath.Join(p.dir, v1alpha1.LockFileName))
	if err != nil {
		lock = nil // it is missing, or another finding reports it
	}
	locked := lock.FindChart(wanted.Address, wanted.Version)
	named := locked
	if named == nil && (p.opts.Bundle != "" || p.opts.FetchCharts) {
		named = p.named(wanted)
	}
	if named == nil {
		return nil, p.absent(locked)
	}
	if p.opts.Bundle != "" {
		reader, err := p.components(ctx)
		if err != nil {
			return nil, err
		}
		if archive, err := reader.BundledChart(*named, lock); !errors.Is(err, bundle.ErrNotFound) {
			return archive, err
		}
	}
	charts := components.ChartsIn(p.opts.CacheDir)
	if locked != nil {
		if kept := charts.Kept(locked.SHA256); kept != nil {
			return kept, lock.VerifyChart(wanted.Address, wanted.Version, locked.SHA256) // another feature may have another digest
		}
	}
	if !p.opts.FetchCharts {
		return nil, p.absent(locked)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	archive, err := components.FetchChart(ctx, *named, lock)
	if err == nil {
		charts.Keep(archive)
	}
	return archive, err
}

// named returns the chart if a feature of the repo names it, or nil. The repo's files are read here: a confined process that was taken over
// must not choose what is fetched.
func (p *provider) named(wanted render.OutsideChart) *v1alpha1.LockedFeature {
	all, err := p.charts()
	if err != nil {
		return nil // another finding reports the file
	}
	for i := range all {
		if all[i].Chart == wanted.Address && all[i].Version == wanted.Version {
			return &all[i]
		}
	}
	return nil
}

// absent is the error of a chart that is not on this machine. locked is its entry in fleet.lock, or nil.
func (p *provider) absent(locked *v1alpha1.LockedFeature) error {
	where := "it is not in the cache of this machine"
	switch {
	case locked == nil:
		return diag.Errorf("`fleetctl lock` writes it, and keeps the chart on this machine; or give --fetch-charts, or --bundle with a bundle "+
			"that has it", "%s does not have its digest", v1alpha1.LockFileName)
	case p.opts.Bundle != "":
		where = "it is neither in the bundle nor in the cache of this machine"
	}
	return diag.Errorf("give --fetch-charts, or --bundle with a bundle that has it; or run `fleetctl lock`, which keeps it", "%s", where)
}

// outside returns the archives of charts outside of the repo to the renderer. It remembers why it has no archive.
func (r *run) outside(ctx context.Context) func(render.OutsideChart) ([]byte, bool) {
	return func(wanted render.OutsideChart) ([]byte, bool) {
		given, err := askChart(ctx, wanted)
		if err != nil {
			given = givenChart{Failed: err.Error(), Hint: diag.Hint(err)}
		}
		if given.Failed == "" {
			return given.Archive, true
		}
		if r.noCharts == nil {
			r.noCharts = map[render.OutsideChart]givenChart{}
		}
		r.noCharts[wanted] = given
		return nil, false
	}
}

func askChart(ctx context.Context, wanted render.OutsideChart) (out givenChart, _ error) {
	var question bytes.Buffer
	if err := gob.NewEncoder(&question).Encode(wanted); err != nil {
		return out, err
	}
	text, err := confine.Call(ctx, callChart, question.Bytes())
	if err != nil {
		return out, err
	}
	return out, gob.NewDecoder(bytes.NewReader(text)).Decode(&out)
}

// checkChartDigests reports charts whose digests are not those of fleet.lock.
func (r *run) checkChartDigests() (out diag.Findings) {
	for _, given := range r.noCharts {
		if given.Mismatch == nil {
			continue
		}
		out = append(out, diag.Finding{
			Severity: diag.SeverityError, Rule: RuleLock, File: v1alpha1.LockFileName, Line: r.lockedFeatureLine(given.Mismatch.Feature),
			Summary: given.Mismatch.Error(), Hint: given.Hint,
		})
	}
	return out
}

// noteNotRendered moves the findings about features' charts that are not on this machine out of the findings. That a chart is elsewhere is
// no fault of the repo, so --strict does not make an error of it.
func (r *run) noteNotRendered(findings diag.Findings) (kept diag.Findings, notes []NotRendered) {
	if r.rendered == nil {
		return findings, nil
	}
	absent := map[render.Source]NotRendered{}
	for _, rel := range r.rendered.Releases {
		name, _, ok := strings.Cut(strings.TrimPrefix(rel.Object.Source.File, layout.FeaturesDir+"/"), "/")
		if rel.Outside == nil || !ok || !strings.HasPrefix(rel.Object.Source.File, layout.FeaturesDir+"/") {
			continue
		}
		if given, ok := r.noCharts[*rel.Outside]; ok {
			absent[rel.Object.Source] = NotRendered{name, rel.Outside.Address, rel.Outside.Version, firstLine(given.Failed), given.Hint}
		}
	}
	for _, f := range findings {
		at := render.Source{File: f.File, Line: f.Line}
		note, ok := absent[at]
		if !ok || f.Rule != RuleForeign {
			kept = append(kept, f)
			continue
		}
		notes = append(notes, note)
	}
	return kept, notes
}
