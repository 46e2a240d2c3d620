package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// helmHook is the annotation that makes an object a hook.
const helmHook = "helm.sh/hook"

// installOrder ranks kinds.
var installOrder = sync.OnceValue(func() map[string]int {
	order := map[string]int{}
	for i, kind := range releaseutil.InstallOrder {
		order[kind] = i
	}
	return order
})

// objects parses the results of the templates. It leaves out the tests of the chart, which Flux runs only on request and removes again.
func (j *job) objects(loaded *loadedChart, c *chart.Chart, files map[string]string) ([]*content, diag.Findings) {
	var all []*content
	var findings diag.Findings
	for name, text := range files {
		if path.Base(name) == "NOTES.txt" {
			continue
		}
		template := loaded.place(name)
		objects, problems := parse(template, []byte(text))
		for _, p := range problems {
			summary := template + " makes no object of these values: " + p.Summary
			if p.Line > 0 {
				summary = template + " makes no object of these values, line " + strconv.Itoa(p.Line) + " of what it makes: " + p.Summary
			}
			findings = append(findings, j.finding(diag.SeverityError, RuleChart, summary, p.Hint)...)
		}
		for _, o := range objects {
			o.template = template
		}
		all = append(all, objects...)
	}
	if findings != nil {
		slices.SortFunc(findings, func(a, b diag.Finding) int { return strings.Compare(a.Summary, b.Summary) })
		return nil, findings
	}
	slices.SortFunc(all, compareContents)
	all, err := j.postRender(all)
	if err != nil {
		return nil, j.failed(RuleKustomize, err)
	}
	all = slices.DeleteFunc(all, func(o *content) bool {
		hooks := strings.Split(annotation(o, helmHook), ",")
		return slices.Contains(hooks, "test") || slices.Contains(hooks, "test-success") || hooks[0] != "" && j.spec.GetInstall().DisableHooks
	})
	if all, err = j.inNamespace(all); err != nil {
		return nil, j.failed(RuleChart, err)
	}
	sortByKind(all, installOrder())
	if j.spec.GetInstall().CRDs != helmv2.Skip {
		crds, problems := loaded.crds(c)
		if problems != nil {
			return nil, problems
		}
		all = append(crds, all...)
	}
	for _, o := range all {
		o.source = j.object.Source
	}
	return all, j.idle
}

// annotation returns one annotation. It decodes the object only if its text contains the annotation's name.
func annotation(c *content, name string) string {
	if !strings.Contains(string(c.json), name) {
		return ""
	}
	var o struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(c.json, &o); err != nil {
		return ""
	}
	return o.Metadata.Annotations[name]
}

// inNamespace sets the release's namespace on objects without one, as Helm does when it creates them.
func (j *job) inNamespace(all []*content) ([]*content, error) {
	for i, c := range all {
		if c.Metadata.Namespace != "" || isClusterWide(c) {
			continue
		}
		changed, err := c.withNamespace(j.release.ReleaseNamespace)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", c.Kind, c.Metadata.Name, err)
		}
		all[i] = changed
	}
	return all, nil
}

// shortenName shortens a release name that is too long for Helm as helm-controller does.
func shortenName(name string) string {
	const longest, hash = 53, 12
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:longest-(hash+1)] + "-" + hex.EncodeToString(sum[:])[:hash]
}
