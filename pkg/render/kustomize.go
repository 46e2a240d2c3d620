package render

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/pkg/apis/kustomize"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
)

// buildSpec is what a Flux Kustomization adds to the folder that it builds.
type buildSpec struct {
	TargetNamespace         string            `json:"targetNamespace,omitempty"`
	NamePrefix              string            `json:"namePrefix,omitempty"`
	NameSuffix              string            `json:"nameSuffix,omitempty"`
	Patches                 []kustomize.Patch `json:"patches,omitempty"`
	Images                  []kustomize.Image `json:"images,omitempty"`
	Components              []string          `json:"components,omitempty"`
	IgnoreMissingComponents bool              `json:"ignoreMissingComponents,omitempty"`
}

// plain says that the folder is applied as it is.
func (s buildSpec) plain() bool {
	return s.TargetNamespace == "" && s.NamePrefix == "" && s.NameSuffix == "" && len(s.Patches) == 0 && len(s.Images) == 0 && len(s.Components) == 0
}

// perFile says that the spec does to a file the same whether it is built alone or with others. A patch without a target has to find its
// object, names are changed together with what refers to them.
func (s buildSpec) perFile() bool {
	return s.TargetNamespace == "" && s.NamePrefix == "" && s.NameSuffix == "" && len(s.Components) == 0 &&
		!slices.ContainsFunc(s.Patches, func(p kustomize.Patch) bool { return p.Target == nil })
}

// builds makes the objects of folders, each once however many Kustomizations apply it.
type builds struct {
	repo  *repo
	cache *cache

	mu   sync.Mutex
	done map[string]*built
}

// built is a folder with a spec.
type built struct {
	once     sync.Once
	objects  []*content
	findings diag.Findings
}

// build returns the objects of a folder as kustomize-controller builds them. The folder must be there. Of a scope, files that have
// nothing to do with it may be missing from the result.
func (b *builds) build(ctx context.Context, dir string, spec buildSpec, s scope) ([]*content, diag.Findings) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, diag.Findings{{Severity: diag.SeverityError, Rule: RuleKustomize, File: dir, Summary: err.Error()}}
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
	one.once.Do(func() { one.objects, one.findings = b.folder(ctx, dir, spec, text, s) })
	return one.objects, one.findings
}

func (b *builds) folder(ctx context.Context, dir string, spec buildSpec, specText []byte, s scope) ([]*content, diag.Findings) {
	names, findings := b.resources(dir)
	if findings != nil {
		return nil, findings
	}
	if names == nil || !spec.perFile() {
		return b.whole(dir, names, spec, specText)
	}
	alone, rest, findings := b.alone(ctx, dir, names, spec, specText, s)
	if len(rest) == 0 {
		return alone, findings
	}
	all, more := b.whole(dir, rest, spec, specText)
	return append(slices.Clip(all), alone...), append(findings, more...)
}

// resources are the files and kustomizations of a folder, if it is no more than a list of them: those of its kustomization.yaml where
// that has nothing else in it, or those that kustomize-controller puts into the one that it generates. nil: it is more.
func (b *builds) resources(dir string) ([]string, diag.Findings) {
	file := b.repo.kustomizationFile(dir)
	if file == "" {
		names := b.repo.manifests(dir)
		if names == nil {
			names = []string{}
		}
		return names, nil
	}
	content, err := b.repo.read(file)
	if err != nil {
		return nil, diag.Findings{{Severity: diag.SeverityError, Rule: RulePath, File: file, Summary: why(err)}}
	}
	documents, err := yamledit.ParseWithin(content, Limits)
	if err != nil {
		return nil, diag.Findings{syntaxFinding(RuleSyntax, file, err)}
	}
	if len(documents) != 1 {
		return nil, nil
	}
	var names []string
	for i := 0; i+1 < len(documents[0].Content); i += 2 {
		switch value := yamledit.Resolve(documents[0].Content[i+1]); documents[0].Content[i].Value {
		case "apiVersion", "kind", "metadata":
		case "resources":
			if value.Kind != yaml.SequenceNode {
				return nil, nil
			}
			for _, item := range value.Content {
				name, ok := inside(dir, yamledit.Resolve(item).Value)
				if !ok || isRemote(item.Value) || !b.repo.isFile(name) && b.repo.kustomizationFile(name) == "" {
					return nil, nil // whole says what is wrong
				}
				names = append(names, name)
			}
		default:
			return nil, nil
		}
	}
	return names, nil
}

// independent are the kinds in which kustomize changes nothing on behalf of other objects, and for which it changes no other.
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

// alone builds the files that can be built without the others, side by side, and returns the resources that cannot. With thousands of
// clusters in a folder that is the difference between seconds and hours: kustomize compares each object with all others.
func (b *builds) alone(ctx context.Context, dir string, names []string, spec buildSpec, specText []byte, s scope) ([]*content, []string, diag.Findings) {
	type outcome struct {
		objects  []*content
		findings diag.Findings
		together bool
	}
	outcomes := make([]outcome, len(names))
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

// one builds a single file, or says that it has to be built together with others.
func (b *builds) one(name string, spec buildSpec, specText []byte) (objects []*content, together bool, findings diag.Findings) {
	src, err := b.repo.read(name)
	if err != nil {
		return nil, false, diag.Findings{{Severity: diag.SeverityError, Rule: RulePath, File: name, Summary: why(err)}}
	}
	k := digest([]byte(cacheFormat), []byte("file"), []byte(name), src, specText)
	if !spec.plain() { // to parse a file takes no longer than to read what it was parsed to
		if objects, ok := b.cache.get(k); ok {
			return objects, false, nil
		}
	}
	objects, findings = parse(name, src)
	if findings != nil {
		return objects, false, findings // kustomize would say less
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

// whole builds a folder with kustomize: of the resources named, or where there are none of its own kustomization.yaml.
func (b *builds) whole(dir string, names []string, spec buildSpec, specText []byte) ([]*content, diag.Findings) {
	files := newClosure(b.repo)
	if names == nil {
		files.folder(dir, place{file: dir})
	}
	for _, name := range names {
		if b.repo.isFile(name) {
			files.file(name, place{file: name})
		} else {
			files.folder(name, place{file: name})
		}
	}
	for _, component := range spec.Components {
		name, ok := inside(dir, component)
		if ok && b.repo.isDir(name) {
			files.folder(name, place{file: dir})
		}
	}
	if len(files.findings) > 0 {
		return nil, files.findings
	}
	sum := files.digest()
	k := digest([]byte(cacheFormat), []byte("folder"), []byte(dir), []byte(strings.Join(names, "\n")), sum[:], specText)
	if objects, ok := b.cache.get(k); ok {
		return objects, nil
	}
	objects, findings := b.run(dir, names, files, spec)
	if findings == nil {
		b.cache.put(k, objects)
	}
	return objects, findings
}

// run gives the files to kustomize.
func (b *builds) run(dir string, names []string, files *closure, spec buildSpec) ([]*content, diag.Findings) {
	fail := func(err error) ([]*content, diag.Findings) {
		return nil, diag.Findings{buildFinding(b.repo, dir, names, err)}
	}
	disk := filesys.MakeFsInMemory()
	for name, content := range files.files {
		if err := disk.WriteFile("/"+name, content); err != nil {
			return fail(err)
		}
	}
	own, keepOrigin, err := kustomization(b.repo, dir, names, files, spec)
	if err != nil {
		return fail(err)
	}
	file := b.repo.kustomizationFile(dir)
	if names != nil || file == "" {
		file = path.Join(dir, konfig.DefaultKustomizationFileName())
		for _, other := range konfig.RecognizedKustomizationFileNames() {
			_ = disk.RemoveAll("/" + path.Join(dir, other)) // its resources are the names
		}
	}
	if err := disk.WriteFile("/"+file, own); err != nil {
		return fail(err)
	}
	resources, err := runKustomize(disk, "/"+dir, files.openAPI)
	if err != nil {
		return fail(err)
	}
	lines := &positions{files: files.files, known: map[string][]*content{}}
	objects := make([]*content, 0, len(resources))
	for _, r := range resources {
		origin, err := takeOrigin(r, keepOrigin)
		if err != nil {
			return fail(err)
		}
		c, err := contentOf(r)
		if err != nil {
			return fail(err)
		}
		c.source = Source{File: dir}
		if clean, ok := inside(dir, origin); ok && origin != "" {
			c.source = lines.find(clean, r.GetKind(), r.OrgId().Name)
		}
		objects = append(objects, c)
	}
	return objects, nil
}

// kustomizing keeps builds apart: kustomize has a schema that belongs to the process (kustomize issue 3659).
var kustomizing sync.Mutex

// runKustomize builds a folder of a file system that has nothing but what the build needs.
func runKustomize(disk filesys.FileSystem, dir string, openAPI bool) (out []*resource.Resource, err error) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	defer func() {
		if openAPI {
			openapi.ResetOpenAPI()
		}
		if p := recover(); p != nil { // kustomize takes some bad input for impossible
			err = fmt.Errorf("kustomize failed: %v", p)
		}
	}()
	result, err := krusty.MakeKustomizer(&krusty.Options{
		LoadRestrictions: kustypes.LoadRestrictionsNone, PluginConfig: kustypes.DisabledPluginConfig(),
	}).Run(disk, dir)
	if err != nil {
		return nil, err
	}
	return result.Resources(), nil
}

// kustomization is the kustomization.yaml that kustomize-controller would build from: that of the folder, or one that lists names, with
// what the spec says on top. keepOrigin says that the fleet itself asks for the annotation that we need.
func kustomization(r *repo, dir string, names []string, files *closure, spec buildSpec) (content []byte, keepOrigin bool, err error) {
	k := kustypes.Kustomization{TypeMeta: kustypes.TypeMeta{APIVersion: kustypes.KustomizationVersion, Kind: kustypes.KustomizationKind}}
	if names == nil {
		if err := sigsyaml.Unmarshal(files.files[r.kustomizationFile(dir)], &k); err != nil {
			return nil, false, err
		}
	}
	for _, name := range names {
		k.Resources = append(k.Resources, relative(dir, name))
	}
	keepOrigin = slices.Contains(k.BuildMetadata, kustypes.OriginAnnotations)
	if !keepOrigin {
		k.BuildMetadata = append(k.BuildMetadata, kustypes.OriginAnnotations)
	}
	spec.addTo(&k, r, dir)
	content, err = sigsyaml.Marshal(k)
	return content, keepOrigin, err
}

// addTo does what the generator of kustomize-controller does with the fields of a Flux Kustomization.
func (s buildSpec) addTo(k *kustypes.Kustomization, r *repo, dir string) {
	if s.TargetNamespace != "" {
		k.Namespace = s.TargetNamespace
	}
	if s.NamePrefix != "" {
		k.NamePrefix = s.NamePrefix
	}
	if s.NameSuffix != "" {
		k.NameSuffix = s.NameSuffix
	}
	for _, p := range s.Patches {
		k.Patches = append(k.Patches, patchOf(p))
	}
	for _, component := range s.Components {
		if name, ok := inside(dir, component); s.IgnoreMissingComponents && (!ok || !r.isDir(name)) {
			continue
		}
		k.Components = append(k.Components, component)
	}
	for _, image := range s.Images {
		k.Images = addImage(k.Images, image)
	}
}

func patchOf(p kustomize.Patch) kustypes.Patch {
	out := kustypes.Patch{Patch: p.Patch}
	if t := p.Target; t != nil {
		out.Target = &kustypes.Selector{LabelSelector: t.LabelSelector, AnnotationSelector: t.AnnotationSelector}
		out.Target.Group, out.Target.Version, out.Target.Kind = t.Group, t.Version, t.Kind
		out.Target.Name, out.Target.Namespace = t.Name, t.Namespace
	}
	return out
}

// addImage adds an image, or changes the entry of its name: a tag and a digest take each other's place.
func addImage(all []kustypes.Image, image kustomize.Image) []kustypes.Image {
	i := slices.IndexFunc(all, func(k kustypes.Image) bool { return k.Name == image.Name })
	if i < 0 {
		return append(all, kustypes.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
	}
	if image.NewName != "" {
		all[i].NewName = image.NewName
	}
	if image.NewTag != "" || image.Digest != "" {
		all[i].NewTag, all[i].Digest = image.NewTag, image.Digest
	}
	return all
}

// originAnnotation is where kustomize notes the file that an object comes from.
const originAnnotation = "config.kubernetes.io/origin"

// takeOrigin returns the file that an object comes from, relative to the folder that was built, and takes the annotation that says so
// away, unless the fleet itself asks for it.
func takeOrigin(r *resource.Resource, keep bool) (string, error) {
	var origin struct {
		Path         string `json:"path"`
		ConfiguredIn string `json:"configuredIn"`
	}
	annotations := r.GetAnnotations()
	if err := sigsyaml.Unmarshal([]byte(annotations[originAnnotation]), &origin); err != nil {
		return "", err
	}
	if !keep {
		delete(annotations, originAnnotation)
		if err := r.SetAnnotations(annotations); err != nil {
			return "", err
		}
	}
	return cmp.Or(origin.Path, origin.ConfiguredIn), nil
}

// contentOf turns what kustomize built into content.
func contentOf(r *resource.Resource) (*content, error) {
	text, err := r.AsYAML()
	if err != nil {
		return nil, err
	}
	if text, err = toJSON(text); err != nil {
		return nil, err
	}
	return newContent(text)
}

// positions finds the lines of objects in files, each of which is read once.
type positions struct {
	files map[string][]byte
	known map[string][]*content
}

func (p *positions) find(file, kind, name string) Source {
	all, ok := p.known[file]
	if !ok {
		all, _ = parse(file, p.files[file]) // what is wrong with it kustomize has said
		p.known[file] = all
	}
	best := Source{File: file}
	for _, c := range all {
		if c.Kind == kind && c.Metadata.Name == name {
			return c.source
		}
		if c.Kind == kind && best.Line == 0 {
			best = c.source
		}
	}
	return best
}

// buildFinding says what kustomize made of a folder: of one file, where it was built alone.
func buildFinding(r *repo, dir string, names []string, err error) diag.Finding {
	file := r.kustomizationFile(dir)
	if file == "" {
		file = dir
	}
	if len(names) == 1 {
		file = names[0]
	}
	text := strings.ReplaceAll(err.Error(), "'/"+dir+"'", dir)
	return diag.Finding{Severity: diag.SeverityError, Rule: RuleKustomize, File: file, Summary: "kustomize cannot build this: " + text}
}

// relative is the path of name as a file in dir names it. Both are clean, and below the top of the repo.
func relative(dir, name string) string {
	up := ""
	for dir != "." && !strings.HasPrefix(name, dir+"/") {
		dir, up = path.Dir(dir), up+"../"
	}
	if dir == "." {
		return up + name
	}
	return up + strings.TrimPrefix(name, dir+"/")
}
