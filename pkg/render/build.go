package render

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/pkg/apis/kustomize"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
)

// run lets kustomize build the files.
func (b *builds) run(dir string, names []string, files *closure, spec buildSpec) ([]*content, diag.Findings) {
	fail := func(err error) ([]*content, diag.Findings) {
		return nil, diag.Findings{buildFinding(b.repo, dir, names, err)}
	}
	disk, err := files.disk()
	if err != nil {
		return fail(err)
	}
	own, keepOrigin, err := kustomization(dir, names, files, spec)
	if err != nil {
		return fail(err)
	}
	file := b.repo.kustomizationFile(dir)
	if names != nil || file == "" {
		file = path.Join(dir, konfig.DefaultKustomizationFileName())
		for _, other := range konfig.RecognizedKustomizationFileNames() {
			_ = disk.RemoveAll("/" + path.Join(dir, other)) // the resources are names
		}
	}
	if err := disk.WriteFile("/"+file, own); err != nil {
		return fail(err)
	}
	result, refused, err := b.kustomize(disk, dir, names, files)
	if refused != nil {
		return nil, refused
	}
	if err != nil {
		if twice := files.twice(names); twice != nil {
			return nil, twice
		}
		return fail(err)
	}
	idle := files.idleFields(disk, dir, spec, result)
	resources := result.Resources()
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
	return objects, idle
}

// kustomize runs kustomize in a folder. If an earlier process died during this build, kustomize returns a finding and does not repeat it.
func (b *builds) kustomize(disk filesys.FileSystem, dir string, names []string, files *closure) (resmap.ResMap, diag.Findings, error) {
	at := dir
	if len(names) == 1 {
		at = names[0]
	}
	kustomizing.Lock() // the time of other builds does not count
	defer kustomizing.Unlock()
	end, err := b.begin("kustomize build of "+at, "", sync.OnceValue(files.largest))
	defer end()
	if err != nil {
		f := buildFinding(b.repo, dir, names, err)
		f.Rule = RuleLimits
		return nil, diag.Findings{f}, nil
	}
	out, err := kustomizeNow(disk, path.Join("/", dir), files.openAPI)
	return out, nil, err
}

// kustomizing allows one build at a time, because kustomize keeps its schema in a global variable (kustomize issue 3659).
var kustomizing sync.Mutex

// runKustomize builds a folder of a file system with only the files of the build.
func runKustomize(disk filesys.FileSystem, dir string, openAPI bool) ([]*resource.Resource, error) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	result, err := kustomizeNow(disk, dir, openAPI)
	if err != nil {
		return nil, err
	}
	return result.Resources(), nil
}

func kustomizeNow(disk filesys.FileSystem, dir string, openAPI bool) (out resmap.ResMap, err error) {
	defer func() {
		if openAPI {
			openapi.ResetOpenAPI()
		}
		if p := recover(); p != nil { // kustomize panics on some invalid input
			err = fmt.Errorf("kustomize failed: %v", p)
		}
	}()
	return krusty.MakeKustomizer(&krusty.Options{
		LoadRestrictions: kustypes.LoadRestrictionsNone, PluginConfig: kustypes.DisabledPluginConfig(),
	}).Run(disk, dir)
}

// kustomization returns the kustomization.yaml from which kustomize-controller would build: the folder's own or a generated one that lists
// names, with the fields of the spec on top. keepOrigin says that the fleet's own kustomization.yaml asks for the origin annotation, which
// fleetctl needs and otherwise removes.
func kustomization(dir string, names []string, files *closure, spec buildSpec) (content []byte, keepOrigin bool, err error) {
	var k kustypes.Kustomization
	if names == nil {
		k = *files.tops[dir]
	}
	k.APIVersion, k.Kind = cmp.Or(k.APIVersion, kustypes.KustomizationVersion), cmp.Or(k.Kind, kustypes.KustomizationKind)
	for _, name := range names {
		k.Resources = append(k.Resources, given(dir, name))
	}
	keepOrigin = slices.Contains(k.BuildMetadata, kustypes.OriginAnnotations)
	if !keepOrigin {
		k.BuildMetadata = append(slices.Clip(k.BuildMetadata), kustypes.OriginAnnotations)
	}
	spec.addTo(&k)
	content, err = sigsyaml.Marshal(k)
	return content, keepOrigin, err
}

// addTo adds the fields of a Flux Kustomization to k as kustomize-controller's generator does.
func (s buildSpec) addTo(k *kustypes.Kustomization) {
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
	k.Components = append(k.Components, s.Components...)
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

// addImage adds an image, or changes the entry of its name. A tag replaces a digest, and a digest replaces a tag.
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

// originAnnotation is the annotation in which kustomize records the file of an object.
const originAnnotation = "config.kubernetes.io/origin"

// takeOrigin returns the file of an object, relative to the built folder. It removes the annotation unless keep is true.
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

// contentOf turns an object that kustomize built into content.
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
		all, _ = parse(file, p.files[file]) // kustomize has already reported its faults
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

// mostTold is the length of an error of kustomize, in bytes, from which on its middle is left out.
const mostTold = 4000

// buildFinding is the finding about an error of kustomize. It points at the folder, or at the file if only one file was built.
func buildFinding(r *repo, dir string, names []string, err error) diag.Finding {
	file := r.kustomizationFile(dir)
	if file == "" {
		file = dir
	}
	if len(names) == 1 {
		file = names[0]
	}
	text := strings.ReplaceAll(err.Error(), "'/"+dir+"'", dir)
	if len(text) > mostTold { // kustomize repeats the whole text of a patch before it says what is wrong with it
		text = plain.Clip(text, mostTold/2) + strings.ToValidUTF8(text[len(text)-mostTold/2:], "")
	}
	line := 0
	if src, readErr := r.read(file); readErr == nil && len(names) != 1 { // a folder has no text
		line = buildLine(src, err.Error())
	}
	return diag.Finding{
		Severity: diag.SeverityError, Rule: RuleKustomize, File: file, Line: line, Summary: "kustomize cannot build this: " + text,
	}
}

// relative returns the path of name relative to dir. Both are clean paths in the repo.
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
