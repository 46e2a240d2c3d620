package roots

import (
	"bytes"
	"cmp"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// fluxObject is an object that tells where Flux begins. It has only the fields that matter here.
type fluxObject struct {
	kind, namespace, name string
	file                  string
	line                  int
	// path that a Kustomization applies, cleaned; "" if it is outside of the repo. remote: it is applied to another cluster.
	path   string
	remote bool
	// pathless: it names no path, so it applies the whole of its source. Only its place tells whether its source is the repo at hand.
	pathless bool
	// sourceKind, sourceNamespace and sourceName are of its source; url and branch of a source itself.
	sourceKind, sourceNamespace, sourceName string
	url, branch                             string
}

// mayBegin matches the files that may have one of these objects. Flux's own components mention the kinds too, so they are left out.
var mayBegin = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`kind["']?\s*:\s*["']?(Kustomization|FluxInstance|GitRepository)\b|\binstance["']?\s*:(?s:.*)\bsync["']?\s*:`)
})

// componentsVersion is what `flux install --export` writes at the top of Flux's components.
var componentsVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^# Flux Version: (v[0-9][0-9A-Za-z.+-]*)\s*$|app\.kubernetes\.io/version: "?(v[0-9][0-9A-Za-z.+-]*)"?\s*$`)
})

// fluxObjects reads the objects that say where Flux begins, and the versions of Flux by the file that has its components.
func fluxObjects(files fs.FS) (objects []fluxObject, versions map[string]string) {
	versions = map[string]string{}
	_ = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be listed says nothing
		case entry.IsDir():
			if name != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || path.Ext(name) != ".yaml" && path.Ext(name) != ".yml":
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil || len(content) > yamledit.ReadLimits.Bytes {
			return nil //nolint:nilerr // as above
		}
		if path.Base(name) == layout.ComponentsFile {
			if m := componentsVersion().FindSubmatch(content); m != nil {
				versions[name] = cmp.Or(string(m[1]), string(m[2]))
			}
			return nil
		}
		if !bytes.Contains(content, []byte("fluxcd")) || !mayBegin().Match(content) {
			return nil
		}
		documents, err := yamledit.ParseWithin(content, yamledit.ReadLimits)
		if err != nil {
			return nil //nolint:nilerr // who renders it says what is wrong
		}
		for _, d := range documents {
			objects = append(objects, fluxObjectsOf(name, d)...)
		}
		return nil
	})
	return objects, versions
}

// fluxObjectsOf returns the objects of a document: the object itself, the objects that a ResourceSet makes of it, or the FluxInstance that
// Flux Operator's chart makes of its values.
func fluxObjectsOf(file string, d *yaml.Node) (objects []fluxObject) {
	top := yamledit.Resolve(d)
	if o, ok := fluxObjectOf(file, top); ok {
		return []fluxObject{o}
	}
	group, _, _ := strings.Cut(yamledit.Text(yamledit.Find(top, "apiVersion")), "/")
	switch kind := yamledit.Text(yamledit.Find(top, "kind")); {
	case kind == "ResourceSet" && group == operatorGroup:
		if all := yamledit.Resolve(yamledit.Find(top, "spec", "resources")); all != nil && all.Kind == yaml.SequenceNode {
			for _, one := range all.Content {
				if o, ok := instanceIn(file, one, "spec", "values"); ok {
					objects = append(objects, o)
				}
			}
		}
	case kind == "HelmRelease" && group == "helm.toolkit.fluxcd.io":
		if o, ok := instanceIn(file, top, "spec", "values"); ok {
			objects = append(objects, o)
		}
	case kind == "" && group == "":
		if o, ok := instanceIn(file, top); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

// operatorGroup is that of Flux Operator's kinds.
const operatorGroup = "fluxcd.controlplane.io"

// instanceIn is the FluxInstance that the chart flux-instance makes of the values at a place.
func instanceIn(file string, d *yaml.Node, at ...any) (fluxObject, bool) {
	sync := yamledit.Find(d, append(at, "instance", "sync")...)
	if sync == nil || yamledit.Find(sync, "path") == nil {
		return fluxObject{}, false
	}
	o := fluxObject{kind: "FluxInstance", file: file, line: sync.Line}
	o.synced(sync)
	return o, true
}

// synced takes what spec.sync of a FluxInstance says.
func (o *fluxObject) synced(sync *yaml.Node) {
	at := func(name string) string { return yamledit.Text(yamledit.Find(sync, name)) }
	o.path = repoPath(at("path"))
	if at("kind") == "GitRepository" {
		o.url, o.branch = at("url"), strings.TrimPrefix(at("ref"), "refs/heads/")
	}
}

// repoPath is the folder that a path of Flux means; "" for one outside of the repo.
func repoPath(given string) string {
	dir := cmp.Or(layout.CleanPath(strings.TrimPrefix(given, "/")), ".")
	if !fs.ValidPath(dir) {
		return ""
	}
	return dir
}

func fluxObjectOf(file string, d *yaml.Node) (fluxObject, bool) {
	at := func(path ...any) string { return yamledit.Text(yamledit.Find(d, path...)) }
	group, _, _ := strings.Cut(at("apiVersion"), "/")
	o := fluxObject{kind: at("kind"), namespace: at("metadata", "namespace"), name: at("metadata", "name"), file: file, line: d.Line}
	switch {
	case o.kind == "Kustomization" && group == "kustomize.toolkit.fluxcd.io":
		o.path = repoPath(at("spec", "path"))
		o.remote, o.pathless = yamledit.Find(d, "spec", "kubeConfig") != nil, at("spec", "path") == ""
		o.sourceKind, o.sourceNamespace, o.sourceName = at("spec", "sourceRef", "kind"), at("spec", "sourceRef", "namespace"),
			at("spec", "sourceRef", "name")
		return o, o.sourceName != "" // without, it is a patch
	case o.kind == "GitRepository" && group == "source.toolkit.fluxcd.io":
		o.url, o.branch = at("spec", "url"), at("spec", "ref", "branch")
	case o.kind == "FluxInstance" && group == operatorGroup && yamledit.Find(d, "spec", "sync") != nil:
		o.synced(yamledit.Find(d, "spec", "sync"))
	default:
		return o, false
	}
	return o, true
}
