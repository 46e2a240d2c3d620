package review

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/fleetrepo"
	"github.com/fleetctl/fleetctl/pkg/gitrepo"
	"github.com/fleetctl/fleetctl/pkg/render"
)

// DiffOptions say what to compare.
type DiffOptions struct {
	// Dir is a folder in the fleet repo.
	Dir string
	// From is a revision; "" means HEAD. To is another revision, or "" for the working tree. The working tree is
	// compared with the last commit that From and HEAD have in common, so that commits that others have added to From
	// do not look reverted.
	From, To string
	// CacheDir keeps what is rendered; "" keeps nothing.
	CacheDir string
}

// Action is what happens to an object.
type Action string

// The actions.
const (
	Added   Action = "add"
	Changed Action = "change"
	Removed Action = "remove"
)

// ObjectChange is an object that differs.
type ObjectChange struct {
	Action      Action   `json:"action"`
	APIVersion  string   `json:"apiVersion"`
	Kind        string   `json:"kind"`
	Namespace   string   `json:"namespace,omitempty"`
	Name        string   `json:"name"`
	Environment string   `json:"environment,omitempty"`
	Cluster     string   `json:"cluster,omitempty"`
	Targets     []string `json:"targets,omitempty"`
	// File is the file of the fleet repo that the object comes from, or came from before it was removed.
	File string `json:"file,omitempty"`
	Diff string `json:"diff"`

	old, new *render.Object
}

// Report is the difference between two revisions.
type Report struct {
	FormatVersion string `json:"formatVersion"`
	// From and To are commits; To is "" for the working tree.
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	// Impact says in words what the change does. The gravest impact comes first.
	Impact  []Impact       `json:"impact"`
	Objects []ObjectChange `json:"objects"`
	// Problems are the problems of the newer side, whose files cannot be compared. OldProblems are the problems of the older side.
	Problems    diag.Findings `json:"problems"`
	OldProblems diag.Findings `json:"oldProblems"`
}

// Diff renders both sides and compares them. It renders folders that are the same on both sides once. The error is
// about the repo or Git. The report names a cluster that would be lost: see Report.Err.
func Diff(ctx context.Context, o DiffOptions) (*Report, error) {
	dir, declared, err := fleetrepo.FindAny(o.Dir)
	if err != nil {
		return nil, err
	}
	if declared {
		if _, err := v1alpha1.Load(filepath.Join(dir, v1alpha1.FileName)); err != nil {
			return nil, err
		}
	}
	git, err := gitrepo.OpenFor("compare", dir,
		"a difference is one between revisions of a Git repository, and the fleet repo has to be its top: if there is none, `git init` and "+
			"commit first")
	if err != nil {
		return nil, err
	}
	report := &Report{FormatVersion: "1"}
	if report.From, report.To, err = revisions(git, o); err != nil {
		return nil, err
	}
	if report.To == "" {
		if err := gitrepo.CheckSparse(ctx, dir, fleetrepo.Matters); err != nil {
			return nil, err
		}
	}
	sides := sides{Dir: dir, Ignored: ignoredIn(ctx, dir), CacheDir: render.CacheFor(o.CacheDir, dir)}
	if sides.Before, err = snapshotOf(git, report.From); err != nil {
		return nil, err
	}
	if report.To != "" {
		if sides.After, err = snapshotOf(git, report.To); err != nil {
			return nil, err
		}
	}
	found, err := DiffTask.Run(ctx, sides, confine.Needs{Read: []string{dir}, Write: writable(sides.CacheDir)})
	if err != nil {
		return nil, err
	}
	report.Objects, report.Impact = append([]ObjectChange{}, found.Objects...), append([]Impact{}, found.Impact...)
	if err := report.findSteps(ctx, git); err != nil {
		return nil, err
	}
	report.Problems, report.OldProblems = append(diag.Findings{}, found.Problems...), append(diag.Findings{}, found.OldProblems...)
	return report, nil
}

// sides is the input of the process that compares, which has no Git repository. After is nil if the newer side is the
// folder.
type sides struct {
	Dir, CacheDir string
	// Ignored are the files and folders of Dir that Git ignores and does not track.
	Ignored       []string
	Before, After *snapshot
}

// LeftProblems are the problems of the older side that the newer side does not have: what they are about looks new.
func (r *Report) LeftProblems() diag.Findings {
	var left diag.Findings
	for _, old := range r.OldProblems {
		if !slices.ContainsFunc(r.Problems, func(now diag.Finding) bool {
			return now.Rule == old.Rule && now.File == old.File && now.Summary == old.Summary
		}) {
			left = append(left, old)
		}
	}
	return left
}

// DiffTask is the part of Diff that interprets the files of the fleet repo.
var DiffTask = confine.New("diff", diffTask)

func diffTask(ctx context.Context, s sides) (*Report, error) {
	old, err := s.Before.side()
	if err != nil {
		return nil, err
	}
	var now *fleetFiles
	if s.After != nil {
		now, err = s.After.side()
	} else {
		now, err = folderSide(s.Dir, s.Ignored)
	}
	if err != nil {
		return nil, err
	}
	if err := old.completeWith(now, filepath.Base(s.Dir)); err != nil {
		return nil, err
	}
	before, err := old.render(ctx, s.CacheDir)
	if err != nil {
		return nil, err
	}
	after, err := now.render(ctx, s.CacheDir)
	if err != nil {
		return nil, err
	}
	end, err := confine.Begin(ctx, "the comparison of the two sides", "")
	defer end()
	if err != nil {
		return nil, err
	}
	report := &Report{Objects: compared(before, after), Problems: after.Findings, OldProblems: before.Findings}
	report.Impact = impactOf(report.Objects, before.Objects, after.Objects, failedFiles(before.Findings, after.Findings))
	return report, nil
}

// failedFiles returns the files with an error on either side.
func failedFiles(sides ...diag.Findings) map[string]bool {
	failed := map[string]bool{}
	for _, f := range slices.Concat(sides...) {
		if f.Severity == diag.SeverityError {
			failed[f.File] = true
		}
	}
	return failed
}

// revisions returns the commits to compare.
func revisions(git *gitrepo.Repo, o DiffOptions) (from, to string, err error) {
	if o.From == "" {
		from, err = git.Resolve("HEAD")
		return from, "", err
	}
	if from, err = git.Resolve(o.From); err != nil {
		return "", "", err
	}
	if o.To != "" {
		to, err = git.Resolve(o.To)
		return from, to, err
	}
	head, err := git.Resolve("HEAD")
	if err != nil {
		return "", "", err
	}
	from, err = git.MergeBase(from, head)
	return from, "", err
}

// id identifies an object on one of the clusters that it is applied to.
func id(o *render.Object, target string) string {
	group, _, versioned := strings.Cut(o.APIVersion, "/")
	if !versioned {
		group = ""
	}
	return strings.Join([]string{o.ManagementCluster, target, group, o.Kind, o.Namespace, o.Name}, "\x00")
}

// madeBy returns, of several objects with one identity, the one that the owner makes; the first, if the owner makes
// none. Several exist if two Flux objects make the same object, which the renderer reports. Each is then compared with
// the earlier object of the same owner.
func madeBy(all []*render.Object, owner render.Owner) *render.Object {
	for _, o := range all {
		if o.Owner == owner {
			return o
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

// compare returns the changed objects: first those of the newer side in its order, then the removed ones in the order of the older side.
// Objects that workload clusters share are compared cluster by cluster. A change that is the same for several clusters is shown once. An
// object that stays on a target, although after does not have it, is not removed.
func compare(before, after []*render.Object, stays func(o *render.Object, target string) bool) []ObjectChange {
	old, seen := map[string][]*render.Object{}, map[string]bool{}
	for _, o := range before {
		for _, t := range targetsOf(o) {
			k := id(o, t)
			old[k] = append(old[k], o)
		}
	}
	all := []ObjectChange{}
	for _, o := range after {
		was := map[*render.Object][]string{}
		var order []*render.Object
		for _, t := range targetsOf(o) {
			k := id(o, t)
			seen[k] = true
			there := madeBy(old[k], o.Owner)
			if there != nil && bytes.Equal(there.JSON, o.JSON) {
				continue
			}
			if _, ok := was[there]; !ok {
				order = append(order, there)
			}
			was[there] = append(was[there], t)
		}
		for _, there := range order {
			all = append(all, change(there, o, was[there]))
		}
	}
	for _, o := range before {
		var gone []string
		for _, t := range targetsOf(o) {
			if !seen[id(o, t)] && !stays(o, t) {
				gone = append(gone, t)
			}
		}
		if len(gone) > 0 {
			all = append(all, change(o, nil, gone))
		}
	}
	return all
}

// targetsOf returns the clusters that an object is applied to; "" is the management cluster.
func targetsOf(o *render.Object) []string {
	if len(o.Targets) == 0 {
		return []string{""}
	}
	return o.Targets
}

func change(before, after *render.Object, targets []string) ObjectChange {
	c := ObjectChange{Action: Changed, old: before, new: after}
	shown := after
	switch {
	case before == nil:
		c.Action = Added
	case after == nil:
		c.Action, shown = Removed, before
	}
	c.APIVersion, c.Kind, c.Namespace, c.Name = shown.APIVersion, shown.Kind, shown.Namespace, shown.Name
	c.Environment, c.Cluster = shown.Environment, shown.Cluster
	if targets[0] != "" {
		c.Targets = targets
	}
	c.Diff = unified(&c)
	return c
}

// unified returns the difference for people. It does not show the content of a Secret.
func unified(c *ObjectChange) string {
	name := filepath.ToSlash(pathOf(firstOf(c.new, c.old))) + ".yaml"
	from, to := "a/"+name, "b/"+name
	if c.old == nil {
		from = "/dev/null"
	}
	if c.new == nil {
		to = "/dev/null"
	}
	if c.Kind == "Secret" && c.APIVersion == "v1" {
		return fmt.Sprintf("--- %s\n+++ %s\n@@ the content of a Secret is not shown @@\n", from, to)
	}
	return udiff.Unified(from, to, yamlOf(c.old), yamlOf(c.new))
}

func firstOf(a, b *render.Object) *render.Object {
	if a != nil {
		return a
	}
	return b
}

func yamlOf(o *render.Object) string {
	if o == nil {
		return ""
	}
	return string(o.YAML())
}

// short returns the beginning of a digest, which distinguishes objects of the same kind and name.
func short(o *render.Object) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.APIVersion, o.Kind, o.Name, o.Owner.String(), strings.Join(o.Targets, ",")}, "\x00")))
	return hex.EncodeToString(sum[:4])
}
