package fleetrepo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/api/yamledit"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
)

// Root is the folder that a cluster's Flux applies first. It names all other folders that Flux applies.
type Root struct {
	// Name that the cluster would get in fleet.yaml.
	Name string `json:"name"`
	// Path of the folder.
	Path string `json:"path"`
	// File and Line of the object that makes the folder a root: a Flux Kustomization that applies its own folder, or a FluxInstance.
	File string `json:"file"`
	Line int    `json:"line"`
	// URL and Branch of the Git repository that it follows; "" where the repo does not say.
	URL    string `json:"url,omitempty"`
	Branch string `json:"branch,omitempty"`
	// Flux is the version of the components in the same folder; "" if Flux is installed in another way.
	Flux string `json:"flux,omitempty"`
}

// FindAny is Find for who can work without a fleet.yaml as well: then it is the top of the Git repository that dir is in, or dir itself.
// declared says that there is a fleet.yaml.
func FindAny(dir string) (top string, declared bool, err error) {
	top, err = Find(dir)
	if err == nil {
		return top, true, nil
	}
	start, absErr := filepath.Abs(dir)
	if absErr != nil {
		return "", false, err
	}
	if info, statErr := os.Stat(start); statErr != nil || !info.IsDir() {
		return "", false, err
	}
	for at := start; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at, false, nil
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	if isTooMuch(start) {
		return "", false, err
	}
	return start, false, nil
}

// mostUnversioned is how many files and folders there may be in one that is in no Git repository: it may be anything, such as somebody's
// home.
const mostUnversioned = 5000

func isTooMuch(dir string) bool {
	n := 0
	_ = filepath.WalkDir(dir, func(string, fs.DirEntry, error) error {
		if n++; n > mostUnversioned {
			return fs.SkipAll
		}
		return nil
	})
	return n > mostUnversioned
}

// ErrNoFlux says that nothing in a folder tells what Flux applies of it.
var ErrNoFlux = errors.New("nothing there says what Flux applies")

// Assume is the fleet of a repo without a fleet.yaml, as far as its Flux objects tell: each folder that a cluster's Flux begins with is
// that of a management cluster. The error is ErrNoFlux.
func Assume(files fs.FS, dir string) (*v1alpha1.Fleet, error) {
	roots := Roots(files)
	if len(roots) == 0 {
		return nil, &diag.Error{
			Err:  &noFleetError{dir},
			Hint: "run fleetctl in the fleet repo or give its folder with --repo; `fleetctl init` makes one",
		}
	}
	fleet := &v1alpha1.Fleet{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind,
		Metadata: v1alpha1.Metadata{Name: Label(filepath.Base(dir), "fleet")},
	}
	for _, r := range roots {
		fleet.Spec.Git.URL = cmp.Or(fleet.Spec.Git.URL, r.URL)
		fleet.Spec.Git.Branch = cmp.Or(fleet.Spec.Git.Branch, r.Branch)
		fleet.Spec.ManagementClusters = append(fleet.Spec.ManagementClusters, v1alpha1.ManagementCluster{
			Name: r.Name, Path: r.Path, Host: v1alpha1.Host{Type: v1alpha1.HostExisting},
		})
	}
	return fleet, nil
}

// WithRoots adds the roots that fleet.yaml does not name to the fleet of a repo with its own layout, such as the roots of workload
// clusters. Commands that look at everything that Flux applies then look at these folders too. Any other fleet comes back as it is.
func WithRoots(fleet *v1alpha1.Fleet, files fs.FS) *v1alpha1.Fleet {
	all := fleet.Spec.ManagementClusters
	paths, names := map[string]bool{}, map[string]bool{}
	foreign := false
	for i := range all {
		paths[all[i].Dir()], names[all[i].Name] = true, true
		foreign = foreign || all[i].Path != ""
	}
	if !foreign {
		return fleet
	}
	more := *fleet
	more.Spec.ManagementClusters = slices.Clone(all)
	for _, r := range Roots(files) {
		if paths[r.Path] {
			continue
		}
		name := r.Name
		for n := 2; names[name]; n++ {
			name = fmt.Sprintf("%.36s-%d", r.Name, n)
		}
		names[name] = true
		more.Spec.ManagementClusters = append(more.Spec.ManagementClusters, v1alpha1.ManagementCluster{
			Name: name, Path: r.Path, Host: v1alpha1.Host{Type: v1alpha1.HostExisting},
		})
	}
	return &more
}

type noFleetError struct{ dir string }

func (e *noFleetError) Error() string {
	return "there is no " + v1alpha1.FileName + " in " + e.dir + " or above, and " + ErrNoFlux.Error() + " of it"
}

func (e *noFleetError) Unwrap() error { return ErrNoFlux }

// fluxObject has the used fields of an object that tells where Flux begins.
type fluxObject struct {
	kind, namespace, name string
	file                  string
	line                  int
	// path that a Kustomization applies, cleaned; "" if it is outside of the repo. remote: it is applied to another cluster.
	path   string
	remote bool
	// sourceKind, sourceNamespace and sourceName are of its source; url and branch of a source itself.
	sourceKind, sourceNamespace, sourceName string
	url, branch                             string
}

// mayBegin are files that may have one of these. Flux's own components mention the kinds, too, and are read for nothing.
var mayBegin = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`kind["']?\s*:\s*["']?(Kustomization|FluxInstance|GitRepository)\b`)
})

// componentsVersion is what `flux install --export` writes at the top of Flux's components.
var componentsVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^# Flux Version: (v[0-9][0-9A-Za-z.+-]*)\s*$|app\.kubernetes\.io/version: "?(v[0-9][0-9A-Za-z.+-]*)"?\s*$`)
})

// Roots finds the root folders of the clusters' Flux. FluxInstances name them, and so do Flux Kustomizations that apply their own folder.
// If the repo has neither, the roots are the folders with Flux Kustomizations that no other Flux Kustomization applies. What cannot be read
// has none.
func Roots(files fs.FS) []Root {
	objects, versions := fluxObjects(files)
	sources := map[[3]string]fluxObject{}
	for _, o := range objects {
		if o.kind == "GitRepository" {
			sources[[3]string{o.kind, o.namespace, o.name}] = o
		}
	}
	byPath := map[string]Root{}
	add := func(o fluxObject, dir string) {
		if _, there := byPath[dir]; there || dir == "" || !isFolder(files, dir) {
			return
		}
		source := sources[[3]string{o.sourceKind, cmp.Or(o.sourceNamespace, o.namespace), o.sourceName}]
		byPath[dir] = Root{Path: dir, File: o.file, Line: o.line, URL: cmp.Or(o.url, source.url), Branch: cmp.Or(o.branch, source.branch)}
	}
	for _, o := range objects {
		switch {
		case o.kind == "FluxInstance":
			add(o, o.path)
		case o.appliesItself() && !(o.path == "." && slices.ContainsFunc(objects, o.isOfAnother)):
			add(o, o.path)
		}
	}
	if len(byPath) == 0 {
		for _, o := range objects {
			dir := path.Dir(o.file)
			applied := slices.ContainsFunc(objects, func(by fluxObject) bool { return by.kind == "Kustomization" && lies(o.file, by.path) })
			if o.kind == "Kustomization" && !applied && !slices.ContainsFunc(objects, func(other fluxObject) bool {
				above := path.Dir(other.file)
				return other.kind == "Kustomization" && above != dir && lies(o.file, above) && isKustomized(files, above)
			}) {
				add(o, dir)
			}
		}
	}
	roots := make([]Root, 0, len(byPath))
	taken := map[string]bool{}
	for _, r := range byPath {
		roots = append(roots, r)
	}
	slices.SortFunc(roots, func(a, b Root) int { return cmp.Compare(a.Path, b.Path) })
	for i := range roots {
		r := &roots[i]
		for at, version := range versions {
			if lies(at, r.Path) {
				r.Flux = version
			}
		}
		base := rootName(r.Path)
		r.Name = base
		for n := 2; taken[r.Name]; n++ {
			r.Name = fmt.Sprintf("%.36s-%d", base, n)
		}
		taken[r.Name] = true
	}
	return roots
}

// appliesItself tells of a Kustomization that it applies the folder that it is in.
func (o fluxObject) appliesItself() bool {
	return o.kind == "Kustomization" && !o.remote && lies(o.file, o.path)
}

// isOfAnother tells of a Kustomization beside which another one, of another source, is where a cluster's Flux begins: then the whole of
// which it applies is that of its own source, such as a tenant's repo.
func (o fluxObject) isOfAnother(root fluxObject) bool {
	return root.appliesItself() && root.path != "." &&
		[3]string{o.sourceKind, cmp.Or(o.sourceNamespace, o.namespace), o.sourceName} != [3]string{
			root.sourceKind,
			cmp.Or(root.sourceNamespace, root.namespace), root.sourceName,
		}
}

// rootName is the name of the cluster with that root. For a folder in clusters/, as in the documentation of flux bootstrap, it is only
// the folder's name.
func rootName(dir string) string {
	return Label(strings.TrimPrefix(dir, "clusters/"), "flux")
}

// Label makes a DNS label of at most 40 characters of a text; otherwise where nothing is left of it.
func Label(text, otherwise string) string {
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, text)
	label = strings.Trim(label, "-")
	return cmp.Or(strings.Trim(label[:min(len(label), 40)], "-"), otherwise)
}

// lies tells whether a file is in a folder, or below.
func lies(file, dir string) bool {
	return dir != "" && (dir == "." || strings.HasPrefix(file, dir+"/"))
}

func isFolder(files fs.FS, dir string) bool {
	info, err := fs.Stat(files, dir)
	return err == nil && info.IsDir()
}

func isKustomized(files fs.FS, dir string) bool {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if _, err := fs.Stat(files, path.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// assumeLimits bound a file that is looked at for Flux objects.
var assumeLimits = yamledit.Limits{Bytes: 8 << 20, Nodes: 500_000, Depth: 100}

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
		if err != nil || len(content) > assumeLimits.Bytes {
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
		documents, err := yamledit.ParseWithin(content, assumeLimits)
		if err != nil {
			return nil //nolint:nilerr // who renders it says what is wrong
		}
		for _, d := range documents {
			if o, ok := fluxObjectOf(name, d); ok {
				objects = append(objects, o)
			}
		}
		return nil
	})
	return objects, versions
}

func fluxObjectOf(file string, d *yaml.Node) (fluxObject, bool) {
	at := func(path ...any) string { return text(yamledit.Find(d, path...)) }
	group, _, _ := strings.Cut(at("apiVersion"), "/")
	o := fluxObject{kind: at("kind"), namespace: at("metadata", "namespace"), name: at("metadata", "name"), file: file, line: d.Line}
	switch {
	case o.kind == "Kustomization" && group == "kustomize.toolkit.fluxcd.io":
		o.path = cmp.Or(layout.CleanPath(strings.TrimPrefix(at("spec", "path"), "/")), ".")
		o.remote = yamledit.Find(d, "spec", "kubeConfig") != nil
		o.sourceKind, o.sourceNamespace, o.sourceName = at("spec", "sourceRef", "kind"), at("spec", "sourceRef", "namespace"),
			at("spec", "sourceRef", "name")
	case o.kind == "GitRepository" && group == "source.toolkit.fluxcd.io":
		o.url, o.branch = at("spec", "url"), at("spec", "ref", "branch")
	case o.kind == "FluxInstance" && group == "fluxcd.controlplane.io" && yamledit.Find(d, "spec", "sync") != nil:
		o.path = cmp.Or(layout.CleanPath(strings.TrimPrefix(at("spec", "sync", "path"), "/")), ".")
		if at("spec", "sync", "kind") == "GitRepository" {
			o.url, o.branch = at("spec", "sync", "url"), strings.TrimPrefix(at("spec", "sync", "ref"), "refs/heads/")
		}
	default:
		return o, false
	}
	if !fs.ValidPath(cmp.Or(o.path, ".")) {
		o.path = ""
	}
	return o, true
}
