package validate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/fleetctl/fleetctl/pkg/confine"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
)

// object is an object to check. Flux would apply it, or it is in a document that nothing applies yet.
type object struct {
	*render.Object
	// document has the object, or the HelmRelease whose chart makes the object. It is nil if the repo has neither.
	document *document
	// content, if set, replaces the object's JSON.
	content map[string]any

	findings diag.Findings
	unknown  bool // no schema is known for its kind
	refs     []reference
	selects  []selection
	made     []known
	networks []network
	runs     *runs // its versions of Kubernetes; nil for an object without any
}

func (o *object) gvk() kschema.GroupVersionKind {
	gv, err := kschema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return kschema.GroupVersionKind{Kind: o.Kind}
	}
	return gv.WithKind(o.Kind)
}

// objects returns all objects to check.
func (r *run) objects() []*object {
	var out []*object
	applied := map[string]bool{}
	for _, o := range r.rendered.Objects {
		out = append(out, &object{Object: o, document: r.tree.documentAt(o.Source.File, o.Source.Line)})
		applied[o.Source.File] = true
	}
	parts := r.tree.kustomizeParts()
	for _, f := range r.tree.files {
		if f.excluded || applied[f.path] || parts[f.path] || !isApplicable(f.path) {
			continue
		}
		for _, d := range f.documents {
			if o := unapplied(d); o != nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// isApplicable tells whether a file is in a place for objects.
func isApplicable(name string) bool {
	top, _, nested := strings.Cut(name, "/")
	return nested && slices.Contains([]string{"addons", "features", "providers", "tenants"}, top) && !layout.IsKustomization(name)
}

// unapplied is the object of a document. It is nil if the document is no object, or if it has variables.
func unapplied(d *document) *object {
	version, _ := d.object["apiVersion"].(string)
	kind, _ := d.object["kind"].(string)
	if version == "" || kind == "" || nameOf(d.object) == "" || strings.HasPrefix(version, "kustomize.config.k8s.io/") {
		return nil
	}
	lines := bytes.Split(d.file.content, []byte("\n"))
	if bytes.Contains(bytes.Join(lines[d.start-1:min(d.end, len(lines))], []byte("\n")), []byte("${")) {
		return nil
	}
	return &object{
		Object: &render.Object{
			APIVersion: version, Kind: kind, Name: nameOf(d.object),
			Source: render.Source{File: d.file.path, Line: d.node.Line},
		},
		document: d, content: d.object,
	}
}

// documentAt returns the document at a line of a file.
func (t *tree) documentAt(name string, line int) *document {
	f := t.byPath[name]
	if f == nil {
		return nil
	}
	for _, d := range f.documents {
		if line >= d.start && line <= d.end {
			return d
		}
	}
	return nil
}

// kustomizeParts returns the files that a kustomization.yaml uses, but not as objects: patches, and the inputs of its generators.
func (t *tree) kustomizeParts() map[string]bool {
	parts := map[string]bool{}
	for _, f := range t.files {
		if !layout.IsKustomization(f.path) {
			continue
		}
		for _, d := range f.documents {
			for field, value := range d.object {
				if field != "resources" && field != "components" && field != "bases" {
					eachText(value, func(text string) { parts[path.Join(path.Dir(f.path), text)] = true })
				}
			}
		}
	}
	return parts
}

// checkKustomizations reports, in every kustomization.yaml, fields that kustomize does not know or would read in another way than fleetctl.
// For an applied kustomization.yaml the renderer reports the same.
func checkKustomizations(t *tree) diag.Findings {
	var out diag.Findings
	for _, f := range t.files {
		if !layout.IsKustomization(f.path) || f.broken || f.content == nil {
			continue
		}
		for _, found := range render.CheckKustomization(f.path, f.content) {
			found.Rule = renderedRules[found.Rule]
			out = append(out, found)
		}
	}
	return out
}

// eachText visits all texts in a value, which may be paths.
func eachText(value any, visit func(text string)) {
	switch value := value.(type) {
	case string:
		if _, name, ok := strings.Cut(value, "="); ok { // name=path of a generator
			visit(name)
		}
		if len(value) < 1000 && !strings.Contains(value, "\n") {
			visit(value)
		}
	case []any:
		for _, v := range value {
			eachText(v, visit)
		}
	case map[string]any:
		for _, v := range value {
			eachText(v, visit)
		}
	}
}

// kindsIn returns the kinds of all objects.
func kindsIn(all []*object) map[kschema.GroupVersionKind]bool {
	kinds := map[kschema.GroupVersionKind]bool{}
	for _, o := range all {
		kinds[o.gvk()] = true
	}
	return kinds
}

// judge checks all objects against the schemas of their kinds, concurrently.
func (r *run) judge(ctx context.Context, s *schemas, kinds map[kschema.GroupVersionKind]bool, all []*object) error {
	s.Prepare(ctx, slices.Collect(maps.Keys(kinds)))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for chunk := range slices.Chunk(all, 64) {
		group.Go(func() error {
			return r.judgeChunk(ctx, s, chunk)
		})
	}
	return group.Wait()
}

// judgeChunk checks some objects. If an earlier process died while it checked them, judgeChunk checks them one by one, without the object
// that killed the process.
func (r *run) judgeChunk(ctx context.Context, s *schemas, chunk []*object) error {
	many, end, err := confine.BeginMany(ctx, fmt.Sprintf("%d objects, from %s on", len(chunk), chunk[0].name()))
	defer end()
	for _, o := range chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err != nil {
			o.judgeAlone(ctx, s, &r.accepted)
			continue
		}
		if err := many.Next(o.name); err != nil {
			o.refuse(err)
			continue
		}
		o.judge(ctx, s, &r.accepted)
	}
	return nil
}

// refuse reports that an object is not checked.
func (o *object) refuse(why error) {
	o.findings = diag.Findings{o.at("", RuleLimit, why.Error(), "")}
}

func (o *object) judgeAlone(ctx context.Context, s *schemas, like *accepted) {
	end, err := confine.Begin(ctx, o.name(), "")
	defer end()
	if err != nil {
		o.refuse(err)
		return
	}
	o.judge(ctx, s, like)
}

// name is a unique name of the object.
func (o *object) name() string {
	text := fmt.Sprintf("the object %s (%s:%d)", o.ID(), o.Source.File, o.Source.Line)
	if len(o.Targets) > 0 {
		text += " on " + o.Targets[0]
	}
	return text
}

func (o *object) judge(ctx context.Context, s *schemas, like *accepted) {
	content := o.content
	if content == nil {
		if like.has(ctx, o, s) {
			return
		}
		if err := kjson.Unmarshal(o.JSON, &content); err != nil {
			o.findings = diag.Findings{o.at("", RuleSyntax, fmt.Sprintf("not a Kubernetes object: %v", err), "")}
			return
		}
	}
	o.refs, o.selects = referencesOf(o, content)
	o.runs, o.made = runsOf(o, content), madeOf(o, content)
	networks, wrong := networksOf(o, content)
	o.networks, o.findings = networks, slices.Concat(o.findings, wrong, checkRanges(o, content), checkRefused(o, content),
		s.checkNamedKinds(ctx, o, content), checkFluxForms(o, content))
	if o.content != nil || o.Template == "" {
		content = withoutSOPS(content)
	}
	if content == nil {
		return
	}
	check := s.CheckOwn
	if o.content != nil {
		check = s.Check
	}
	problems, err := check(ctx, content)
	switch {
	case errors.Is(err, schema.ErrUnknownKind):
		_, gone := o.gone(s)
		o.unknown = gone == ""
	case err != nil:
		o.findings = append(o.findings, s.broken(o, err))
	}
	if len(problems) == 0 {
		o.findings = append(o.findings, s.refusedCRD(ctx, o, content)...)
	}
	gvk := o.gvk()
	told := slices.ContainsFunc(problems, func(p schema.Problem) bool { return p.Type == schema.Version })
	if where, hint := o.gone(s); hint != "" && !told {
		o.findings = append(o.findings, o.at("apiVersion", RuleAPIVersion,
			fmt.Sprintf("Kubernetes serves no %s %s any more%s", o.APIVersion, o.Kind, where), hint))
	}
	open := bytes.Contains(o.JSON, []byte("${")) // it has variables, whose values only the cluster knows
	for _, p := range problems {
		if p.Type == schema.Required && o.content != nil && !s.HasCRD(o.gvk().Group, o.gvk().Kind) {
			continue // it may be a patch
		}
		if open && p.Type != schema.Unknown && p.Type != schema.Version && p.Type != schema.Deprecated {
			continue
		}
		found := o.at(p.Path, ruleOfProblem(p.Type), p.Summary, p.Hint)
		if p.Type == schema.Metadata && o.Namespace != "" && p.Path == "metadata.namespace" && !s.Namespaced(gvk) {
			found.Severity, found.Hint = diag.SeverityWarning, "the API server drops the namespace of an object that is of the whole cluster"
		}
		o.findings = append(o.findings, found)
	}
	if o.Namespace == "" && o.content == nil && o.Template == "" && s.Namespaced(o.gvk()) {
		o.findings = append(o.findings, o.at("metadata.namespace", RuleMissingNS, "the object needs a namespace, and has none", ""))
	}
	found := len(problems) + len(o.findings) + len(o.refs) + len(o.selects) + len(o.made) + len(o.networks)
	if o.content == nil && o.Template != "" && err == nil && found == 0 && !o.runs.says() {
		like.add(o)
	}
}

// gone is the hint about an API version that the Kubernetes version of one of the object's clusters no longer serves. It is "" if all of
// them serve the version, or if a CRD declares it. where is as in goneFor.
func (o *object) gone(s *schemas) (where, hint string) {
	gvk := o.gvk()
	where, gone := s.goneFor(o, gvk)
	if !gone || s.HasCRD(gvk.Group, gvk.Kind) {
		return "", ""
	}
	minor, instead := schema.Gone(gvk)
	return where, fmt.Sprintf("it is gone since v1.%d: write %s", minor, instead)
}

// withoutSOPS returns an object without the fields that SOPS adds, and without encrypted values. It returns nil if nothing is left to
// check.
func withoutSOPS(content map[string]any) map[string]any {
	if _, encrypted := content["sops"]; !encrypted {
		return content
	}
	if content["kind"] != "Secret" || content["apiVersion"] != "v1" {
		return nil
	}
	out := maps.Clone(content)
	delete(out, "sops")
	delete(out, "data")
	return out
}

func ruleOfProblem(t schema.Type) string {
	switch t {
	case schema.Unknown:
		return RuleUnknownField
	case schema.WrongType:
		return RuleType
	case schema.Required:
		return RuleRequired
	case schema.Duplicate:
		return RuleDuplicate
	case schema.Rule:
		return RuleSchemaRule
	case schema.Metadata:
		return RuleMetadata
	case schema.Version:
		return RuleAPIVersion
	case schema.Deprecated:
		return RuleDeprecated
	case schema.Invalid:
	}
	return RuleValue
}

// at returns a finding about a field of the object. The finding points at the field if the repo has the object, or else at the HelmRelease
// whose chart makes the object.
func (o *object) at(field, rule, summary, hint string) diag.Finding {
	text := o.Kind + " " + o.Name + ": "
	if field != "" {
		text += field + ": "
	}
	f := finding(rule, o.Source.File, o.Source.Line, 0, text+summary, hint)
	f.Gist = o.Kind + ": " + o.Template + ": " + o.unnamed(field+": "+summary)
	switch {
	case o.Template != "":
		f.Summary += " (made by " + o.Template + ")"
	case o.document != nil:
		node := locate(o.document.node, field)
		f.Line, f.Column = node.Line, node.Column
	}
	return f
}

// isProviders tells whether a group belongs to Cluster API or to one of its providers.
func isProviders(group string) bool {
	return strings.HasSuffix(group, "cluster.x-k8s.io") || strings.HasSuffix(group, ".azure.com")
}
