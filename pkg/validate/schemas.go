package validate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetctl/fleetctl/pkg/api/v1alpha1"
	"github.com/fleetctl/fleetctl/pkg/components"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/render"
	"github.com/fleetctl/fleetctl/pkg/validate/internal/mapping"
	"github.com/fleetctl/fleetctl/pkg/validate/schema"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// fetchTimeout bounds the time for getting the components of one provider.
const fetchTimeout = time.Minute

// schemas has the known schemas of kinds.
type schemas struct {
	*schema.Set
	// missing are the providers whose CRDs are not available. Unknown kinds that may be theirs are not reported one by one.
	missing  []v1alpha1.LockedComponent
	findings diag.Findings
	// tree has the CRDs of the repo; nil if it has none.
	tree *tree
	// kubernetes has the Kubernetes versions of clusters that the repo declares.
	kubernetes map[place]string
}

// goneFor tells whether a cluster that an object is applied to no longer serves an API version. where names the cluster if there are
// others.
func (s *schemas) goneFor(o *object, gvk kschema.GroupVersionKind) (where string, gone bool) {
	for _, p := range o.places() {
		version := s.kubernetes[p]
		if !schema.GoneAt(gvk, version) {
			continue
		}
		if version != "" && len(o.Targets) > 1 {
			where = fmt.Sprintf(" on %s, which has Kubernetes %.40s", p, version)
		}
		return where, true
	}
	return "", false
}

// versionsOf returns the Kubernetes versions of clusters: from their values, or from their objects if the repo declares clusters by
// manifests.
func (r *run) versionsOf(clusters []*cluster) map[place]string {
	out := map[place]string{}
	for i := range r.fleet.Spec.ManagementClusters {
		m := &r.fleet.Spec.ManagementClusters[i]
		out[place{mgmt: m.Name}] = m.KubernetesVersion
	}
	for _, c := range clusters {
		if c.declared != nil {
			out[place{c.mgmt.Name, c.name}] = c.declared.KubernetesVersion
		}
	}
	for _, o := range r.rendered.Objects {
		control := strings.HasSuffix(o.Kind, "ControlPlane")
		if len(o.Targets) > 0 || o.Cluster == "" || o.Environment != "" || !control && !render.IsManifestCluster(o) {
			continue
		}
		var says map[string]any
		if json.Unmarshal(o.JSON, &says) != nil {
			continue
		}
		at := place{o.ManagementCluster, o.Cluster}
		out[at] = cmp.Or(mapping.Fields(says).Text("spec", "topology", "version"), mapping.Fields(says).Text("spec", "version"), out[at])
	}
	return out
}

// readSchemas collects CRDs: from --crds and from the repo, which has those of Flux. For kinds that are still missing it reads the CRDs of
// the providers of fleet.yaml, with the versions and digests of fleet.lock.
func (r *run) readSchemas(ctx context.Context, kinds map[kschema.GroupVersionKind]bool) (*schemas, error) {
	s := newSchemas(r.opts.known)
	for _, dir := range r.opts.CRDs {
		if err := s.addFolder(dir); err != nil {
			return nil, err
		}
	}
	s.addDeclared(r)
	s.addMade(r.tree, r.rendered.Objects)
	s.addTree(r.tree)
	wanted := components.Providers(r.fleet)
	if r.assumed { // without a fleet.yaml, the providers of the bundle are the best guess
		var err error
		if wanted, err = r.askBundled(ctx); err != nil {
			return nil, err
		}
	}
	//nolint:contextcheck // isKnown only reads a list in memory
	s.addProviders(ctx, r, slices.DeleteFunc(wanted, func(p v1alpha1.LockedComponent) bool {
		return !s.needs(p, kinds) || !r.assumed && !isKnown(p)
	}))
	return s, nil
}

// newSchemas returns schemas with the kinds of Kubernetes and those of known, which may be nil.
func newSchemas(known *schema.Set) *schemas {
	if known == nil {
		return &schemas{Set: schema.NewSet()}
	}
	return &schemas{Set: known.Clone()}
}

// addTree adds the CRDs in the files of the repo. The first CRD of a kind wins, so CRDs of excluded files come last: they may be wrong on
// purpose.
func (s *schemas) addTree(t *tree) {
	s.tree = t
	files := slices.Clone(t.files)
	slices.SortStableFunc(files, func(a, b *file) int {
		switch {
		case a.excluded == b.excluded:
			return 0
		case b.excluded:
			return -1
		}
		return 1
	})
	for _, f := range files {
		if f.documents == nil || !bytes.Contains(f.content, []byte("CustomResourceDefinition")) {
			continue
		}
		if _, err := s.Add(f.path, f.content); err != nil {
			s.findings = append(s.findings, finding(RuleBadCRD, f.path, 1, 0, err.Error(), ""))
		}
	}
}

// addMade adds the CRDs that Flux applies, as they are after rendering. kustomize reads a plain y as text while other YAML parsers read
// true, charts make CRDs from templates, and patches change CRDs.
func (s *schemas) addMade(t *tree, all []*render.Object) {
	seen := map[string]bool{}
	for _, o := range all {
		origin := cmp.Or(o.Template, o.Source.File)
		if o.Kind != "CustomResourceDefinition" || seen[origin+" "+o.Name] {
			continue
		}
		seen[origin+" "+o.Name] = true
		if s.AddObject(origin, o.JSON) {
			continue
		}
		if f := t.byPath[origin]; f != nil && f.documents != nil { // addTree reports what is wrong
			continue
		}
		if _, err := s.Add(origin, o.JSON); err != nil {
			s.findings = append(s.findings, finding(RuleBadCRD, o.Source.File, o.Source.Line, 0, err.Error(), ""))
		}
	}
}

// broken reports that no API server accepts the CRD of an object. The finding points at the CRD, so that there is one for all objects of
// the kind. If the repo does not have the CRD, the finding points at the object.
func (s *schemas) broken(o *object, err error) diag.Finding {
	crd, ok := errors.AsType[*schema.BrokenError](err)
	rule, hint := RuleBadCRD, "an API server refuses it, and then refuses its objects"
	if ok && crd.Unread {
		rule, hint = RuleLimit, "objects of the kind are not judged"
	}
	if !ok || s.tree == nil || s.tree.byPath[crd.Origin] == nil {
		return o.at("", rule, err.Error(), "")
	}
	at := finding(rule, crd.Origin, 1, 0, err.Error(), hint)
	for _, d := range s.tree.byPath[crd.Origin].documents {
		if says := mapping.Fields(d.object); kindOf(d) == "CustomResourceDefinition" && says.Text("metadata", "name") == crd.Name {
			at.Line, at.Column = d.node.Line, d.node.Column
			break
		}
	}
	return at
}

// refusedCRD reports a CRD that no API server accepts, even if the repo has no object of its kind.
func (s *schemas) refusedCRD(ctx context.Context, o *object, content map[string]any) diag.Findings {
	if o.Kind != "CustomResourceDefinition" {
		return nil
	}
	if err := schema.CheckCRD(ctx, cmp.Or(o.Template, o.Source.File), content); err != nil {
		return diag.Findings{s.broken(o, err)}
	}
	return nil
}

// addFolder adds the CRDs of a file or of all files below a folder, from --crds.
func (s *schemas) addFolder(name string) error {
	found, err := s.addBelow(name)
	if err != nil {
		return diag.Wrap("read the CRDs in "+name, err, "--crds takes folders and files with CustomResourceDefinitions")
	}
	if found == 0 {
		return diag.Usage("--crds takes folders and files with CustomResourceDefinitions", "there is no CRD in %s", name)
	}
	return nil
}

// maxCRDs bounds a file with CRDs, which may hold those of many providers.
const maxCRDs = 64 << 20

// addBelow adds the CRDs of a file, or of all files below a folder, and returns their number. It opens a file by its own path, because the
// confined process may read the file that --crds names, but not the folder around it.
func (s *schemas) addBelow(name string) (found int, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	if !info.IsDir() {
		content, err := within.Named(name, maxCRDs)
		if err != nil {
			return 0, err
		}
		return s.Add(filepath.ToSlash(name), content)
	}
	root, err := os.OpenRoot(name)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isYAML(file) {
			return err
		}
		content, err := within.Read(root, filepath.ToSlash(file), maxCRDs)
		if err != nil {
			return err
		}
		n, err := s.Add(path.Join(filepath.ToSlash(name), file), content)
		found += n
		return err
	})
	return found, err
}

// addProviders adds the CRDs of providers, which are fetched once and kept. A provider whose CRDs cannot be read is a warning, and all
// other rules are still checked.
func (s *schemas) addProviders(ctx context.Context, r *run, wanted []v1alpha1.LockedComponent) {
	found, errs := make([][]byte, len(wanted)), make([]error, len(wanted))
	var group errgroup.Group
	group.SetLimit(16) // most of the time is waiting for the network
	for i, w := range wanted {
		group.Go(func() error {
			found[i], errs[i] = askCRDs(ctx, w)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	var lacking []lack
	for i, w := range wanted {
		if errs[i] == nil {
			_, errs[i] = s.Add(w.String(), found[i])
		}
		if errs[i] == nil {
			continue
		}
		s.missing = append(s.missing, w)
		if mismatch, ok := errors.AsType[*v1alpha1.DigestError](errs[i]); ok {
			s.findings = append(s.findings, diag.Finding{
				Severity: diag.SeverityError, Rule: RuleLock, File: v1alpha1.LockFileName, Line: r.lockLine(w),
				Summary: mismatch.Error(), Hint: diag.Hint(errs[i]),
			})
			continue
		}
		lacking = append(lacking, lack{w, r.providerLine(w), errs[i]})
	}
	s.findings = append(s.findings, unavailable(lacking)...)
}

// needs tells whether the fleet has objects of unknown kinds that may be the provider's.
func (s *schemas) needs(p v1alpha1.LockedComponent, kinds map[kschema.GroupVersionKind]bool) bool {
	for k := range kinds {
		if !s.Knows(k.Group, k.Kind) && mayBeOf(p, k) {
			return true
		}
	}
	return false
}

// kindsOf maps well-known providers to the beginnings of their kinds, or to their API groups.
var kindsOf = map[string][]string{
	"aws": {"AWS", "ROSA", "EKS", "Nodeadm"}, "azure": {"Azure", "ASO", ".azure.com"}, "gcp": {"GCP"}, "vsphere": {"VSphere"},
	"docker": {"Docker", "Dev", "InMemory"},
}

// mayBeOf tells whether a kind may be a kind of a provider.
func mayBeOf(p v1alpha1.LockedComponent, k kschema.GroupVersionKind) bool {
	if !isProviders(k.Group) {
		return false
	}
	if k.Group == "cluster.x-k8s.io" {
		return v1alpha1.ProviderType(p.Type) == v1alpha1.ProviderCore
	}
	what, _, _ := strings.Cut(k.Group, ".")
	begins := kindsOf[p.Name]
	if p.Name == v1alpha1.KubeadmProviderName {
		begins = []string{"Kubeadm"}
	}
	known := len(begins) == 0 || slices.ContainsFunc(begins,
		func(b string) bool { return strings.HasPrefix(k.Kind, b) || strings.HasSuffix(k.Group, b) })
	switch v1alpha1.ProviderType(p.Type) {
	case v1alpha1.ProviderCore:
		return what == "addons" || what == "ipam" || what == "runtime"
	case v1alpha1.ProviderBootstrap:
		return what == "bootstrap" && known
	case v1alpha1.ProviderControlPlane:
		return what == "controlplane" && known
	case v1alpha1.ProviderInfrastructure:
		return known // some infrastructure providers have kinds of control planes, too
	case v1alpha1.ProviderIPAM, v1alpha1.ProviderAddon, v1alpha1.ProviderRuntimeExtension:
	}
	return true
}

// providerLine is the line in fleet.yaml that names a provider; the first line if the provider is a default.
func (r *run) providerLine(wanted v1alpha1.LockedComponent) int {
	f := r.tree.byPath[v1alpha1.FileName]
	if f == nil || len(f.documents) == 0 {
		return 1
	}
	for i := range r.fleet.Spec.ManagementClusters {
		for j, p := range r.fleet.Spec.ManagementClusters[i].Providers {
			if p.Name != wanted.Name || string(p.Type) != string(wanted.Type) {
				continue
			}
			return locate(f.documents[0].node, fmt.Sprintf("spec.managementClusters[%d].providers[%d]", i, j)).Line
		}
	}
	return 1
}

// lockLine is the line in fleet.lock with a component.
func (r *run) lockLine(wanted v1alpha1.LockedComponent) int {
	f := r.tree.byPath[v1alpha1.LockFileName]
	if f == nil || len(f.documents) == 0 || r.lock == nil {
		return 1
	}
	i := slices.IndexFunc(r.lock.Components, func(c v1alpha1.LockedComponent) bool {
		return c.Type == wanted.Type && c.Name == wanted.Name
	})
	if i < 0 {
		return 1
	}
	return locate(f.documents[0].node, fmt.Sprintf("components[%d]", i)).Line
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
