package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // only this package exports the types of the plugins
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
)

// pluginTypes are the types of the configurations of kustomize's own plugins. Kustomize and Flux run no other plugins.
var pluginTypes = map[string]reflect.Type{
	"AnnotationsTransformer":         reflect.TypeFor[builtins.AnnotationsTransformerPlugin](),
	"ConfigMapGenerator":             reflect.TypeFor[builtins.ConfigMapGeneratorPlugin](),
	"HashTransformer":                reflect.TypeFor[builtins.HashTransformerPlugin](),
	"IAMPolicyGenerator":             reflect.TypeFor[builtins.IAMPolicyGeneratorPlugin](),
	"ImageTagTransformer":            reflect.TypeFor[builtins.ImageTagTransformerPlugin](),
	"LabelTransformer":               reflect.TypeFor[builtins.LabelTransformerPlugin](),
	"NamespaceTransformer":           reflect.TypeFor[builtins.NamespaceTransformerPlugin](),
	"PatchJson6902Transformer":       reflect.TypeFor[builtins.PatchJson6902TransformerPlugin](),
	"PatchStrategicMergeTransformer": reflect.TypeFor[builtins.PatchStrategicMergeTransformerPlugin](),
	"PatchTransformer":               reflect.TypeFor[builtins.PatchTransformerPlugin](),
	"PrefixSuffixTransformer":        reflect.TypeFor[prefixSuffix](),
	"PrefixTransformer":              reflect.TypeFor[builtins.PrefixTransformerPlugin](),
	"ReplacementTransformer":         reflect.TypeFor[builtins.ReplacementTransformerPlugin](),
	"ReplicaCountTransformer":        reflect.TypeFor[builtins.ReplicaCountTransformerPlugin](),
	"SecretGenerator":                reflect.TypeFor[builtins.SecretGeneratorPlugin](),
	"SuffixTransformer":              reflect.TypeFor[builtins.SuffixTransformerPlugin](),
	"ValueAddTransformer":            reflect.TypeFor[builtins.ValueAddTransformerPlugin](),
}

// prefixSuffix configures two plugins at once.
type prefixSuffix struct {
	builtins.PrefixTransformerPlugin
	Suffix string `json:"suffix,omitempty"`
}

// maxWithin is how deep folders of plugin configurations may need each other.
const maxWithin = 3

// resourcesIn returns the objects in a text as kustomize reads it. Kustomize uses the same function to decide whether a text is content or
// a path.
func resourcesIn(text []byte) (out []*resource.Resource, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kustomize failed: %v", p)
		}
	}()
	return provider.NewDefaultDepProvider().GetResourceFactory().SliceFromBytes(text)
}

// plugins adds the configurations of generators, transformers or validators, and the files that they name. A configuration is inline, in a
// file, or in a folder that is built. Kustomize gets each configuration as it was read here.
func (c *closure) plugins(dir string, k *kustFile, field string, list []string) {
	for i, entry := range list {
		at, name := k.at(field, i), fmt.Sprintf("%s[%d]", field, i)
		if err := bombOf([]byte(entry), 0); err != nil {
			c.beyond(at, err)
			continue
		}
		if configs, err := resourcesIn([]byte(entry)); err == nil {
			list[i] = c.configs(dir, configs, at, name)
			continue
		}
		clean, ok := inside(dir, entry)
		switch {
		case !isRemote(entry) && ok && c.repo.isFile(clean) && !isKustomization(clean):
			list[i] = c.configFile(dir, clean, at, name)
		case !isRemote(entry) && !isGitAddress(entry) && ok && c.repo.isDir(clean):
			list[i] = c.configFolder(dir, clean, at, name)
		default:
			c.path(dir, &list[i], aFile|aFolder, at, name) // path reports what is wrong
		}
	}
}

// configFile adds the configurations in a file.
func (c *closure) configFile(dir, file string, at place, field string) string {
	content := c.file(file, at)
	if content == nil {
		return ""
	}
	configs, err := resourcesIn(content)
	if err != nil {
		c.problem(RuleKustomize, place{file: file}, fmt.Sprintf("%s of %s: %v", field, at.file, err), "")
		return ""
	}
	c.rewrite(file, []byte(c.configs(dir, configs, place{file: file}, field)), at)
	return given(dir, file)
}

// configFolder adds the configurations that a kustomization of their own builds.
func (c *closure) configFolder(dir, folder string, at place, field string) string {
	if slices.Contains(c.within, folder) || len(c.within) == maxWithin {
		c.problem(RuleKustomize, at, fmt.Sprintf("%s: %s is needed to make itself, or by too many others", field, folder),
			"write the configuration into a file, and name that")
		return ""
	}
	inner := newClosure(c.repo)
	inner.within = append(slices.Clip(c.within), folder)
	inner.folder(folder, at)
	if c.findings = append(c.findings, inner.findings...); len(inner.findings) > 0 {
		return ""
	}
	c.openAPI = c.openAPI || inner.openAPI
	top := *inner.tops[folder]
	top.SortOptions = nil // kustomize ignores it below another kustomization, and the order of the configurations counts
	inner.write(c.repo.kustomizationFile(folder), top, at)
	disk, err := inner.disk()
	if err == nil {
		var configs []*resource.Resource
		if configs, err = runKustomize(disk, "/"+folder, inner.openAPI); err == nil {
			return c.configs(dir, configs, at, field)
		}
	}
	c.findings = append(c.findings, buildFinding(c.repo, folder, nil, err))
	return ""
}

// disk returns a file system with only the files of the closure.
func (c *closure) disk() (filesys.FileSystem, error) {
	disk := newMemory()
	for name, content := range c.files {
		if err := disk.WriteFile("/"+name, content); err != nil {
			return nil, err
		}
	}
	return disk, nil
}

// configs returns configurations for kustomize, as they were read, with paths that lead to files of the repo.
func (c *closure) configs(dir string, all []*resource.Resource, at place, field string) string {
	texts := make([]string, 0, len(all))
	for _, r := range all {
		fields, err := r.Map()
		if err != nil {
			c.problem(RuleKustomize, at, field+": "+err.Error(), "")
			continue
		}
		c.config(dir, r, fields, at, field)
		text, err := sigsyaml.Marshal(fields)
		if err != nil {
			c.problem(RuleKustomize, at, field+": "+err.Error(), "")
			continue
		}
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "---\n")
}

// config refuses plugins that are not kustomize's own, and fields that a plugin does not have. Kustomize would accept the fields in another
// case.
func (c *closure) config(dir string, r *resource.Resource, fields map[string]any, at place, field string) {
	kind := r.GetKind()
	shape, known := pluginTypes[kind]
	switch {
	case kind == "HelmChartInflationGenerator":
		c.problem(RuleKustomize, at, field+": "+kind+" is not available in Flux", "use a HelmRelease")
		return
	case r.GetApiVersion() != "builtin" || !known:
		c.problem(RuleKustomize, at, fmt.Sprintf("%s: %.100s %.100s is no plugin of kustomize's own, and Flux runs no other", field,
			r.GetApiVersion(), kind), "put the objects that it makes into the repo")
		return
	}
	own := maps.Clone(fields)
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(own, name)
	}
	if len(own) == 0 {
		return
	}
	text, err := sigsyaml.Marshal(own)
	if err == nil {
		var n []*yaml.Node
		if n, err = yamledit.ParseWithin(text, Limits); err == nil {
			read := kustFile{file: at.file}
			if strangers := read.strangers(n[0], shape, ""); strangers != nil {
				c.problem(strangers[0].Rule, at, fmt.Sprintf("%s: %s: %s", field, kind, strangers[0].Summary), strangers[0].Hint)
				return
			}
			err = c.configPaths(dir, shape, text, fields, at, field+": ")
		}
	}
	if err != nil {
		c.problem(RuleKustomize, at, fmt.Sprintf("%s: %s: %v", field, kind, err), "")
	}
}

// configPaths adds the files that a configuration names. It decodes the configuration to the type that kustomize uses.
func (c *closure) configPaths(dir string, shape reflect.Type, text []byte, fields map[string]any, at place, field string) error {
	config := reflect.New(shape).Interface()
	if err := sigsyaml.UnmarshalStrict(text, config); err != nil {
		return err
	}
	here := func(...any) place { return at }
	put := func(name string, value any, there bool) {
		if there {
			fields[name] = value
		}
	}
	from := func(sources *kustypes.KvPairSources) {
		c.generator(dir, sources, field, here)
		put("files", sources.FileSources, len(sources.FileSources) > 0)
		put("envs", sources.EnvSources, len(sources.EnvSources) > 0)
		put("env", sources.EnvSource, sources.EnvSource != "")
	}
	one := func(name string, value *string) {
		c.optional(dir, value, at, field+name)
		put(name, *value, *value != "")
	}
	switch config := config.(type) {
	case *builtins.ConfigMapGeneratorPlugin:
		from(&config.KvPairSources)
	case *builtins.SecretGeneratorPlugin:
		from(&config.KvPairSources)
	case *builtins.PatchTransformerPlugin:
		one("path", &config.Path)
	case *builtins.PatchJson6902TransformerPlugin:
		one("path", &config.Path)
	case *builtins.ValueAddTransformerPlugin:
		one("targetFilePath", &config.TargetFilePath)
	case *builtins.PatchStrategicMergeTransformerPlugin:
		for i := range config.Paths {
			c.patch(dir, &config.Paths[i], at, fmt.Sprintf("%spaths[%d]", field, i))
		}
		put("paths", config.Paths, len(config.Paths) > 0)
	case *builtins.ReplacementTransformerPlugin:
		for i := range config.ReplacementList {
			c.optional(dir, &config.ReplacementList[i].Path, at, fmt.Sprintf("%sreplacements[%d].path", field, i))
		}
		put("replacements", config.ReplacementList, len(config.ReplacementList) > 0)
	}
	return nil
}
