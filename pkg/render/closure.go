package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	kustypes "sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// closure has all files that a build reads, gathered before kustomize runs. Kustomize sees only these files. It gets each kustomization as
// fleetctl decoded it and wrote it again: every path in it leads to one of these files, and none begins like a URL. So kustomize cannot
// leave the repo by a path or over the network, and none of the files is a YAML bomb.
type closure struct {
	repo  *repo
	files map[string][]byte
	// written are the files that differ from their originals in the repo. asIs are the files that are needed unchanged.
	written, asIs map[string]bool
	tops          map[string]*kustypes.Kustomization
	// aimed are the kustomizations with fields that look for objects, by their folders. parts are the Components among them, which look for
	// the objects of whoever includes them.
	aimed    map[string]*kustFile
	parts    map[string]*kustFile
	weights  map[string]int
	within   []string // the folders of plugin configurations whose build needs this closure
	findings diag.Findings
	// resources are the files that are named as resources. without are those to leave out, because they cannot be read.
	resources, without map[string]bool
	// lenient leaves remote resources out, each with a finding in left.
	lenient bool
	left    diag.Findings
	// openAPI says that the build reads a custom OpenAPI schema, which kustomize keeps for all later builds of the process.
	openAPI bool
}

func newClosure(r *repo) *closure {
	return &closure{
		repo: r, files: map[string][]byte{}, written: map[string]bool{}, asIs: map[string]bool{},
		tops: map[string]*kustypes.Kustomization{}, aimed: map[string]*kustFile{}, parts: map[string]*kustFile{}, weights: map[string]int{},
		resources: map[string]bool{},
	}
}

func (c *closure) problem(rule string, at place, summary, hint string) {
	c.findings = append(c.findings, diag.Finding{
		Severity: diag.SeverityError, Rule: rule, File: at.file, Line: at.line, Column: at.column, Summary: summary, Hint: hint,
	})
}

// maxFolders is the most folders that kustomize may go through in one build. Kustomize builds a folder, with all folders below, as often as
// it is named.
const maxFolders = 100_000

// folder adds a kustomization and all files that it names. It returns how many folders kustomize goes through for it.
func (c *closure) folder(dir string, from place) int {
	if weight, ok := c.weights[dir]; ok {
		if weight == 0 {
			c.problem(RuleKustomize, from, fmt.Sprintf("a cycle: %s is made of itself", dir), "")
		}
		return weight
	}
	c.weights[dir] = 0 // until the files that it names are added
	c.weights[dir] = c.newFolder(dir, from)
	return c.weights[dir]
}

// newFolder is folder for a folder that was not added yet.
func (c *closure) newFolder(dir string, from place) int {
	files := c.repo.kustomizationFiles(dir)
	if len(files) == 0 {
		c.problem(RulePath, from, fmt.Sprintf("the folder %s has no kustomization.yaml", dir), "name its files, or add one")
		return 1
	}
	if len(files) > 1 {
		c.problem(RuleKustomize, place{file: files[1]}, fmt.Sprintf("%s is there as well: kustomize takes one of them in a folder", files[0]),
			"put them together, or give this one a folder of its own")
		return 1
	}
	content := c.file(files[0], from)
	if content == nil {
		return 1
	}
	k, findings := decodeKustomization(files[0], content)
	if findings != nil {
		c.findings = append(c.findings, findings...)
		return 1
	}
	before := len(c.findings)
	weight := c.kustomization(dir, k)
	if len(c.findings) > before {
		return weight
	}
	if weight > maxFolders {
		c.problem(RuleScreen, k.at(),
			fmt.Sprintf("kustomize would go through more than %d folders: those that are named several times are built as often", maxFolders),
			"name each folder once")
		return 1
	}
	c.tops[dir] = &k.Kustomization
	switch {
	case !k.aims():
	case k.Kind == kustypes.ComponentKind:
		c.parts[dir] = k
	default:
		c.aimed[dir] = k
	}
	c.write(files[0], k.Kustomization, k.at())
	return weight
}

// write adds a kustomization in its decoded form.
func (c *closure) write(file string, k kustypes.Kustomization, at place) {
	if k.CheckEmpty() == nil && len(k.BuildMetadata) == 0 {
		// Kustomize ignores this field in a kustomization below another one.
		k.BuildMetadata = []string{kustypes.OriginAnnotations}
	}
	text, err := sigsyaml.Marshal(k)
	if err != nil {
		c.problem(RuleKustomize, at, err.Error(), "")
		return
	}
	c.rewrite(file, text, at)
}

// rewrite replaces the text of a file for kustomize.
func (c *closure) rewrite(file string, text []byte, at place) {
	c.files[file], c.written[file] = text, true
	c.once(file, at)
}

// once refuses a file that was rewritten for one use and is needed unchanged for another.
func (c *closure) once(file string, at place) {
	if c.written[file] && c.asIs[file] {
		c.problem(RuleKustomize, at, file+" is used both as configuration of kustomize and as a plain file", "make a copy of it for one of them")
	}
}

// kustomization adds the files that the fields of a kustomization.yaml name, and replaces each path by one that can only lead to this file.
func (c *closure) kustomization(dir string, k *kustFile) (weight int) {
	weight = 1
	several := func(field string, list []string, what target) {
		for i := range list {
			weight += c.path(dir, &list[i], what, k.at(field, i), fmt.Sprintf("%s[%d]", field, i))
			weight = min(weight, maxFolders+1)
		}
	}
	several("resources", k.Resources, aFile|aFolder)
	several("bases", k.Bases, aFile|aFolder) //nolint:staticcheck // deprecated, but kustomize still reads it
	several("components", k.Components, aFolder)
	for _, list := range []*[]string{&k.Resources, &k.Bases, &k.Components} { //nolint:staticcheck // as above
		*list = slices.DeleteFunc(*list, func(name string) bool { return name == leftOut })
	}
	several("crds", k.Crds, aFile)
	for i, name := range k.Crds {
		c.crds(dir, name, k.at("crds", i))
	}
	several("configurations", k.Configurations, aFile)
	//nolint:staticcheck // deprecated, but kustomize still reads it
	for field, patches := range map[string][]kustypes.Patch{"patches": k.Patches, "patchesJson6902": k.PatchesJson6902} {
		for i := range patches {
			c.optional(dir, &patches[i].Path, k.at(field, i, "path"), fmt.Sprintf("%s[%d].path", field, i))
			c.untargeted(dir, k, field, i, patches[i])
		}
	}
	for i := range k.Replacements {
		c.optional(dir, &k.Replacements[i].Path, k.at("replacements", i, "path"), fmt.Sprintf("replacements[%d].path", i))
	}
	if name, ok := k.OpenAPI["path"]; ok {
		c.openAPI = true
		c.path(dir, &name, aFile, k.at("openapi", "path"), "openapi.path")
		k.OpenAPI["path"] = name
	}
	for i := range k.PatchesStrategicMerge { //nolint:staticcheck // deprecated, but kustomize still reads it
		//nolint:staticcheck // as above
		c.patch(dir, &k.PatchesStrategicMerge[i], k.at("patchesStrategicMerge", i),
			fmt.Sprintf("patchesStrategicMerge[%d]", i))
	}
	for i := range k.ConfigMapGenerator {
		c.generator(dir, &k.ConfigMapGenerator[i].KvPairSources, fmt.Sprintf("configMapGenerator[%d].", i), func(path ...any) place {
			return k.at(append([]any{"configMapGenerator", i}, path...)...)
		})
	}
	for i := range k.SecretGenerator {
		c.generator(dir, &k.SecretGenerator[i].KvPairSources, fmt.Sprintf("secretGenerator[%d].", i), func(path ...any) place {
			return k.at(append([]any{"secretGenerator", i}, path...)...)
		})
	}
	c.plugins(dir, k, "generators", k.Generators)
	c.plugins(dir, k, "transformers", k.Transformers)
	c.plugins(dir, k, "validators", k.Validators)
	for field, there := range map[string]bool{
		"helmCharts": k.HelmCharts != nil, "helmGlobals": k.HelmGlobals != nil,
		"helmChartInflationGenerator": k.HelmChartInflationGenerator != nil,
	} {
		if there {
			c.problem(RuleKustomize, k.key(field), field+" is not available in Flux", "use a HelmRelease")
		}
	}
	return weight
}

// patch adds an inline patch, or the file with the patch.
func (c *closure) patch(dir string, patch *kustypes.PatchStrategicMerge, at place, field string) {
	if err := bombOf([]byte(*patch), 0); err != nil {
		c.beyond(at, err)
		return
	}
	if _, err := resourcesIn([]byte(*patch)); err != nil {
		name := string(*patch)
		c.path(dir, &name, aFile, at, field)
		*patch = kustypes.PatchStrategicMerge(name)
	}
}

// generator adds the files from which a ConfigMap or Secret is generated.
func (c *closure) generator(dir string, from *kustypes.KvPairSources, field string, at func(path ...any) place) {
	for i, source := range from.FileSources {
		key, name, keyed := strings.Cut(source, "=")
		if !keyed {
			key, name = "", source
		}
		c.path(dir, &name, aFile, at("files", i), fmt.Sprintf("%sfiles[%d]", field, i))
		if keyed {
			name = key + "=" + name
		}
		from.FileSources[i] = name
	}
	for i := range from.EnvSources {
		c.path(dir, &from.EnvSources[i], aFile, at("envs", i), fmt.Sprintf("%senvs[%d]", field, i))
	}
	c.optional(dir, &from.EnvSource, at("env"), field+"env")
}

// optional is path for a field that may be empty.
func (c *closure) optional(dir string, name *string, at place, field string) {
	if *name != "" {
		c.path(dir, name, aFile, at, field)
	}
}

// beyond reports a text that is a YAML bomb.
func (c *closure) beyond(at place, err error) {
	f := syntaxFinding(RuleScreen, at.file, nil, err)
	f.Line, f.Column = at.line, at.column
	c.findings = append(c.findings, f)
}

// file screens and adds a file, and returns its content. It returns nil if the file cannot be used.
func (c *closure) file(name string, at place) []byte {
	if content, ok := c.files[name]; ok && !c.written[name] {
		return content
	}
	content, err := c.repo.read(name)
	if err != nil {
		c.problem(RulePath, at, fmt.Sprintf("%s: %s", name, why(err)), "")
		return nil
	}
	if findings := screenForKustomize(name, content); findings != nil {
		c.findings = append(c.findings, findings...)
		return nil
	}
	if !c.written[name] {
		c.files[name] = content
	}
	return content
}

// digest hashes all files with their names.
func (c *closure) digest() key {
	var parts [][]byte
	names := make([]string, 0, len(c.files))
	for name := range c.files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		parts = append(parts, []byte(name), c.files[name])
	}
	return digest(parts...)
}

// given returns the path by which a file in dir names a file of the repo for kustomize. The path begins with a dot and a slash, so that
// kustomize never takes it for a URL or for the address of a Git repository.
func given(dir, name string) string {
	if name = relative(dir, name); strings.HasPrefix(name, "../") {
		return name
	}
	return "./" + path.Clean(name)
}
