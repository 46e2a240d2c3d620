package render

import (
	"context"
	"encoding/json"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fluxcd/pkg/apis/kustomize"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	kustypes "sigs.k8s.io/kustomize/api/types"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// buildSpec has the fields of a Flux Kustomization that change the build of its folder.
type buildSpec struct {
	TargetNamespace string            `json:"targetNamespace,omitempty"`
	NamePrefix      string            `json:"namePrefix,omitempty"`
	NameSuffix      string            `json:"nameSuffix,omitempty"`
	Patches         []kustomize.Patch `json:"patches,omitempty"`
	Images          []kustomize.Image `json:"images,omitempty"`
	// Components are folders with a kustomization, by the paths that kustomize gets.
	Components []string `json:"components,omitempty"`
}

// plain tells whether the spec changes nothing.
func (s buildSpec) plain() bool {
	return s.TargetNamespace == "" && s.NamePrefix == "" && s.NameSuffix == "" && len(s.Patches) == 0 && len(s.Images) == 0 &&
		len(s.Components) == 0
}

// perFile tells whether the spec changes each file in the same way, alone or together with others. That is not so for a patch without a
// target, which must find its object, and for changes of names, which also change references.
func (s buildSpec) perFile() bool {
	return s.TargetNamespace == "" && s.NamePrefix == "" && s.NameSuffix == "" && len(s.Components) == 0 &&
		!slices.ContainsFunc(s.Patches, func(p kustomize.Patch) bool { return p.Target == nil })
}

// builds keeps the built folders. It builds each folder once, even if several Kustomizations apply it.
type builds struct {
	repo  *repo
	cache cache
	begin func(name, group string, at func() string) (end func(), err error)
	// lenient leaves out resources that would have to be fetched, with a warning. Otherwise nothing of their folder would be built.
	lenient bool

	mu   sync.Mutex
	done map[string]*built
	// read are the files of the repo that went into a build.
	read  sync.Map
	parts parts
}

// built is a folder with a spec.
type built struct {
	once sync.Once
	outcome
}

// build returns the objects of a folder as kustomize-controller builds them. The folder must exist. Objects that are not in the scope may
// be missing from the result.
func (b *builds) build(ctx context.Context, dir string, spec buildSpec, s scope) outcome {
	text, err := json.Marshal(spec)
	if err != nil {
		return nothing(dir, diag.Findings{{Severity: diag.SeverityError, Rule: RuleKustomize, File: dir, Summary: err.Error()}})
	}
	name := strings.Join([]string{dir, string(text), s.environment, s.cluster}, "\x00")
	b.mu.Lock()
	if b.done == nil {
		b.done = map[string]*built{}
	}
	one := b.done[name]
	if one == nil {
		one = &built{}
		b.done[name] = one
	}
	b.mu.Unlock()
	one.once.Do(func() { one.outcome = b.folder(ctx, dir, spec, text, s) })
	return one.outcome
}

func (b *builds) folder(ctx context.Context, dir string, spec buildSpec, specText []byte, s scope) outcome {
	names, findings := b.resources(dir)
	if findings != nil {
		return nothing(dir, findings)
	}
	if names == nil || !spec.perFile() {
		return b.whole(dir, names, spec, specText)
	}
	alone, rest, findings := b.alone(ctx, dir, names, spec, specText, s)
	var out outcome
	if len(rest) > 0 {
		out = b.whole(dir, rest, spec, specText)
	}
	together := out.findings
	out.findings = findings
	out.add(outcome{objects: alone, findings: together, unread: unreadIn(findings)})
	return out
}

// files returns the files that the builds have read.
func (b *builds) files() map[string]bool {
	out := map[string]bool{}
	b.read.Range(func(name, _ any) bool {
		out[name.(string)] = true //nolint:forcetypeassert // all keys are strings
		return true
	})
	return out
}

// resources returns the files and folders of a folder that just lists them: the resources of a kustomization.yaml without other fields, or
// the files that kustomize-controller would list in a generated one. It returns nil if the folder has other fields or is faulty, which
// whole reports.
func (b *builds) resources(dir string) ([]string, diag.Findings) {
	files := b.repo.kustomizationFiles(dir)
	if len(files) == 0 {
		names := b.flat(b.repo.manifests(dir))
		if names == nil {
			names = []string{}
		}
		return names, nil
	}
	b.read.Store(files[0], nil)
	content, err := b.repo.read(files[0])
	if err != nil {
		return nil, diag.Findings{{Severity: diag.SeverityError, Rule: RulePath, File: files[0], Summary: why(err)}}
	}
	documents, err := yamledit.ParseWithin(content, Limits)
	if err != nil {
		return nil, diag.Findings{syntaxFinding(RuleSyntax, files[0], content, err)}
	}
	if len(documents) != 1 || len(files) > 1 {
		return nil, nil
	}
	var names []string
	seen := map[string]bool{}
	for i := 0; i+1 < len(documents[0].Content); i += 2 {
		field, value := documents[0].Content[i].Value, yamledit.Resolve(documents[0].Content[i+1])
		known := seen[field]
		seen[field] = true
		switch {
		case known:
			return nil, nil
		case field == "apiVersion" && value.Value == kustypes.KustomizationVersion, field == "kind" && value.Value == kustypes.KustomizationKind:
		case field == "resources" && value.Kind == yaml.SequenceNode:
			for _, item := range value.Content {
				name, ok := b.listed(dir, yamledit.Resolve(item))
				if !ok {
					return nil, nil
				}
				names = append(names, name)
			}
		default:
			return nil, nil
		}
	}
	return names, nil
}

// flat replaces each folder of a cluster that just lists files by these files. Kustomize builds the same objects from them, and each file
// can be built alone. There may be thousands of such folders.
func (b *builds) flat(names []string) []string {
	var out []string
	for _, name := range names {
		if b.repo.isFile(path.Join(name, "cluster.yaml")) {
			inner, findings := b.resources(name)
			if findings == nil && inner != nil && !slices.ContainsFunc(inner, func(n string) bool { return !b.repo.isFile(n) }) {
				out = append(out, inner...)
				continue
			}
		}
		out = append(out, name)
	}
	return out
}

// listed returns the file or folder that an item of a list of resources names, if it exists.
func (b *builds) listed(dir string, item *yaml.Node) (string, bool) {
	if item.ShortTag() != "!!str" || item.Value == "" || isRemote(item.Value) || isGitAddress(item.Value) {
		return "", false
	}
	name, ok := inside(dir, item.Value)
	if name == "." || strings.HasPrefix(dir+"/", name+"/") { // a cycle
		return "", false
	}
	return name, ok && (b.repo.isFile(name) && !isKustomization(name) || b.repo.kustomizationFile(name) != "")
}

// independent are the kinds whose objects kustomize builds alone: they change no other object, and no other object changes them.
var independent = map[string]bool{
	"v1/Namespace":                              true,
	"helm.toolkit.fluxcd.io/HelmRelease":        true,
	"kustomize.toolkit.fluxcd.io/Kustomization": true,
	"source.toolkit.fluxcd.io/GitRepository":    true,
}

func (c *content) isIndependent() bool {
	group := c.APIVersion
	if c.Kind != "Namespace" {
		group, _, _ = strings.Cut(c.APIVersion, "/")
	}
	return independent[group+"/"+c.Kind]
}

// alone builds each file that can be built without the others, concurrently, and returns the other resources. With thousands of clusters in
// a folder this takes seconds instead of hours, because kustomize compares each object with all others.
func (b *builds) alone(
	ctx context.Context,
	dir string,
	names []string,
	spec buildSpec,
	specText []byte,
	s scope,
) ([]*content, []string, diag.Findings) {
	type alone struct {
		objects  []*content
		findings diag.Findings
		together bool
	}
	outcomes := make([]alone, len(names))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		if ctx.Err() != nil {
			break
		}
		if !b.repo.isFile(name) {
			outcomes[i].together = true
			continue
		}
		if !s.wants(dir, name) {
			continue
		}
		group.Go(func() error {
			o := &outcomes[i]
			o.objects, o.together, o.findings = b.one(name, spec, specText)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	var all []*content
	var rest []string
	var findings diag.Findings
	for i, o := range outcomes {
		if o.together {
			rest = append(rest, names[i])
			continue
		}
		all = append(all, o.objects...)
		findings = append(findings, o.findings...)
	}
	return all, rest, findings
}

// one builds a single file, or returns that the file has to be built together with others.
func (b *builds) one(name string, spec buildSpec, specText []byte) (objects []*content, together bool, findings diag.Findings) {
	b.read.Store(name, nil)
	src, err := b.repo.read(name)
	if err != nil {
		return nil, false, diag.Findings{{Severity: diag.SeverityError, Rule: RulePath, File: name, Summary: why(err)}}
	}
	k := digest([]byte(cacheFormat), []byte("file"), []byte(name), src, specText)
	if !spec.plain() { // parsing a file takes no longer than reading the parsed form from the cache
		if objects, ok := b.cache.get(k); ok {
			return objects, false, nil
		}
	}
	objects, findings = parse(name, src)
	if findings != nil {
		return objects, false, findings // kustomize's error would say less
	}
	for _, c := range objects {
		if !c.isIndependent() {
			return nil, true, nil
		}
	}
	if spec.plain() {
		return objects, false, nil
	}
	files := newClosure(b.repo)
	files.files[name] = src
	objects, findings = b.run(path.Dir(name), []string{name}, files, spec)
	if findings == nil {
		b.cache.put(k, objects)
	}
	return objects, false, findings
}

// whole builds a folder with kustomize: from the named resources, or without names from its own kustomization.yaml. If it does not build,
// whole builds what can be built without the rest.
func (b *builds) whole(dir string, names []string, spec buildSpec, specText []byte) outcome {
	files := b.gather(dir, names, spec, nil)
	if len(files.findings) > 0 {
		return b.rest(files, dir, names, spec, specText, nothing(dir, files.findings))
	}
	sum := files.digest()
	k := digest([]byte(cacheFormat), []byte("folder"), []byte(dir), []byte(strings.Join(names, "\n")), sum[:], specText)
	before := files.changes(spec)
	if objects, ok := b.cache.get(k); ok {
		_ = b.parts.addBuild(files, nil) // what is cached had no findings
		return outcome{objects: before.of(objects), findings: files.left}
	}
	objects, findings := b.run(dir, names, files, spec)
	if findings == nil {
		b.cache.put(k, objects)
	}
	findings = b.parts.addBuild(files, findings)
	out := outcome{objects: before.of(objects), findings: files.excuse(findings)}
	if findings.Err() != nil {
		out.unbuilt = []string{dir}
		return b.rest(files, dir, names, spec, specText, out)
	}
	return out
}

// linkLeftOut is the summary of the finding about a link and the like. Flux builds the rest of the folder.
const linkLeftOut = "it is no regular file: Flux leaves it out"

// unbuilt tells whether one of the findings keeps Flux from building a folder.
func unbuilt(findings diag.Findings) bool {
	return slices.ContainsFunc(findings, func(f diag.Finding) bool { return f.Severity == diag.SeverityError && f.Summary != linkLeftOut })
}

// gather reads the files from which kustomize builds a folder, and records them as read. It leaves out the resources in without.
func (b *builds) gather(dir string, names []string, spec buildSpec, without map[string]bool) *closure {
	files := newClosure(b.repo)
	files.lenient, files.without = b.lenient, without
	if names == nil {
		files.folder(dir, place{file: dir})
	}
	for _, name := range names {
		switch {
		case !utf8.ValidString(name):
			files.problem(RulePath, place{file: name}, "its name is no UTF-8 text: Flux does not find the file", "rename it")
		case b.repo.isFile(name):
			files.asIs[name], files.resources[name] = true, true
			files.file(name, place{file: name})
		case b.repo.isDir(name):
			files.folder(name, place{file: name})
		default:
			files.problem(RulePath, place{file: name}, linkLeftOut, "replace it with a regular file")
		}
	}
	for _, component := range spec.Components { // components has checked that they exist in the repo
		if name, ok := inside(dir, component); ok {
			files.folder(name, place{file: dir})
		}
	}
	for name := range files.files {
		b.read.Store(name, nil)
	}
	return files
}
