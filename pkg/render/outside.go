package render

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"helm.sh/helm/v4/pkg/chart/loader/archive"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// OutsideChart is a chart in a registry or in a repository of charts.
type OutsideChart struct {
	// Address is oci://registry/path/chart or https://repository/chart, as fleet.lock has it.
	Address string
	// Version is one version, and no range.
	Version string
}

// file is the name of the chart's archive. It stands for the folder that a chart in the repo has.
func (c OutsideChart) file() string { return path.Base(c.Address) + "-" + c.Version + ".tgz" }

// repository is the source of charts that a HelmRepository or an OCIRepository declares.
type repository struct {
	url string
	// tag of an OCIRepository, which is a single chart; "" if it has none, or if something else chooses the version.
	tag string
}

// learnRepository remembers a HelmRepository or an OCIRepository. It does so only if somebody may have its charts.
func (w *walk) learnRepository(c *content, targets []string) {
	if w.r.outside == nil {
		return
	}
	at := c.Kind + "\x00" + lookupKey(targets, c.Metadata.Namespace, c.Metadata.Name)
	if c.Kind == sourcev1.HelmRepositoryKind {
		var o struct {
			Spec sourcev1.HelmRepositorySpec `json:"spec"`
		}
		if err := json.Unmarshal(c.json, &o); err == nil {
			w.repositories[at] = repository{url: strings.TrimSuffix(o.Spec.URL, "/")}
		}
		return
	}
	var o struct {
		Spec sourcev1.OCIRepositorySpec `json:"spec"`
	}
	if err := json.Unmarshal(c.json, &o); err != nil {
		return
	}
	made := repository{url: strings.TrimSuffix(o.Spec.URL, "/")}
	if ref := o.Spec.Reference; ref != nil && ref.SemVer == "" { // a digest of the artifact stands beside the tag that has it
		made.tag = ref.Tag
	}
	w.repositories[at] = made
}

// outside returns the chart of a HelmRelease that is in a registry or a repository of charts. It returns nil for other charts, and where
// the sources of the repo do not say which chart it is.
func (w *walk) outside(o *Object, j *job) *OutsideChart {
	if w.r.outside == nil {
		return nil
	}
	find := func(kind, namespace, name string) repository {
		return w.repositories[kind+"\x00"+lookupKey(o.Targets, namespace, name)]
	}
	if ref := j.spec.Spec.ChartRef; j.chart == nil && ref != nil && ref.Kind == sourcev1.OCIRepositoryKind {
		if from := find(ref.Kind, cmp.Or(ref.Namespace, o.Namespace), ref.Name); from.url != "" && from.tag != "" {
			return &OutsideChart{from.url, from.tag}
		}
		return nil
	}
	if j.chart == nil || j.chart.sourceKind != sourcev1.HelmRepositoryKind || j.chart.version == "" || len(j.chart.valuesFiles) > 0 {
		return nil
	}
	if from := find(j.chart.sourceKind, j.chart.sourceNamespace, j.chart.sourceName); from.url != "" {
		return &OutsideChart{from.url + "/" + j.chart.chart, j.chart.version}
	}
	return nil
}

// getOutside gets the archive of a chart outside of the repo. It asks for each chart once.
func (r *Renderer) getOutside(c OutsideChart) ([]byte, bool) {
	r.charts.mu.Lock()
	defer r.charts.mu.Unlock()
	if l, asked := r.charts.archives[c]; asked {
		return l, l != nil
	}
	if r.charts.archives == nil {
		r.charts.archives = map[OutsideChart][]byte{}
	}
	content, ok := r.outside(c)
	if !ok {
		content = nil
	}
	r.charts.archives[c] = content
	return content, ok
}

// loadArchive returns a chart outside of the repo with its files read.
func (c *charts) loadArchive(from OutsideChart) (*loadedChart, error) {
	c.mu.Lock()
	at := from.Address + " " + from.Version // has characters that no folder of a repo has
	if c.all == nil {
		c.all = map[string]*loadedChart{}
	}
	l, content := c.all[at], c.archives[from]
	if l == nil {
		l = &loadedChart{dir: from.file(), within: c.within}
		c.all[at] = l
	}
	c.mu.Unlock()
	l.once.Do(func() { l.err = l.unpack(content) })
	return l, l.err
}

// unpack reads the files of an archive. Helm loads all files of an archive, also those that .helmignore names.
func (l *loadedChart) unpack(content []byte) error {
	files, err := unpackArchive(content)
	if err != nil {
		return fmt.Errorf("%s: it is no archive of a chart: %w", l.dir, err)
	}
	for _, f := range files {
		name := path.Join(l.dir, f.Name)
		if findings := Screen(name, f.Data); findings != nil && isYAML(name) && !strings.Contains("/"+f.Name, "/templates/") {
			return findings
		}
	}
	l.files, l.sum = files, digest(content)
	return nil
}

// unpackArchive returns the files of an archive with a chart. Helm bounds the content of the files, but not their number. So this looks at
// the size of the whole archive first.
func unpackArchive(content []byte) ([]*archive.BufferedFile, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(z, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, err
	case n > maxUnpacked:
		return nil, beyond("it has more than %d MiB in it", maxUnpacked>>20)
	}
	return archive.LoadArchiveFiles(bytes.NewReader(content))
}

// atRelease turns the findings about files of a chart outside of the repo into findings about the HelmRelease, because the repo does not
// have these files.
func (j *job) atRelease(findings diag.Findings) diag.Findings {
	if j.release.Outside == nil {
		return findings
	}
	dir := j.release.Outside.file()
	out := make(diag.Findings, 0, len(findings))
	for _, f := range findings {
		if strings.HasPrefix(f.File, dir+"/") {
			where := f.File
			if f.Line > 0 {
				where = fmt.Sprintf("%s:%d", f.File, f.Line)
			}
			f.Summary = fmt.Sprintf("%s: %s: %s", j.release.Owner, where, f.Summary)
			f.File, f.Line, f.Column = j.object.Source.File, j.object.Source.Line, 0
		}
		out = append(out, f)
	}
	return out
}

// onces renders releases with equal charts and values once, for all environments and management clusters.
type onces struct {
	mu  sync.Mutex
	all map[key]*once
}

type once struct {
	sync.Once
	objects  []*content
	problems diag.Findings
}

// render returns the result of do. Releases with an equal key share one call of do. Releases with findings share none, because their
// findings point into different files.
func (o *onces) render(k key, do func() ([]*content, diag.Findings)) ([]*content, diag.Findings) {
	o.mu.Lock()
	if o.all == nil {
		o.all = map[key]*once{}
	}
	one := o.all[k]
	if one == nil {
		one = &once{}
		o.all[k] = one
	}
	o.mu.Unlock()
	mine := false
	one.Do(func() {
		mine = true
		one.objects, one.problems = do()
	})
	if !mine && len(one.problems) > 0 {
		return do()
	}
	return one.objects, one.problems
}
