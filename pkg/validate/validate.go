package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/roots"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// Options of Run.
type Options struct {
	// Dir is a folder of the fleet repo.
	Dir string
	// Paths, if any, are the files and folders whose findings Run returns. Run checks the whole repo nevertheless.
	Paths []string
	// Strict turns warnings into errors.
	Strict bool
	// CRDs are folders and files with CRDs, which win over those of the repo and of the providers.
	CRDs []string
	// Bundle is an offline bundle with the providers' CRDs. With Offline, Run fetches nothing over the network.
	Bundle  string
	Offline bool
	// FetchCharts allows to fetch charts of features that are neither in the bundle nor in the cache over the network.
	FetchCharts bool
	// LocalReleases allows to read providers whose url in fleet.yaml is a path of this machine. Without it Run reads no such file outside of
	// the repo.
	LocalReleases bool
	// CommitsSince is the revision before the commits whose subjects are checked, if fleet.yaml has a convention; "" checks none.
	CommitsSince string
	// CacheDir keeps fetched and rendered content; "" keeps nothing.
	CacheDir string
	// CopyOf is the fleet repo of which Dir is an edited copy, or "". The two share the cache of rendered content.
	CopyOf string

	// known has schemas that several runs share.
	known *schema.Set
}

// Result is the result of Run. Findings are sorted by file and line.
type Result struct {
	FormatVersion string `json:"formatVersion"`
	Repo          string `json:"repo"`
	// Prefix is the path of the repo in its Git repository. It is "" if the repo is at the top, or in no Git repository.
	Prefix   string        `json:"-"`
	Findings diag.Findings `json:"findings"`
	Errors   int           `json:"errors"`
	Warnings int           `json:"warnings"`
	// Ignored counts the findings that comments silence.
	Ignored int `json:"ignored"`
	// Files, Clusters and Objects count what was checked. Objects counts only the objects that Flux would apply.
	Files    int `json:"files"`
	Clusters int `json:"clusters"`
	Objects  int `json:"objects"`
	// Excluded counts the files and objects that fleet.yaml excludes. They are not in Files and Objects.
	Excluded []Excluded `json:"excluded"`
	// NotRendered are the charts of features that are not on this machine. Neither their objects nor their values were checked.
	NotRendered []NotRendered `json:"notRendered"`
}

// run is one run of the checks.
type run struct {
	opts  Options
	tree  *tree
	fleet *v1alpha1.Fleet // nil if fleet.yaml cannot be read
	// assumed says that the repo has no fleet.yaml, and that fleet was made from Flux's own objects.
	assumed bool
	lock    *v1alpha1.Lock // nil if there is none

	exclusion v1alpha1.Exclusion

	rendered *render.Result
	// unrendered has the renderer's findings about faults of applied objects. The value tells whether a whole folder is not rendered because
	// of the fault.
	unrendered map[said]bool
	// undecoded are the renderer's findings about Flux objects that it could not read.
	undecoded []said
	accepted  accepted
	// unseen is the result of gaps.
	unseen []*gap
	// noCharts says why charts outside of the repo were not rendered.
	noCharts map[render.OutsideChart]givenChart
}

// request is the request to the confined process that validates.
type request struct {
	Options Options
	// Dir is the fleet repo, and Prefix its path in the Git repository. Only lists the files and folders whose findings are wanted.
	Dir, Prefix string
	Only        []string
	// Ignored are the files and folders of Dir that Git ignores and does not track.
	Ignored []string
	// Commits are the commits since Options.CommitsSince, newest first.
	Commits []gitrepo.Commit
}

// Task is the part of Run that reads the content of the fleet repo, in a confined process.
var Task = confine.New("validate", runTask)

// Run finds all problems of a fleet repo at once. The result has the problems of the repo. An error means that Run could not check the
// repo.
func Run(ctx context.Context, o Options) (*Result, error) {
	dir, _, err := fleetrepo.FindAny(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := gitrepo.CheckSparse(ctx, dir, fleetrepo.Matters); err != nil {
		return nil, err
	}
	only, err := relativePaths(dir, o.Paths)
	if err != nil {
		return nil, err
	}
	if err := checkGiven(o); err != nil {
		return nil, err
	}
	commits, err := commitsSince(ctx, dir, o.CommitsSince)
	if err != nil {
		return nil, err
	}
	p := newProvider(o, dir)
	defer p.close()
	needs := confine.Needs{
		Read: append([]string{dir}, o.CRDs...),
		Calls: map[string]func(context.Context, []byte) ([]byte, error){
			callCRDs: p.answer, callBundled: p.bundled,
			callChart: p.chartAnswer,
		},
	}
	if o.CacheDir = render.CacheFor(o.CacheDir, cmp.Or(o.CopyOf, dir)); o.CacheDir != "" {
		needs.Write = []string{o.CacheDir}
	}
	ignored := fleetrepo.NotOwn(gitrepo.IgnoredIn(ctx, cmp.Or(o.CopyOf, dir)))
	q := request{Options: o, Dir: dir, Prefix: gitPrefix(dir), Only: only, Ignored: ignored, Commits: commits}
	out, err := Task.Run(ctx, q, needs)
	if err != nil {
		return nil, err
	}
	out.Findings, out.Excluded = append(diag.Findings{}, out.Findings...), append([]Excluded{}, out.Excluded...)
	out.NotRendered = append([]NotRendered{}, out.NotRendered...) // empty lists, not null
	return out, nil
}

func runTask(ctx context.Context, q request) (*Result, error) {
	dir, o := q.Dir, q.Options
	settings := settingsIn(dir)
	r := &run{opts: o, exclusion: settings.Exclusion()}
	var err error
	var findings diag.Findings
	if r.tree, findings, err = readTree(ctx, dir, r.exclusion, unneeded(q.Ignored, settings.CRDs)...); err != nil {
		return nil, err
	}
	out := &Result{FormatVersion: "1", Repo: dir, Prefix: q.Prefix, Files: len(r.tree.files)}
	findings = append(findings, r.readFleet()...)
	if err := r.assume(); err != nil {
		return nil, err
	}
	secrets := checkSecrets(r.tree)
	findings = append(findings, secrets...)
	findings = append(findings, checkKustomizations(r.tree)...)
	findings = append(findings, checkNames(r.tree)...)
	if r.fleet != nil {
		findings = append(findings, checkCommits(r.fleet, q.Commits)...)
		more, err := r.checkFleet(ctx, out, secrets)
		if err != nil {
			return nil, err
		}
		findings = append(findings, more...)
	}
	findings = r.leaveOut(out, settings, tidy(r.excuse(findings)))
	out.Findings, out.Ignored = r.tree.silence(tidy(findings))
	out.Findings = append(out.Findings, r.checkSilenced(out)...)
	out.Findings, out.NotRendered = r.noteNotRendered(isWithin(tidy(out.Findings), q.Only))
	for i := range out.Findings {
		f := &out.Findings[i]
		if o.Strict {
			f.Severity = diag.SeverityError
		}
		if f.Severity == diag.SeverityError {
			out.Errors++
		} else {
			out.Warnings++
		}
	}
	return out, nil
}

// readFleet reads fleet.yaml and fleet.lock. It reports one that is no regular file, because other programs would follow a link to content
// that was not checked, or take the file for missing.
func (r *run) readFleet() (findings diag.Findings) {
	for _, name := range []string{v1alpha1.FileName, v1alpha1.LockFileName} {
		if r.tree.byPath[name] == nil && slices.Contains(r.tree.folders["."], name) {
			findings = append(findings, finding(RuleSyntax, name, 1, 1, "it is no regular file",
				"replace it with a regular file: fleetctl does not follow symbolic links"))
		}
	}
	if f := r.tree.byPath[v1alpha1.FileName]; f != nil && !f.broken {
		fleet, err := v1alpha1.Decode(f.path, f.content)
		if err == nil {
			r.fleet, findings = fleet, append(findings, v1alpha1.Validate(fleet)...)
		}
		if problems, ok := errors.AsType[diag.Findings](err); ok {
			findings = append(findings, problems...)
		}
	}
	if f := r.tree.byPath[v1alpha1.LockFileName]; f != nil && !f.broken {
		lock, err := v1alpha1.DecodeLock(f.path, f.content)
		if err == nil {
			r.lock = lock
		}
		if problems, ok := errors.AsType[diag.Findings](err); ok {
			findings = append(findings, problems...)
		}
	}
	return findings
}

// checkFleet makes all checks that need the content of fleet.yaml. secrets are the findings about secrets in files.
func (r *run) checkFleet(ctx context.Context, out *Result, secrets diag.Findings) (diag.Findings, error) {
	repo := fleetrepo.New(r.tree.dir, r.fleet)
	placed := checkLayout(r.tree, r.fleet, repo)
	out.Clusters = len(placed.clusters)
	findings := placed.findings

	disk, err := r.tree.disk()
	if err != nil {
		return nil, err
	}
	r.fleet = roots.AddTo(r.fleet, disk)
	renderer := render.New(r.tree.filesOver(disk), r.fleet,
		render.Options{
			CacheDir: r.opts.CacheDir, Schemas: &repo.Schemas, Begin: confine.Watch(ctx), Time: confine.TimeLimit(ctx),
			Outside: r.outside(ctx),
		})
	if r.rendered, err = renderer.All(ctx); err != nil {
		return nil, err
	}
	r.passOver(renderer)
	findings = append(findings, r.renderFindings(placed)...)
	objects := r.objects()
	out.Objects = len(r.rendered.Objects)
	for _, o := range r.rendered.Objects {
		if render.IsManifestCluster(o) {
			out.Clusters++
		}
	}
	kinds := kindsIn(objects)
	schemas, err := r.readSchemas(ctx, kinds)
	if err != nil {
		return nil, err
	}
	schemas.kubernetes = r.versionsOf(placed.clusters)
	if err := r.judge(ctx, schemas, kinds, objects); err != nil {
		return nil, err
	}
	r.doubtVersions(objects)
	findings = append(findings, schemas.findings...)
	findings = r.toldByField(findings, objects)
	for _, o := range objects {
		findings = append(findings, o.findings...)
	}
	j := &judged{placed: placed, renderer: renderer, schemas: schemas, objects: objects, checked: r.notExcluded(objects), secrets: secrets}
	findings = append(findings, checkTopologies(ctx, j.checked, objects)...)
	findings = append(findings, checkClassPatches(ctx, schemas, j.checked, objects)...)
	for _, rule := range rules() {
		if rule.check != nil {
			findings = append(findings, rule.check(r, j)...)
		}
	}
	return findings, nil
}

// checkLock reports components and charts of fleet.yaml that fleet.lock does not have, and charts that differ from it.
func (r *run) checkLock() diag.Findings {
	if r.lock == nil {
		return nil
	}
	out := r.checkChartDigests()
	for _, wanted := range components.Providers(r.fleet) {
		if wanted.Version != "" && r.lock.Find(wanted) == nil && isKnown(wanted) {
			out = append(out, finding(RuleLock, v1alpha1.LockFileName, r.lockLine(wanted), 0,
				fmt.Sprintf("%s, which fleet.yaml names, is not locked", wanted), "`fleetctl lock` adds it"))
		}
	}
	flux := r.fleet.Spec.Flux
	if wanted := components.LockedFlux(flux, ""); flux.Version != "" && r.lock.Find(wanted) == nil {
		out = append(out, finding(RuleLock, v1alpha1.LockFileName, r.lockLine(wanted), 0,
			fmt.Sprintf("%s, which fleet.yaml names, is not locked", wanted), "`fleetctl lock` adds it"))
	}
	return append(out, r.checkFeatureLock()...)
}

// tidy sorts findings and drops duplicates at one place.
func tidy(findings diag.Findings) diag.Findings {
	slices.SortStableFunc(findings, func(a, b diag.Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Summary, b.Summary))
	})
	return slices.CompactFunc(findings, func(a, b diag.Finding) bool {
		return a.File == b.File && a.Line == b.Line && a.Rule == b.Rule && (a.Summary == b.Summary || a.Rule == RulePlainSecret)
	})
}
